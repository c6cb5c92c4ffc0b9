//! Cancellation: a sticky mark on a task, and the unwinding that the mark causes at the next cancellation point.
//!
//! Whether a task ended by its cancellation is decided by the task's own record of having been unwound, not by the
//! payload alone: a payload that user code caught and raised again elsewhere means nothing there.

use std::any::Any;
use std::panic;

use super::join::JoinError;
use super::raw::drop_payload;
use super::{Task, TaskRef, header::Header};
use crate::current;
use crate::report::say;
use crate::wait::word::Woke;
use crate::worker::budget::charge;

/// After how many swallowed cancellations a task is named on standard error.
const PATIENCE: u32 = 100;

/// The private payload of a cancellation.
struct Cancelled;

impl TaskRef {
    /// Notifies the present sleep, by one who has unlinked it.
    pub(crate) fn notify(self) {
        if self.header().waiter.word.notify() == Woke::Queue {
            crate::worker::wake(self);
        }
    }

    /// Marks the task as cancelled and ends its sleep, if it is in one that a cancel may end.
    pub(crate) fn cancel(self) {
        self.header().set_cancelled();
        if self.header().waiter.word.cancel() == Woke::Queue {
            crate::worker::wake(self);
        }
    }
}

/// Unwinds the current task by its cancellation: destructors run, no panic message is printed, and the task's
/// [`JoinHandle`](super::JoinHandle) answers `is_cancelled`.
///
/// # Panics
/// Always, with a private payload. Off a task, with a message: only tasks are cancelled.
pub fn unwind_cancelled() -> ! {
    let Some(task) = current::task() else { panic!("only a task can be unwound by a cancellation") };
    let header = task.header();
    let times = header.unwound.get().saturating_add(1);
    header.unwound.set(times);
    if times > 1 {
        swallowed(header, task, times);
    }
    panic::resume_unwind(Box::new(Cancelled))
}

/// User code caught the unwinding and goes on. It is slowed down so that others run, and named once.
#[cold]
fn swallowed(header: &Header, task: TaskRef, times: u32) {
    if times == PATIENCE {
        say(format_args!("{} has caught its cancellation {times} times and goes on", Task::counted(task)));
    }
    // SAFETY: `task` is the current task.
    unsafe { header.suspend(crate::coroutine::Stop::Yielded) };
}

/// Unwinds the current task if it is cancelled, unless it is shielded or unwinding. For operations that complete
/// without a wait. Does nothing off a task.
#[inline]
pub fn cancellation_point() {
    if let Some(task) = current::task()
        && task.header().is_cancelled()
        && !task.header().is_masked()
    {
        unwind_cancelled()
    }
}

/// The begin of an operation that may complete without a wait: a [`cancellation_point`], and a
/// [`charge`](crate::worker::budget::charge) that comes before the operation instead of after it, for the price of one.
#[inline]
pub fn checkpoint() {
    let due = current::with_worker(|worker| {
        let overdrawn = worker.charge();
        overdrawn || worker.running().is_some_and(|task| task.header().is_cancelled())
    });
    if due == Some(true) {
        checkpoint_slow();
    }
}

#[cold]
fn checkpoint_slow() {
    cancellation_point();
    charge();
}

/// True while the current task unwinds from its cancellation.
pub fn unwinds_from_cancel() -> bool {
    std::thread::panicking() && current::task().is_some_and(|task| task.header().unwound.get() > 0)
}

/// What the panic of a task means.
pub(crate) fn judge(task: TaskRef, payload: Box<dyn Any + Send>) -> JoinError {
    let handle = Task::counted(task);
    if payload.is::<Cancelled>() && task.header().unwound.get() > 0 {
        drop_payload(payload);
        return JoinError::cancelled(&handle);
    }
    JoinError::panicked(&handle, payload)
}
