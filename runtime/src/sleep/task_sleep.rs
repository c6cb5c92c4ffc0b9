//! The sleep of a task.

#![forbid(unsafe_code)]

use std::time::Instant;

use crate::base::clock;
use crate::coroutine::stop::Stop;
use crate::scheduler::current;
use crate::scheduler::driver::Id;
use crate::scheduler::worker::Worker;
use crate::sleep::back_off::{self, Looks};
use crate::sleep::cancel_points::note_cancelled_here;
use crate::tasks::cancel::CAN_UNWIND;
use crate::tasks::context::RunningTask;
use crate::tasks::forbid;
use crate::tasks::header::Header;
use crate::tasks::thread_deadlines;
use crate::waiter::description::WaitRecord;
use crate::waiter::kind::WakeHandle;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};
use crate::waiter::thread;
use crate::waiter::word::CancelPolicy;

/// Sleeps until the caller is notified or its task cancelled, or until `deadline`.
///
/// A cancellation point: [`Waking::Cancelled`] comes when the task is cancelled, unless it is shielded or unwinding.
/// The caller then unwinds by [`unwind_cancelled`](crate::sleep::cancel_points::unwind_cancelled).
///
/// Where nothing can be unwound it never returns [`Waking::Cancelled`]. A cancelled sleep with a
/// deadline of its own ends as if that had come, for its caller can report a timeout. A sleep
/// without one goes on.
#[inline(always)]
#[track_caller]
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

/// Sleeps as [`sleep`] does, and returns a cancellation in every build.
///
/// It is for callers that pass the cancellation on or report it.
#[inline(always)]
#[track_caller]
pub fn sleep_or_cancel(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    sleep_as(CancelPolicy::Open, how, deadline)
}

/// Sleeps as [`sleep_or_cancel`] does, and is also cancelled while the task unwinds or ends.
///
/// It is for operations that fail while the task unwinds from a panic, and in destructors at the
/// task's end. The caller must not unwind there.
#[inline(always)]
#[track_caller]
pub fn sleep_or_fail(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    sleep_as(CancelPolicy::AtEnd, how, deadline)
}

/// Sleeps until notified or `deadline`; no cancellation and no enclosing deadline ends it.
///
/// It is for locks, and for waits that keep borrowed memory alive.
#[inline(always)]
#[track_caller]
pub fn sleep_shielded(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    sleep_as(CancelPolicy::Ignore, how, deadline)
}

/// Sleeps; the usual case is inlined up to the user's code.
///
/// A return that is open over a switch is mispredicted when another task returns in between, which
/// costs more than the rest of the sleep.
#[inline(always)]
#[track_caller]
fn sleep_as(policy: CancelPolicy, how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    match current::task_with(Worker::has_peers) {
        Some((task, has_peers)) if deadline.is_none() && is_usual(task.header()) => {
            let may_spin = has_peers && how.may_spin();
            sleep_in(task, how, None, None, open_unless(policy == CancelPolicy::Ignore), may_spin)
        }
        here => sleep_unusual(here.map(|(task, _)| task), policy, how, deadline),
    }
}

/// Sleeps without a deadline or a spin, if `wakes` accepts the driver of the caller's worker.
///
/// Otherwise as [`sleep_or_cancel`], with a single access to the worker. Returns `None`, before
/// anything is published, for a caller that is no task, has bounds, panics or must not suspend. So
/// it does for a cancelled task where nothing can be unwound. `wakes` may have been called all the
/// same. It must not wait.
#[inline(always)]
pub fn sleep_by_driver(wakes: impl FnOnce(Id) -> bool, how: &impl WaitStrategy) -> Option<Waking> {
    match current::task_with(|worker| wakes(worker.driver_id())) {
        Some((task, true))
            if is_usual(task.header()) && (CAN_UNWIND || !task.header().cancel_flags.any()) =>
        {
            Some(sleep_in(task, how, None, None, CancelPolicy::Open, false))
        }
        _ => None,
    }
}

/// Returns true where the running code has no bounds, no panic, and no ban on suspension.
#[inline(always)]
fn is_usual(header: &Header) -> bool {
    header.bounds.get().is_null() && !header.is_forbidden() && !std::thread::panicking()
}

#[inline(never)]
#[track_caller]
fn sleep_unusual(
    task: Option<RunningTask>,
    policy: CancelPolicy,
    how: &impl WaitStrategy,
    deadline: Option<Instant>,
) -> Waking {
    let Some(task) = task else {
        return sleep_in_thread(policy, how, deadline);
    };
    let header = task.header();
    forbid::check_wait(header, how.record());
    let shielded = is_shielded(policy);
    let enclosing = if shielded { None } else { header.enclosing_deadline() };
    let policy = match policy == CancelPolicy::AtEnd && header.is_at_end() {
        true => CancelPolicy::AtEnd,
        false => open_unless(shielded || !header.is_open()),
    };
    sleep_in(task, how, deadline, enclosing, policy, how.may_spin())
}

