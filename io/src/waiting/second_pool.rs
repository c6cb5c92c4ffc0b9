//! Runs calls that may block a thread without end, such as asking a name server or opening a FIFO.
//!
//! [`unblock`](fibra_runtime::unblock) borrows, and so cannot be left before its closure has ended. These own what they
//! need: a task that is cancelled leaves, and the call goes on to its end, and its result is dropped. Nor
//! does the end of the runtime wait for it, which would else hang on a FIFO without a peer: the thread is
//! left behind with what it owns. A task that must not be unwound stays to the end of the call, and gets what
//! it asks for at the end of the runtime too; but what waits for others it leaves, with an error, if it is
//! cancelled while it unwinds from a panic or is at its own end.
//!
//! What waits for others, a server or the other end of a FIFO, has threads of the pool beside those that are left to calls that end by
//! themselves.
//!
//! A task that unwinds from a cancellation is not cancelled again, so it waits here for a moment only. A caller whose call
//! waits for others as a rule looks first, as [`check_may_wait`] does.

#![forbid(unsafe_code)]

use std::io;
use std::panic::resume_unwind;

use fibra_runtime::task::{JoinError, heed_end, spawn_call};
use fibra_runtime::wait;

use crate::waiting::cancel::{SLICE, check_may_wait};

/// Runs `call` on the second pool while the task sleeps; in a plain thread, in place. It runs no code of users.
///
/// A task that unwinds from a panic, or ends, leaves the call once it is cancelled, with an error. A task that is cancelled
/// and unwinds already leaves it after [`SLICE`].
pub(crate) fn detached<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if !wait::in_task() {
        return call();
    }
    let mut call = spawn_call(call);
    // A join hears of no cancel there.
    while (wait::fails_if_cancelled() || wait::unwinds_cancelled()) && !call.is_finished() {
        call = match call.join_timeout(SLICE) {
            Ok(end) => return outcome_of(end),
            Err(call) => call,
        };
        check_may_wait()?;
    }
    outcome_of(call.join())
}

fn outcome_of<T>(end: Result<io::Result<T>, JoinError>) -> io::Result<T> {
    match end {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(error) => {
            // It was still queued as the runtime began to end, which may have come to this task's worker later.
            heed_end();
            Err(error.into())
        }
    }
}
