//! Our ends of the pipes to a child's three streams.

#![forbid(unsafe_code)]

use std::process::{self, Stdio};

use crate::io::PipeEnd;
use crate::waiting::convert::{reads, writes};
use crate::waiting::timeouts::deadline_methods;

/// Is the writing end of a pipe to a child's standard input: [`std::process::ChildStdin`], for tasks.
///
/// Dropping it closes the pipe, which the child reads as the end. A write into a pipe whose child has closed it or
/// ended fails with `BrokenPipe`.
///
/// # Cancellation
///
/// A write that has to wait for room is a cancellation point; what was written before stays written.
///
/// # Differences from std
///
/// Those of [`PipeReader`](crate::io::PipeReader).
pub struct ChildStdin(pub(crate) PipeEnd<process::ChildStdin>);

/// Is the reading end of a pipe from a child's standard output: [`std::process::ChildStdout`], for tasks.
///
/// # Cancellation
///
/// A read that has to wait is a cancellation point; it has taken nothing then.
///
/// # Differences from std
///
/// Those of [`PipeReader`](crate::io::PipeReader).
pub struct ChildStdout(pub(crate) PipeEnd<process::ChildStdout>);

/// Is the reading end of a pipe from a child's standard error: [`std::process::ChildStderr`], for tasks. Otherwise as
/// [`ChildStdout`].
pub struct ChildStderr(pub(crate) PipeEnd<process::ChildStderr>);

writes!(ChildStdin);
reads!(ChildStdout);
reads!(ChildStderr);
deadline_methods!(write ChildStdin: end => end.0.limit());
deadline_methods!(read ChildStdout: end => end.0.limit());
deadline_methods!(read ChildStderr: end => end.0.limit());

/// For a pipe from one child straight to another.
macro_rules! stdio {
    ($($name:ident)+) => {$(
        impl From<$name> for Stdio {
            fn from(end: $name) -> Stdio {
                process::$name::from(end).into()
            }
        }
    )+};
}

stdio!(ChildStdin ChildStdout ChildStderr);
