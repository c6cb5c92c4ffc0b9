//! Cancellation points: where a task that is cancelled unwinds, and what says that it is.

#![forbid(unsafe_code)]

use std::panic;

use crate::base::abort::say;
use crate::coroutine::stop::Stop;
use crate::scheduler::budget::overdrawn;
use crate::scheduler::current;
use crate::tasks::bounds::{Look, Target};
use crate::tasks::cancel::{CAN_UNWIND, Cancelled, may_end, may_unwind_in};
use crate::tasks::context::{self, RunningTask};
use crate::tasks::header::{Header, TaskRef};
use crate::tasks::task::Task;

/// After how many swallowed cancellations a task is named on standard error.
const PATIENCE: u16 = 100;

/// Unwinds the current task by its cancellation, or the code of it whose time has run out or whose
/// token was fired: destructors run and no panic message is printed. A task that was cancelled ends
/// by it, and its [`JoinHandle`](crate::api::join_handle::JoinHandle) answers `is_cancelled`.
///
/// Ends the process, with a line that says so, in a build with `panic = "abort"`, where nothing can
/// be unwound.
///
/// # Panics
/// Off a task, with a message: only tasks are cancelled. In a task it unwinds by a private payload,
/// which no panic hook sees; so it must not be called while the task unwinds already, which ends
/// the process as every second panic does.
pub fn unwind_cancelled() -> ! {
    let Some(task) = context::task() else { panic!("only a task can be unwound by a cancellation") };
    let cancelled = note_cancelled(task);
    if !CAN_UNWIND {
        // No operation of ours comes here: none of them is told of a cancel that it can only answer by unwinding.
        say(format_args!("{} cannot be unwound in a build with panic = \"abort\"", Task::counted(*task)));
        std::process::abort();
    }
    panic::resume_unwind(Box::new(cancelled))
}

/// Ends the code that runs, which has no value since others were cut short that it has waited for:
/// its task is cancelled as they were, and unwinds.
///
/// # Panics
/// Off a task, with `why`.
#[cold]
#[track_caller]
pub(crate) fn end_with_others(why: &'static str) -> ! {
    let Some(task) = context::task() else { panic::panic_any(why) };
    mark_with_others(*task);
    unwind_cancelled()
}

/// Marks the running task as cancelled, as others were that it has waited for: by the end of the
/// runtime, if that has begun. It may not have come to this worker yet.
pub(crate) fn mark_with_others(task: TaskRef) {
    match current::runtime().is_some_and(|runtime| runtime.is_ending()) {
        true => task.header().marks.set_overtaken(),
        false => task.header().marks.set_cancelled(),
    }
}

/// Notes that the current task was told of its cancellation, by an unwinding or, where there is
/// none, by an error.
pub fn note_cancelled_here() {
    if let Some(task) = context::task() {
        note_cancelled(task);
    }
}

fn note_cancelled(task: RunningTask) -> Cancelled {
    let header = task.header();
    let (count, bound) = match header.hit(Look::Clock) {
        Some(Target::Bound(bound)) => (&bound.raised, Some(bound.number())),
        Some(Target::Task) | None => (&header.unwound, None),
    };
    let times = count.get().saturating_add(1);
    count.set(times);
    if times > 1 {
        swallowed(task, times);
    }
    Cancelled { task: header.id, bound }
}

/// User code was told and goes on. It is slowed down so that others run, and named once.
#[cold]
fn swallowed(task: RunningTask, times: u16) {
    if times == PATIENCE {
        let what = if CAN_UNWIND { "caught" } else { "been told of" };
        say(format_args!("{} has {what} its cancellation {times} times and goes on", Task::counted(*task)));
    }
    if !task.header().is_forbidden() {
        task.suspend(Stop::Yielded);
    }
}

/// Unwinds the current task if it is cancelled, or the code of it whose time has run out or whose
/// token was fired; unless it is shielded or unwinding. For operations that complete without a
/// wait. Does nothing off a task, and where nothing can be unwound.
#[inline]
pub fn cancellation_point() {
    if CAN_UNWIND
        && let Some(task) = context::task()
        && is_due(task.header())
    {
        unwind_cancelled()
    }
}

