//! The operation budget: no loop over things that are always ready starves the tasks beside it.

use crate::coroutine::Stop;
use crate::current;

/// Operations in one turn of a task before it has to let the others run.
pub(crate) const OPERATIONS: u32 = 128;

/// Counts one operation of the current task that completed without a wait; after 128 of them in one turn the
/// task yields. Does nothing off a task, and inside [`unconstrained`](crate::task::unconstrained).
#[inline]
pub fn charge() {
    if current::with_worker(|worker| worker.charge()) == Some(true) {
        overdrawn();
    }
}

/// The current task has used its turn up.
#[cold]
pub(crate) fn overdrawn() {
    if let Some(task) = current::task()
        && !task.header().unconstrained.get()
        && task.header().forbidden.get() == 0
    {
        // No cancellation point: the operation has an outcome already, which an unwinding would lose.
        // SAFETY: `task` is the current task.
        unsafe { task.header().suspend(Stop::Yielded) };
    }
}
