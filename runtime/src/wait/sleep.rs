//! The sleep of a task.

use std::time::Instant;

use super::word::Epoch;
use super::{Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal, thread};
use crate::current;
use crate::task::{Header, TaskRef};

/// Puts the caller to sleep until it is notified, until `deadline`, or until its task is cancelled.
///
/// A cancellation point: [`Waking::Cancelled`] comes when the task is cancelled, unless it is shielded or unwinding.
/// The caller then unwinds by [`unwind_cancelled`](super::unwind_cancelled), or reports it where it has an error channel.
pub fn sleep(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    match current::task() {
        // SAFETY: the current task is alive while it runs, and this is its own thread of control.
        Some(task) => unsafe { sleep_in(task, how, deadline, task.header().is_masked()) },
        None => thread::sleep(how, deadline),
    }
}

/// As [`sleep`], but no cancellation ends it: for locks, and for waits that somebody else's memory depends on.
pub fn sleep_shielded(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    match current::task() {
        // SAFETY: as in `sleep`.
        Some(task) => unsafe { sleep_in(task, how, deadline, true) },
        None => thread::sleep(how, deadline),
    }
}

/// # Safety
/// `task` is the current task.
unsafe fn sleep_in(
    task: TaskRef,
    how: &impl WaitStrategy,
    deadline: Option<Instant>,
    shielded: bool,
) -> Waking {
    let header = task.header();
    let epoch = header.waiter.word.begin(shielded);
    let why = match how.after_asleep(WakeHandle::new(task.waiter(), epoch, &())) {
        Asleep::Rouse => Waking::Notified,
        Asleep::Stay => {
            // SAFETY: by this function's contract.
            unsafe { leave_stack(task, deadline, epoch) };
            waking(header)
        }
    };
    if how.before_awake(why) == Withdrawal::Withdrawn {
        return why;
    }
    while !header.waiter.word.await_landing() {
        // SAFETY: as above.
        unsafe { leave_stack(task, None, epoch) };
    }
    Waking::Notified
}

/// Off the stack, until something made the task ready again.
///
/// # Safety
/// `task` is the current task.
unsafe fn leave_stack(task: TaskRef, deadline: Option<Instant>, epoch: Epoch) {
    if let Some(deadline) = deadline {
        current::with_worker(|worker| worker.arm_timer(task, deadline, epoch));
    }
    // SAFETY: by this function's contract.
    unsafe { task.header().suspend(crate::coroutine::Stop::Asleep) };
}

fn waking(header: &Header) -> Waking {
    let why = header.waiter.word.why();
    match (why.notified, why.timed_out) {
        (true, _) => Waking::Notified,
        (false, true) => Waking::TimedOut,
        (false, false) => Waking::Cancelled,
    }
}
