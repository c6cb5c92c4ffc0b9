//! Our ends of the pipes to a child's three streams.

#![forbid(unsafe_code)]

use std::process;

use crate::io::PipeEnd;
use crate::waiting::convert::{reads, writes};
use crate::waiting::timeouts::deadline_methods;

/// The writing end of a pipe to a child's standard input.
///
/// It is [`std::process::ChildStdin`], for tasks.
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
///
/// # Examples
///
/// ```
/// use std::io::{ErrorKind, Read, Write};
/// use std::time::Instant;
/// use fibra_io::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
///
/// let mut command = Command::new("cat");
/// let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
/// let mut input: ChildStdin = child.stdin.take().unwrap();
/// let mut output: ChildStdout = child.stdout.take().unwrap();
/// let mut errors: ChildStderr = child.stderr.take().unwrap();
///
/// let now = Some(Instant::now());
/// input.set_write_deadline(now);
/// output.set_read_deadline(now);
/// errors.set_read_deadline(now);
/// assert_eq!((input.write_deadline(), output.read_deadline(), errors.read_deadline()), (now, now, now));
/// assert_eq!(output.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// assert_eq!(errors.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
///
/// output.set_read_deadline(None);
/// input.write_all(b"there is room")?;
/// drop(input);
/// let mut text = String::new();
/// output.read_to_string(&mut text)?;
/// assert_eq!(text, "there is room");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ChildStdin(pub(crate) PipeEnd<process::ChildStdin>);

/// The reading end of a pipe from a child's standard output.
///
/// It is [`std::process::ChildStdout`], for tasks.
///
/// # Cancellation
///
/// A read that has to wait is a cancellation point; it has taken nothing then.
///
/// # Differences from std
///
/// Those of [`PipeReader`](crate::io::PipeReader).
pub struct ChildStdout(pub(crate) PipeEnd<process::ChildStdout>);

/// The reading end of a pipe from a child's standard error.
///
/// It is [`std::process::ChildStderr`], for tasks. Otherwise it behaves as [`ChildStdout`] does.
pub struct ChildStderr(pub(crate) PipeEnd<process::ChildStderr>);

writes!(ChildStdin);
reads!(ChildStdout);
reads!(ChildStderr);
deadline_methods!(write ChildStdin: end => end.0.limit());
deadline_methods!(read ChildStdout: end => end.0.limit());
deadline_methods!(read ChildStderr: end => end.0.limit());
