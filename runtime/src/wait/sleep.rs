//! The sleep of a task.

use std::time::Instant;

use super::word::Epoch;
use super::{Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal, spin_until, thread};
use crate::current;
use crate::task::bounds::Look;
use crate::task::{TaskRef, forbid};

/// Puts the caller to sleep until it is notified, until `deadline`, or until its task is cancelled.
///
/// A cancellation point: [`Waking::Cancelled`] comes when the task is cancelled, unless it is shielded or unwinding.
/// The caller then unwinds by [`unwind_cancelled`](super::unwind_cancelled), or reports it where it has an error channel.
pub fn sleep(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    match current::task() {
        // SAFETY: the current task is alive while it runs, and this is its own thread of control.
        Some(task) => unsafe { sleep_in(task, how, deadline, std::thread::panicking()) },
        None => thread::sleep(how, deadline),
    }
}

/// As [`sleep`], but no cancellation and no enclosing deadline ends it: for locks, and for waits that somebody else's memory
/// depends on.
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
    forbid::check(header);
    let enclosing = if shielded { None } else { header.enclosing_deadline() };
    let sleep = Sleep { task, own: deadline, enclosing, until: earlier(deadline, enclosing) };
    let epoch = header.waiter.word.begin(shielded || !header.is_open());
    let why = match how.after_asleep(WakeHandle::new(task.waiter(), epoch, &())) {
        Asleep::Rouse => Waking::Notified,
        // Published, and still on its stack: a wake that comes now costs nothing but its bit.
        Asleep::Stay if how.may_spin() && spin_until(|| header.waiter.word.why().notified) => {
            Waking::Notified
        }
        // SAFETY: by this function's contract.
        Asleep::Stay => unsafe { sleep.last(epoch) },
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

fn earlier(own: Option<Instant>, enclosing: Option<Instant>) -> Option<Instant> {
    match (own, enclosing) {
        (Some(own), Some(enclosing)) => Some(own.min(enclosing)),
        _ => own.or(enclosing),
    }
}

/// One sleep of a task.
struct Sleep {
    task: TaskRef,
    own: Option<Instant>,
    enclosing: Option<Instant>,
    /// The earlier one of its own deadline and the enclosing one.
    until: Option<Instant>,
}

impl Sleep {
    /// Sleeps until something ends it that concerns it.
    ///
    /// # Safety
    /// The task is the current one.
    unsafe fn last(&self, epoch: Epoch) -> Waking {
        let header = self.task.header();
        // Not left to the timer: a notification that comes soon would be first again and again, and the scope never end.
        if self.enclosing.is_some_and(|deadline| deadline <= Instant::now()) {
            return Waking::Cancelled;
        }
        loop {
            // SAFETY: by this function's contract.
            unsafe { leave_stack(self.task, self.until, epoch) };
            let why = header.waiter.word.why();
            match (why.notified, why.timed_out) {
                (true, _) => return Waking::Notified,
                (false, true) if self.own == self.until => return Waking::TimedOut,
                // The time of a scope around it: that is a cancellation.
                (false, true) => return Waking::Cancelled,
                (false, false) if header.hit(Look::Marks).is_some() => return Waking::Cancelled,
                // The cancel concerned code outside of a shield, or a scope that has ended.
                (false, false) => header.waiter.word.go_on(),
            }
        }
    }
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
