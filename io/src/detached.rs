//! Calls that block a thread for nobody knows how long, such as asking a name server or opening a FIFO.
//!
//! [`unblock`](fibra_runtime::unblock) borrows, and so cannot be left before its closure has ended. These own what they
//! need: a task that is cancelled leaves, and the call goes on to an end that nobody hears of but the runtime, whose own end
//! waits for its threads.

#![forbid(unsafe_code)]

use std::io;
use std::panic::resume_unwind;

use fibra_runtime::{spawn_blocking, wait};

/// Runs `call` on the blocking pool while the task sleeps; in a plain thread, in place.
pub(crate) fn detached<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if !wait::in_task() {
        return call();
    }
    match spawn_blocking(call).join() {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(error) => Err(error.into()),
    }
}
