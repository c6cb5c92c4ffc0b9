//! Runs calls that may block a thread without end, such as asking a name server or opening a FIFO.
//!
//! [`unblock`](fibra_runtime::unblock) borrows, so its caller cannot leave before the closure ends.
//! The calls here own their data. A cancelled task leaves; its call runs on, and the result is
//! dropped. Nor does the end of the runtime wait for the call, which might hang on a FIFO without a
//! peer: the thread keeps running with its data.
//!
//! A task that must not be unwound stays to the end of the call, at the end of the runtime too. If
//! it is cancelled while it unwinds from a panic or runs its last destructors, it leaves with an
//! error.
//!
//! These calls have pool threads of their own, apart from those for calls that end by themselves.
//!
//! A task that unwinds from a cancellation is not cancelled again, so it waits here for a moment
//! only. A caller whose call usually waits for a peer calls [`check_may_wait`] first.

#![forbid(unsafe_code)]

use std::io;
use std::panic::resume_unwind;

use fibra_runtime::task::{JoinError, end_with_runtime, spawn_call};
use fibra_runtime::wait;

use crate::waiting::cancel::{SLICE, check_may_wait};

/// Runs `call` on the second pool while the task sleeps; in a plain thread, in place.
///
/// `call` runs no code of users. A cancelled task leaves the call with an error, if it unwinds from
/// a panic or runs its last destructors. A task that unwinds from a cancellation leaves it after
/// [`SLICE`].
pub(crate) fn detached<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if !wait::in_task() {
        return call();
    }
    let mut call = spawn_call(call);
    // No cancel ends a join there.
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
            // The call was still queued when the runtime began to end. This task's worker may learn
            // of that later.
            end_with_runtime();
            Err(error.into())
        }
    }
}