/// Sleeps on a plain thread, where only deadlines around the running code cancel.
#[track_caller]
fn sleep_in_thread(policy: CancelPolicy, how: &impl WaitStrategy, own: Option<Instant>) -> Waking {
    match policy {
        CancelPolicy::Ignore => forbid::note_thread_lock(how.record()),
        _ => forbid::check_thread_wait(|| forbid::name_of(how.record())),
    }
    let enclosing = if is_shielded(policy) { None } else { thread_deadlines::earliest() };
    let until = earlier(own, enclosing);
    match thread::sleep(how, until, |done| back_off::back_off_until(Looks::Often, done)) {
        Waking::TimedOut if own != until => Waking::Cancelled,
        why => why,
    }
}

/// Returns true if no cancel ends a sleep of the running code. A task that unwinds sleeps on, unless it fails instead.
fn is_shielded(policy: CancelPolicy) -> bool {
    policy == CancelPolicy::Ignore || (policy == CancelPolicy::Open && std::thread::panicking())
}

#[inline(always)]
fn open_unless(shielded: bool) -> CancelPolicy {
    if shielded { CancelPolicy::Ignore } else { CancelPolicy::Open }
}

#[inline(always)]
fn sleep_in(
    task: RunningTask,
    how: &impl WaitStrategy,
    own: Option<Instant>,
    enclosing: Option<Instant>,
    policy: CancelPolicy,
    may_spin: bool,
) -> Waking {
    let word = &task.header().waiter.word;
    debug_assert!(!task.header().is_timed(), "what made the task ready has disarmed its timer");
    // Decided before the sleep is published: a task that does not spin is asleep at once.
    let spins = may_spin && back_off::is_worth_while();
    task.set_record(how.record());
    _ = word.begin_in_task(policy, !spins);
    let why = match how.after_asleep(WakeHandle::new(task.waiter(), &())) {
        Asleep::Rouse => stay(task, Waking::Notified),
        // Published, and still on its stack: a wake that comes now costs nothing but its bit.
        // The publication may have made other tasks ready here.
        Asleep::Stay
            if spins
                && !back_off::is_another_ready()
                && back_off::spin(Looks::Often, || word.why().notified) =>
        {
            Waking::Notified
        }
        // Not left to the timer: a notification that comes soon would be first again and again, and the scope never end.
        Asleep::Stay if clock::has_passed(enclosing) => stay(task, Waking::Cancelled),
        Asleep::Stay => {
            leave_stack(task, earlier(own, enclosing));
            match word.why().notified {
                true => Waking::Notified,
                false => last(task, how.record(), own, enclosing),
            }
        }
    };
    if how.before_awake(why) == Withdrawal::Withdrawn {
        return why;
    }
    await_landing(task);
    Waking::Notified
}

/// Ends a sleep that has not left its stack, for the reason `why`.
///
/// A wake that came first queues the task, which then leaves its stack until it runs again. A
/// notification has precedence over `why`.
#[cold]
fn stay(task: RunningTask, why: Waking) -> Waking {
    let word = &task.header().waiter.word;
    if !word.rise() {
        leave_stack(task, None);
    }
    if word.why().notified { Waking::Notified } else { why }
}

/// Sleeps on, shielded, until the notification that is under way lands.
#[cold]
fn await_landing(task: RunningTask) {
    while !task.header().waiter.word.await_landing() {
        // The wake that ended the first part has overwritten the record by its link. Virtual time stands meanwhile.
        task.set_record(WaitRecord::UNKNOWN);
        leave_stack(task, None);
    }
}

#[inline(always)]
fn earlier(own: Option<Instant>, enclosing: Option<Instant>) -> Option<Instant> {
    match (own, enclosing) {
        (Some(own), Some(enclosing)) => Some(own.min(enclosing)),
        _ => own.or(enclosing),
    }
}

/// Finds what has ended a sleep, and sleeps on where the cause does not concern it.
#[cold]
fn last(
    task: RunningTask,
    record: *const WaitRecord,
    own: Option<Instant>,
    enclosing: Option<Instant>,
) -> Waking {
    let header = task.header();
    let until = earlier(own, enclosing);
    loop {
        let why = header.waiter.word.why();
        match (why.notified, why.timed_out) {
            (true, _) => return Waking::Notified,
            (false, true) if own == until => return Waking::TimedOut,
            // The time of a scope around it: that is a cancellation.
            (false, true) => return Waking::Cancelled,
            (false, false) if header.is_marked(why.at_end) => return Waking::Cancelled,
            // The cancel concerned code outside of a shield, or a scope that has ended.
            (false, false) => {
                task.set_record(record);
                header.waiter.word.go_on();
            }
        }
        leave_stack(task, until);
    }
}

/// Leaves the stack until the task is ready again.
#[inline(always)]
fn leave_stack(task: RunningTask, deadline: Option<Instant>) {
    // What makes the task ready disarms its timer; a strategy that wakes its own sleep has done so
    // already.
    if let Some(deadline) = deadline
        && !task.header().waiter.word.why().is_woken()
    {
        arm_timer(task, deadline);
    }
    task.suspend(Stop::Asleep);
}

#[inline(never)]
fn arm_timer(task: RunningTask, deadline: Instant) {
    current::with_worker(|worker| worker.arm_timer(*task, deadline));
}
