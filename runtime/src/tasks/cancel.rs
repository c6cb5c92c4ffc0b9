//! Cancellation: a sticky flag of a task, and the unwinding that it causes at the next cancellation
//! point.
//!
//! The payload of the unwinding names the task or the scope that ends. A payload that user code
//! caught and raised again elsewhere means nothing there.
//!
//! A build with `panic = "abort"` has no unwinding, and no way to leave the running code. There the
//! points do nothing, and a cancel ends only the waits that can report it: see
//! [`crate::wait::sleep`].

#![forbid(unsafe_code)]

use std::any::Any;

use crate::base::payload::drop_payload;
use crate::tasks::bounds::Bound;
use crate::tasks::context;
use crate::tasks::header::{Header, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::task::Task;

/// False in a build with `panic = "abort"`.
pub const CAN_UNWIND: bool = cfg!(panic = "unwind");

/// Carries a cancellation: the private payload of its unwinding.
///
/// It names its target, since scopes that it passes may have been unwound before, and have gone on.
pub(crate) struct Cancelled {
    /// 0 on a plain thread.
    pub(crate) task: u64,
    /// The number of the scope that ends; none if the task does.
    pub(crate) bound: Option<u64>,
}

impl Cancelled {
    /// Returns true for a payload that was raised for that scope of the task, or for the task
    /// itself.
    pub(crate) fn ends(payload: &(dyn Any + Send), header: &Header, bound: Option<&Bound>) -> bool {
        let ends = |cancelled: &Cancelled| {
            cancelled.task == header.id.get() && cancelled.bound == bound.map(Bound::number)
        };
        payload.downcast_ref().is_some_and(ends)
    }

    /// Returns true for a payload that was raised for that scope of a plain thread.
    pub(crate) fn ends_in_thread(payload: &(dyn Any + Send), scope: u64) -> bool {
        let ends = |cancelled: &Cancelled| cancelled.bound == Some(scope);
        payload.downcast_ref().is_some_and(ends)
    }
}

/// Returns false if nothing can end the running code.
///
/// A deadline counts as able to, since only the clock tells.
pub(crate) fn may_end(header: &Header) -> bool {
    header.cancel_flags.any() || !header.bounds.get().is_null()
}

/// Returns true where a cancellation may unwind the current task, whose header this is.
#[inline]
pub(crate) fn may_unwind_in(header: &Header) -> bool {
    CAN_UNWIND && !std::thread::panicking() && !header.is_shielded() && !header.is_sheltered()
}

/// Returns true for the payload by which the current task unwinds from its cancellation.
pub(crate) fn is_of_here(payload: &(dyn Any + Send)) -> bool {
    context::task().is_some_and(|task| Cancelled::ends(payload, task.header(), None))
}

/// Makes the error that the panic of a task means.
pub(crate) fn judge(task: TaskRef, payload: Box<dyn Any + Send>) -> JoinError {
    let handle = Task::counted(task);
    if Cancelled::ends(&*payload, task.header(), None) {
        drop_payload(payload);
        return JoinError::cancelled(&handle);
    }
    JoinError::panicked(&handle, payload)
}
