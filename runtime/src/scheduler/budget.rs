//! The operation budget: a loop over operations that are always ready does not starve other tasks.

#![forbid(unsafe_code)]

use crate::coroutine::stop::Stop;
use crate::scheduler::current;
use crate::scheduler::simulated::point;
use crate::tasks::context;

/// Operations in one run of a task before it has to yield.
pub(crate) const OPERATIONS: i64 = 128;

/// Counts one operation of the current task that completes without a wait.
///
/// After 128 of them in one run the task yields. Does nothing off a task, and inside
/// [`unconstrained`](crate::task::unconstrained). It is a [`point`] as well, so it
/// comes before the operation.
#[inline]
pub fn charge() {
    point();
    charge_after();
}

/// Counts one operation as [`charge`] does, and is no point: for operations that are done.
#[inline]
pub fn charge_after() {
    if current::with_worker(|worker| worker.charge()) == Some(true) {
        overdrawn();
    }
}

/// Counts one operation as [`charge`] does, from inside the poll of a future.
///
/// The task must not suspend there, since the polling code may hold anything. Returns true once the
/// budget is used up. The future then wakes itself and returns `Pending`, and the polling code
/// yields.
#[inline]
pub fn charge_poll() -> bool {
    current::with_worker(|worker| worker.charge()) == Some(true)
        && context::task().is_some_and(|task| !task.header().unconstrained.get())
}

/// Yields: the current task has used up its budget.
#[cold]
pub(crate) fn overdrawn() {
    if let Some(task) = context::task()
        && !task.header().unconstrained.get()
        && !task.header().is_forbidden()
    {
        current::with_worker(|worker| worker.counters().budget_yields.add(1));
        // No cancellation point: the operation has an outcome already, which an unwinding would lose.
        task.suspend(Stop::Yielded);
    }
}
