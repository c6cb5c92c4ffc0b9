//! Calls that block a thread for nobody knows how long, such as asking a name server or opening a FIFO.
//!
//! [`unblock`](fibra_runtime::unblock) borrows, and so cannot be left before its closure has ended. These own what they
//! need: a task that is cancelled leaves, and the call goes on to an end that nobody hears of. Nor does the end of the runtime
//! wait for it, which would else hang on a FIFO that nobody opens: the thread is left behind with what it owns. A task that must not
//! be unwound stays to the end of the call, and gets what it asks for at the end of the runtime too.
//!
//! What waits for others, a server or the other end of a FIFO, has threads of the pool beside those that are left to calls that end by
//! themselves.
//!
//! A task that unwinds from a cancellation is not cancelled again, so it must not come here for what may never end: whoever
//! calls looks first, as [`check_may_wait`](crate::op::check_may_wait) does.

#![forbid(unsafe_code)]

use std::io;
use std::panic::resume_unwind;

use fibra_runtime::task::{spawn_call, spawn_long_call};
use fibra_runtime::{JoinHandle, wait};

/// Runs `call` on the blocking pool while the task sleeps; in a plain thread, in place. No code of users runs in it.
pub(crate) fn detached<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match wait::in_task() {
        true => outcome_of(spawn_call(call)),
        false => call(),
    }
}

/// The same of a call that waits for others.
pub(crate) fn detached_long<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match wait::in_task() {
        true => outcome_of(spawn_long_call(call)),
        false => call(),
    }
}

fn outcome_of<T>(call: JoinHandle<io::Result<T>>) -> io::Result<T> {
    match call.join() {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(error) => Err(error.into()),
    }
}
