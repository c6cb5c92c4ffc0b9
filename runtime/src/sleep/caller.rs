//! The caller of a primitive: its number, its address, its worker.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hint::cold_path;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use crate::scheduler::block::Block;
use crate::scheduler::budget;
use crate::scheduler::current;
use crate::scheduler::shared::{self, Shared};
use crate::scheduler::simulated::point;
use crate::scheduler::threads;
use crate::tasks::context;
use crate::tasks::forbid;
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;
use crate::tasks::thread_deadlines;

thread_local! {
    /// Number of this thread as an owner, made at the first use.
    static NUMBER: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
}

/// Returns the number of the calling task or thread, which tells owners of locks apart.
///
/// No other task or thread ever has it, even after this one has ended.
#[inline(never)]
pub fn owner() -> NonZeroU64 {
    match current::with_worker_in_place(|worker| worker.context().waiting_task()) {
        Some(Some(task)) => task.header().id,
        _ => thread_number(),
    }
}

/// Returns the number of the calling task or thread; in a panic hook, that of the panicking task.
///
/// It is for locks that the owner may take again. A wait in a panic hook blocks the thread all the
/// same.
pub fn owner_in_hook() -> NonZeroU64 {
    match current::with_worker_in_place(|worker| worker.context().running()) {
        Some(Some(task)) => task.header().id,
        _ => thread_number(),
    }
}

/// Returns an address, a multiple of 8, that tells the caller from all other tasks and threads.
///
/// An address may be used again once its task or thread has ended. Compare it; do not dereference
/// it.
#[inline(never)]
pub fn waiter_address() -> NonNull<()> {
    match current::with_worker_in_place(|worker| worker.context().waiting_task()) {
        Some(Some(task)) => address_of(task),
        _ => thread_address(),
    }
}

/// Returns the [`waiter_address`] and counts one operation of the caller.
///
/// It does both in one access to the worker, for locks that are taken without a wait. The count is
/// that of [`charge`](crate::scheduler::budget::charge).
#[inline(never)]
pub fn charged_waiter_address() -> NonNull<()> {
    point();
    let task = current::with_worker_in_place(|worker| match worker.charge() {
        true => None,
        false => worker.context().waiting_task(),
    });
    match task {
        Some(Some(task)) => address_of(task),
        Some(None) => charged_waiter_address_slow(),
        None => thread_address(),
    }
}

#[inline(never)]
fn charged_waiter_address_slow() -> NonNull<()> {
    budget::charge_after();
    waiter_address()
}

#[inline]
fn address_of(task: TaskRef) -> NonNull<()> {
    NonNull::from(&task.header().waiter).cast()
}

/// Returns an address for a thread without a task.
///
/// Such a thread has no waiter in a fixed place, so a variable of its own stands for it.
#[inline]
fn thread_address() -> NonNull<()> {
    NUMBER.with(|number| {
        let address = NonNull::from(number).cast();
        if number.get().is_none() {
            cold_path();
            thread_number();
        }
        address
    })
}

/// Returns the number of a thread without a task. The first call makes it, and enters the thread for reports.
fn thread_number() -> NonZeroU64 {
    if let Some(number) = NUMBER.get() {
        return number;
    }
    let number = shared::reserve_ids(1);
    NUMBER.set(Some(number));
    threads::enter(number.get(), NUMBER.with(|number| ptr::from_ref(number).addr()));
    number
}

/// Names the task or the thread that runs here, for the message of a panic.
pub fn describe_caller() -> String {
    match context::task() {
        Some(task) => Task::counted(*task).to_string(),
        None => match thread::current().name() {
            Some(name) => format!("thread `{name}`"),
            None => format!("thread {:?}", thread::current().id()),
        },
    }
}

/// Returns true if all other tasks of the caller's runtime were asleep at one moment of the call.
///
/// It is for tests that let their tasks run as far as they get. Off a runtime there are no tasks,
/// and it returns true.
pub fn others_are_asleep() -> bool {
    current::runtime().is_none_or(|shared| are_asleep(&shared, &shared.tasks()))
}

/// Returns true if these are all tasks of the runtime, and if all but the caller were asleep at one moment of the call.
pub(crate) fn are_asleep(shared: &Shared, tasks: &[Task]) -> bool {
    let me = context::task().map(|task| *task);
    let others = || tasks.iter().map(Task::as_ref).filter(|task| Some(*task) != me);
    let words = || others().map(|task| task.header().waiter.word.why());
    let seen: Vec<_> = words().collect();
    // A task that counts as asleep may still be about to leave its stack; then its worker is not
    // parked. Or it was cancelled, and its worker does not know yet.
    let is_here = |block| current::with_worker(|worker| worker.is_home_of(block)) == Some(true);
    let is_at_rest = |block: &Arc<Block>| block.is_parked() || is_here(block.as_home());
    let at_rest = shared.blocks.iter().all(|block| is_at_rest(block) && block.cancelled.is_empty());
    // A task seen asleep may have been woken by a task that was looked at later, which then fell
    // asleep itself. A task that is in one sleep at both looks slept all the while.
    at_rest
        && shared.alive() == tasks.len() as u64
        && seen.iter().all(|word| word.is_asleep())
        && words().eq(seen)
}

/// Identifies a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerId(NonZeroUsize);

impl WorkerId {
    /// Returns true if the caller runs on this worker.
    pub fn is_current(self) -> bool {
        current_worker() == Some(self)
    }
}

/// Returns the worker of the calling task, or `None` off a worker.
pub fn current_worker() -> Option<WorkerId> {
    current::with_worker(|worker| WorkerId(worker.place()))
}

/// Returns the earliest deadline around the running code of a plain thread; `None` in a task.
///
/// For waits in the system on such a thread.
///
/// # Panics
/// Panics on a plain thread that must not wait: `what` names the wait.
#[track_caller]
pub fn begin_thread_wait(what: &str) -> Option<Instant> {
    forbid::check_thread_wait(|| what.to_owned());
    thread_deadline()
}

/// Returns true where a cancel or a timeout may end a wait: in a task, and inside a timeout of a plain
/// thread. Elsewhere a call may block its thread for ever.
pub fn may_end_early() -> bool {
    in_task() || thread_deadline().is_some()
}

fn thread_deadline() -> Option<Instant> {
    match in_task() {
        true => None,
        false => thread_deadlines::earliest().filter(|_| !thread::panicking()),
    }
}

/// Returns true where the caller is a task.
///
/// It is false on a plain thread, and inside a panic hook, where a wait blocks the thread.
pub fn in_task() -> bool {
    context::task().is_some()
}
