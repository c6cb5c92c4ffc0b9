//! Child processes, as in [`std::process`], for tasks.
//!
//! A program ports by changing `use std::process` to `use fibra::process`: names, signatures and error
//! kinds are std's. Plain values are std's own: [`Stdio`], [`ExitStatus`], [`Output`].
//!
//! # Waiting
//!
//! A wait for a child's streams or for its end is as that of a socket: a task sleeps, a plain thread
//! blocks. A descriptor of the process reports its end (`pidfd_open(2)`, Linux 5.3 and later). Without
//! such a descriptor the wait polls, with pauses of up to 64 milliseconds.
//!
//! In a `select!` let a task own the child and wait: the case is `join(handle)`. Cancelling that task
//! drops the child.
//!
//! Starting a child (`fork` and `exec`) keeps the caller's thread for some tenths of a millisecond. The
//! blocking pool cannot do it: a child inherits properties of its thread, such as the signal that it
//! gets when that thread ends.
//!
//! # No zombies
//!
//! A [`Child`] that is dropped before it was waited for goes on running. A thread of the library waits
//! for it, so that no zombie stays. [`Command::kill_on_drop`] kills it instead. In std such a child
//! stays in the system's table until its parent ends.
//!
//! # Cancellation
//!
//! Every wait is a cancellation point. Nothing is lost by it: a child can be waited for again. A child that belongs to the
//! code that unwinds is dropped, with the consequences above.

#![forbid(unsafe_code)]

mod child;
mod command;
mod handle;
mod output;
mod pipes;
mod reaper;

pub use std::process::{
    CommandArgs, CommandEnvs, ExitCode, ExitStatus, Output, Stdio, Termination, abort, exit, id,
};

pub use self::child::Child;
pub use self::command::Command;
pub use self::pipes::{ChildStderr, ChildStdin, ChildStdout};
