//! Child processes, as in [`std::process`], for tasks.
//!
//! A program ports by changing `use std::process` to `use fibra::process`: the same names, signatures and error kinds. What
//! only describes or reports is std's own: [`Stdio`], [`ExitStatus`], [`Output`].
//!
//! # Waiting
//!
//! The streams of a child and its end are waited for as sockets are: the task falls asleep, a plain thread blocks. The end
//! is heard of by a descriptor of the process (`pidfd_open(2)`, Linux 5.3 and later). Where there is none, it is looked
//! for again and again, at times up to 64 milliseconds apart.
//!
//! In a `select!` a child is waited for by a task that has it: the case is `join(handle)`. To cancel that task drops the child.
//!
//! Starting a child (`fork` and `exec`) takes its time, some tenths of a millisecond, on the thread that asks for it: what a
//! child inherits of a thread, as the signal that it gets when that ends, must not come from a thread of the blocking pool.
//!
//! # No zombies
//!
//! A [`Child`] that is dropped before it was waited for goes on running, and a thread of the library waits for it in the
//! background, so that the system can forget it when it ends. By choice it is killed instead
//! ([`Command::kill_on_drop`]). In std a child that is not waited for stays in the system's table until its parent ends.
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
