//! The operation budget: no loop over things that are always ready starves the tasks beside it.

#![forbid(unsafe_code)]

use crate::coroutine::stop::Stop;
use crate::scheduler::current;
use crate::tasks::context;

/// Operations in one turn of a task before it has to let the others run.
pub(crate) const OPERATIONS: i64 = 128;

/// Counts one operation of the current task that completed without a wait; after 128 of them in one turn the
/// task yields. Does nothing off a task, and inside [`unconstrained`](crate::task::unconstrained).
#[inline]
pub fn charge() {
    if current::with_worker(|worker| worker.charge()) == Some(true) {
        overdrawn();
    }
}

/// Counts one operation, as [`charge`] does, from inside the poll of a future, where the task must not suspend: what polls
/// may hold anything. True once the turn is used up; the future then wakes itself and returns `Pending`, and whoever polls
/// it lets the others run.
#[inline]
pub fn charge_poll() -> bool {
    current::with_worker(|worker| worker.charge()) == Some(true)
        && context::task().is_some_and(|task| !task.header().unconstrained.get())
}

/// The current task has used its turn up.
#[cold]
pub(crate) fn overdrawn() {
    if let Some(task) = context::task()
        && !task.header().unconstrained.get()
        && !task.header().is_forbidden()
    {
        // No cancellation point: the operation has an outcome already, which an unwinding would lose.
        task.suspend(Stop::Yielded);
    }
}
