//! The sleep of a task.

use std::time::Instant;

use super::word::Epoch;
use super::{
    Asleep, CAN_UNWIND, WaitStrategy, WakeHandle, Waking, Withdrawal, note_cancelled_here, spin_until, thread,
};
use crate::current;
use crate::task::bounds::Look;
use crate::task::{TaskRef, forbid};

/// Puts the caller to sleep until it is notified, until `deadline`, or until its task is cancelled.
///
/// A cancellation point: [`Waking::Cancelled`] comes when the task is cancelled, unless it is shielded or unwinding.
/// The caller then unwinds by [`unwind_cancelled`](super::unwind_cancelled).
///
/// Where nothing can be unwound no caller hears of a cancel: a sleep with a deadline of its own ends as if that had come, for
/// its caller has a way to say that it waited in vain; any other goes on.
pub fn sleep(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    match (CAN_UNWIND, deadline) {
        (true, _) => sleep_or_cancel(how, deadline),
        (false, None) => sleep_shielded(how, None),
        (false, Some(_)) => match sleep_or_cancel(how, deadline) {
            Waking::Cancelled => {
                note_cancelled_here();
                Waking::TimedOut
            }
            why => why,
        },
    }
}

/// As [`sleep`], for those who pass a cancellation on or report it, and so hear of it in every build.
#[inline(always)]
pub fn sleep_or_cancel(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
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
        // Not left to the timer: a notification that comes soon would be first again and again, and the scope never end.
        Asleep::Stay if sleep.is_late() => Waking::Cancelled,
        Asleep::Stay => {
            // SAFETY: by this function's contract.
            unsafe { leave_stack(task, sleep.until, epoch) };
            match header.waiter.word.why().notified {
                true => Waking::Notified,
                // SAFETY: as above.
                false => unsafe { sleep.last(epoch) },
            }
        }
    };
    if how.before_awake(why) == Withdrawal::Withdrawn {
        return why;
    }
    // SAFETY: as above.
    unsafe { await_landing(task, epoch) };
    Waking::Notified
}

/// Sleeps on, shielded, until the notification lands that is on its way.
///
/// # Safety
/// `task` is the current task.
#[cold]
unsafe fn await_landing(task: TaskRef, epoch: Epoch) {
    while !task.header().waiter.word.await_landing() {
        // SAFETY: by this function's contract.
        unsafe { leave_stack(task, None, epoch) };
    }
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
    /// True if the time of a scope around it has passed.
    fn is_late(&self) -> bool {
        self.enclosing.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// What has ended the sleep; sleeps on while that does not concern it. For all but a notification, which is worth a shorter
    /// way.
    ///
    /// # Safety
    /// The task is the current one.
    #[cold]
    unsafe fn last(&self, epoch: Epoch) -> Waking {
        let header = self.task.header();
        loop {
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
            // SAFETY: by this function's contract.
            unsafe { leave_stack(self.task, self.until, epoch) };
        }
    }
}

/// Off the stack, until something made the task ready again.
///
/// # Safety
/// `task` is the current task.
#[inline(always)]
unsafe fn leave_stack(task: TaskRef, deadline: Option<Instant>, epoch: Epoch) {
    if let Some(deadline) = deadline {
        arm_timer(task, deadline, epoch);
    }
    // SAFETY: by this function's contract.
    unsafe { task.header().suspend(crate::coroutine::Stop::Asleep) };
}

/// Out of line, so that a sleep without a deadline, whose frame a wake returns through, is short.
#[inline(never)]
fn arm_timer(task: TaskRef, deadline: Instant, epoch: Epoch) {
    current::with_worker(|worker| worker.arm_timer(task, deadline, epoch));
}
