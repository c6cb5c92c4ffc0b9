//! What a cancel does to a task that waits for a descriptor.

#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use fibra_runtime::wait;

/// The longest that one closure on the blocking pool waits, and so the longest that a cancel goes
/// unseen there.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// Unwinds the task, or tells what its operation fails with.
#[cold]
pub(crate) fn end_by_cancel() -> io::Error {
    match wait::CAN_UNWIND && !std::thread::panicking() && !wait::unwinds_cancelled() {
        true => wait::unwind_cancelled(),
        false => cancelled(),
    }
}

/// Fails in a cancelled task that unwinds, or runs its last destructors.
pub(crate) fn check_may_wait() -> io::Result<()> {
    match wait::unwinds_cancelled() {
        true => Err(cancelled()),
        false => Ok(()),
    }
}

/// Returns the error of an operation in a cancelled task that cannot be unwound.
///
/// The task unwinds already, or runs its last destructors, or the build cannot unwind.
pub(crate) fn cancelled() -> io::Error {
    if !wait::CAN_UNWIND {
        wait::note_cancelled_here();
    }
    io::Error::new(
        io::ErrorKind::TimedOut,
        "a cancelled task does not wait for its sockets, pipes and children",
    )
}
