//! Cancellation points: where a cancelled task unwinds.

#![forbid(unsafe_code)]

use std::panic;

use crate::base::abort::say;
use crate::coroutine::stop::Stop;
use crate::scheduler::budget::{charge, overdrawn};
use crate::scheduler::current;
use crate::scheduler::simulated::point;
use crate::sleep::caller;
use crate::tasks::bounds::{Look, Target};
use crate::tasks::cancel::{CAN_UNWIND, Cancelled, may_end, may_unwind_in};
use crate::tasks::context::{self, RunningTask};
use crate::tasks::header::{Header, TaskRef};
use crate::tasks::task::Task;
use crate::tasks::thread_deadlines;

/// After how many swallowed cancellations a task is named on standard error.
const PATIENCE: u16 = 100;

/// Unwinds the current task by its cancellation, or a timed out or token-bound part of it.
///
/// Destructors run and no panic message is printed. A task that was cancelled ends by it, and its
/// [`JoinHandle`](crate::api::join_handle::JoinHandle) returns an error that `is_cancelled`.
///
/// In a build with `panic = "abort"`, where nothing can be unwound, it prints a line and ends the
/// process.
///
/// # Panics
/// Panics off a task: only tasks are cancelled. In a task it unwinds by a private payload, which no
/// panic hook sees. It must not be called while the task unwinds already: as every second panic,
/// that ends the process.
pub fn unwind_cancelled() -> ! {
    let cancelled = match context::task() {
        Some(task) => note_cancelled(task),
        None => {
            let scope = thread_deadlines::passed();
            assert!(scope.is_some(), "only a task can be unwound by a cancellation, or a `timeout`");
            Cancelled { task: 0, bound: scope }
        }
    };
    if !CAN_UNWIND {
        // No operation of this crate comes here: in such builds none is told of a cancel that it
        // must answer by unwinding.
        say(format_args!(
            "{} cannot be unwound in a build with panic = \"abort\"",
            caller::describe_caller()
        ));
        std::process::abort();
    }
    panic::resume_unwind(Box::new(cancelled))
}

/// Cancels and unwinds the current task, since tasks that it waited for were cancelled.
///
/// Without their values the running code has none.
///
/// # Panics
/// Panics off a task, with `why`.
#[cold]
#[track_caller]
pub(crate) fn end_with_others(why: &'static str) -> ! {
    let Some(task) = context::task() else { panic::panic_any(why) };
    mark_with_others(*task);
    unwind_cancelled()
}

/// Marks the running task as cancelled, like the tasks that it waited for.
///
/// The end of the runtime counts as the cause once it has begun, even if this worker has not seen
/// it.
pub(crate) fn mark_with_others(task: TaskRef) {
    match current::runtime().is_some_and(|runtime| runtime.is_ending()) {
        true => task.header().cancel_flags.set_cancelled_for_shutdown(),
        false => task.header().cancel_flags.set_cancelled(),
    }
}

/// Notes that the current task was told of its cancellation.
///
/// That was by an unwinding or, where there is none, by an error.
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
    Cancelled { task: header.id.get(), bound }
}

/// Slows down a task that swallows its cancellation, and names it on standard error once.
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

/// Unwinds the running code if it is cancelled, unless it is shielded or unwinding.
///
/// A task is cancelled as a whole; a scope in it, when its time runs out or its token is fired. On a
/// plain thread a scope is a timeout. It is for operations that complete without a wait. Does nothing
/// where nothing can be unwound.
#[inline]
pub fn cancellation_point() {
    if CAN_UNWIND && is_due_here() {
        unwind_cancelled()
    }
}

fn is_due(header: &Header) -> bool {
    may_end(header) && !std::thread::panicking() && header.hit(Look::Clock).is_some()
}

/// Returns true if the next cancellation point unwinds the code that runs.
///
/// That is so if its task was cancelled, or the time of an enclosing scope ran out, or the token of
/// one was fired. Inside a shield it returns false. On a plain thread a scope is a [`timeout`](crate::timeout).
///
/// It counts against the operation budget, so the caller may yield: a loop over it lets the task run
/// that cancels.
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
    charge();
    is_due_here()
}

/// Returns true if the next cancellation point unwinds the running code, without a point before.
fn is_due_here() -> bool {
    match context::task() {
        Some(task) => is_due(task.header()),
        None => thread_deadlines::is_any() && !std::thread::panicking() && is_hit(),
    }
}

/// Returns true if the running code is cancelled, shields apart, whether or not it unwinds.
pub(crate) fn is_hit() -> bool {
    match context::task() {
        Some(task) => task.header().hit(Look::Clock).is_some(),
        None => thread_deadlines::passed().is_some(),
    }
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
    point();
    cancellation_point();
}

/// Yields if the current task has used up its budget of operations.
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

/// Begins an operation that may complete without a wait.
///
/// It is a [`cancellation_point`], and a [`charge`] that comes before the
/// operation instead of after it, for the price of one.
#[inline]
pub fn checkpoint() {
    checkpoint_before_spin();
}

/// Does a [`checkpoint`] and returns whether a following spin has a chance.
///
/// It does both in one access to the worker. The spin is [`back_off_until`](crate::wait::back_off_until).
#[inline]
pub fn checkpoint_before_spin() -> bool {
    point();
    let found = current::with_worker(|worker| {
        let is_overdrawn = worker.charge();
        let may_end = worker.context().waiting_task().is_some_and(|task| may_end(task.header()));
        (is_overdrawn | may_end, worker.has_peers())
    });
    let (is_due, has_peers) = found.unwrap_or_else(|| (thread_deadlines::is_any(), true));
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

/// Returns false where the fate of awaited tasks must not unwind the running code.
///
/// That is in a destructor that runs while its thread panics, inside a shield, in a sheltered task,
/// and where there is no unwinding.
#[inline(never)]
pub(crate) fn may_unwind() -> bool {
    let task = current::with_worker_in_place(|worker| worker.context().waiting_task()).flatten();
    match task {
        Some(task) => may_unwind_in(task.header()),
        None => CAN_UNWIND && !std::thread::panicking(),
    }
}

/// Returns true where a fallible operation fails instead of waiting.
///
/// That is while the current task unwinds from its cancellation, and while it unwinds from a panic
/// and is cancelled or out of time. It is also so in the destructors that end a cancelled task:
/// locals, unclaimed result, unstarted closure; but not inside a shield of the user's there. Where
/// nothing can be unwound, it is so once the task is cancelled.
pub fn unwinds_cancelled() -> bool {
    let Some(task) = context::task() else {
        return if CAN_UNWIND { std::thread::panicking() && is_hit() } else { is_due_here() };
    };
    let header = task.header();
    let unwinds = match CAN_UNWIND {
        true => std::thread::panicking() && (header.is_raised() || is_hit()),
        false => is_due(header),
    };
    unwinds || header.is_cancelled_at_end()
}

/// Returns true where a cancel ends fallible operations only.
///
/// That is while the current task unwinds, and in destructors at its end. A cancel does not end a
/// wait for another task there. So an operation with such a wait polls [`unwinds_cancelled`].
pub fn fails_if_cancelled() -> bool {
    std::thread::panicking() || context::task().is_some_and(|task| task.header().is_at_end())
}
