//! Cancellation: a sticky mark on a task, and the unwinding that the mark causes at the next cancellation point.
//!
//! Whether a task, or a scope in it, was ended by a cancellation is told by the payload, which names it: one that user code
//! caught and raised again elsewhere means nothing there.
//!
//! A build with `panic = "abort"` has no unwinding, and no way to leave the code that runs. There the points do nothing, and
//! a cancel ends the waits alone that can say so: see [`crate::wait::sleep`].

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

/// The private payload of a cancellation. It says what it was raised for: what it passes on its way may have been unwound
/// before, and have gone on.
pub(crate) struct Cancelled {
    pub(crate) task: u64,
    /// The number of the scope that ends; none if the task does.
    pub(crate) bound: Option<u64>,
}

impl Cancelled {
    /// True for a payload that was raised for that scope of the task, or for the task itself.
    pub(crate) fn ends(payload: &(dyn Any + Send), header: &Header, bound: Option<&Bound>) -> bool {
        let ends = |cancelled: &Cancelled| {
            cancelled.task == header.id && cancelled.bound == bound.map(Bound::number)
        };
        payload.downcast_ref().is_some_and(ends)
    }
}

/// False if nothing can end the code that runs; a scope may, whose time is only known to the clock.
pub(crate) fn may_end(header: &Header) -> bool {
    header.marks.any() || !header.bounds.get().is_null()
}

/// The same for the current task, whose header this is.
#[inline]
pub(crate) fn may_unwind_in(header: &Header) -> bool {
    CAN_UNWIND && !std::thread::panicking() && !header.is_shielded() && !header.is_sheltered()
}

/// True for the payload by which the current task unwinds from its cancellation.
pub(crate) fn is_of_here(payload: &(dyn Any + Send)) -> bool {
    context::task().is_some_and(|task| Cancelled::ends(payload, task.header(), None))
}

/// What the panic of a task means.
pub(crate) fn judge(task: TaskRef, payload: Box<dyn Any + Send>) -> JoinError {
    let handle = Task::counted(task);
    if Cancelled::ends(&*payload, task.header(), None) {
        drop_payload(payload);
        return JoinError::cancelled(&handle);
    }
    JoinError::panicked(&handle, payload)
}