fn is_due(header: &Header) -> bool {
    may_end(header) && !std::thread::panicking() && header.hit(Look::Clock).is_some()
}

/// Returns true if the next cancellation point unwinds the code that runs.
///
/// Its task was cancelled, or the time ran out, or the token was fired, of a scope that it is in;
/// and no shield keeps that away. False off a task.
///
/// For code that computes for long, and for builds with
/// [`panic = "abort"`](crate::task#builds-without-unwinding), where it is the way to learn of a
/// cancellation.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let counting = fibra::spawn(|| {
///     let mut steps = 0_u64;
///     while !task::is_cancelled() {
///         steps += 1;
///         task::shield(fibra::yield_now);
///     }
///     steps
/// });
/// fibra::yield_now();
/// counting.cancel();
/// assert!(counting.join().unwrap() > 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_cancelled() -> bool {
    context::task().is_some_and(|task| is_due(task.header()))
}

/// Unwinds the code that runs if [`is_cancelled`] says so.
///
/// # Cancellation
/// A cancellation point.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let task = fibra::spawn(|| loop {
///     fibra::task::check_cancelled();
///     fibra::yield_now();
/// });
/// fibra::yield_now();
/// task.cancel();
/// assert!(task.join().unwrap_err().is_cancelled());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn check_cancelled() {
    cancellation_point();
}

/// Lets the other tasks run if this one has used up its budget of operations.
///
/// It is for long computations. Each call counts as one operation of 128.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let task = fibra::spawn(|| 1);
/// (0..200).for_each(|_| fibra::task::yield_if_due());
/// assert!(task.is_finished());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn yield_if_due() {
    checkpoint();
}

/// The begin of an operation that may complete without a wait: a [`cancellation_point`], and a
/// [`charge`](crate::wait::charge) that comes before the operation instead of after it, for the price of one.
#[inline]
pub fn checkpoint() {
    checkpoint_before_spin();
}

/// The same, and whether a [`spin_until`](crate::wait::spin_until) that comes next has a chance:
/// for the price of one way to the worker.
#[inline]
pub fn checkpoint_before_spin() -> bool {
    let found = current::with_worker(|worker| {
        let is_overdrawn = worker.charge();
        let may_end = worker.context().running().is_some_and(|task| may_end(task.header()));
        (is_overdrawn | may_end, worker.has_peers())
    });
    let (is_due, has_peers) = found.unwrap_or((false, true));
    if is_due {
        checkpoint_slow();
    }
    has_peers
}

#[cold]
fn checkpoint_slow() {
    cancellation_point();
    if current::with_worker(|worker| worker.is_overdrawn()) == Some(true) {
        overdrawn();
    }
}

/// False where the code that runs must not be unwound for what befalls the tasks that it waits for:
/// in a destructor that runs while its thread panics, inside a shield, in a sheltered task, and
/// where there is no unwinding.
#[inline(never)]
pub(crate) fn may_unwind() -> bool {
    let task = current::with_worker_in_place(|worker| worker.context().waiting_task()).flatten();
    match task {
        Some(task) => may_unwind_in(task.header()),
        None => CAN_UNWIND && !std::thread::panicking(),
    }
}

/// True where an operation that can fail does so instead of waiting: while the current task unwinds
/// from its cancellation, or unwinds from a panic and is cancelled, or its time has run out; and in
/// destructors that end it once it was cancelled: of what it has captured but never began with, of
/// task-locals, of a result that nobody wants, unless it is in a shield of the user's there. Where
/// nothing can be unwound: once it is cancelled.
pub fn unwinds_cancelled() -> bool {
    let unwinds = |header: &Header| match CAN_UNWIND {
        true => std::thread::panicking() && (header.is_raised() || header.hit(Look::Clock).is_some()),
        false => is_due(header),
    };
    context::task().is_some_and(|task| unwinds(task.header()) || task.header().is_cancelled_at_end())
}

/// True where a cancel is for operations alone that can fail: while the current task unwinds, and
/// in destructors at its end. A wait for another task hears of none there, so an operation that has
/// one asks [`unwinds_cancelled`] now and then.
pub fn fails_if_cancelled() -> bool {
    std::thread::panicking() || context::task().is_some_and(|task| task.header().is_at_end())
}
