//! Who waits or unlocks: what a primitive has to know of its caller.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use crate::scheduler::block::Block;
use crate::scheduler::budget;
use crate::scheduler::current;
use crate::scheduler::shared;
use crate::tasks::context;
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;

thread_local! {
    /// The number of this thread as an owner, once it was asked for.
    static NUMBER: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
}

/// The number of the task or the thread that runs here. No other task and no other thread ever has it, also after this one
/// has ended: owners of locks are told apart by it.
#[inline(never)]
pub fn owner() -> NonZeroU64 {
    match current::with_worker_in_place(|worker| worker.context().waiting_task()) {
        Some(Some(task)) => numbered(task.header().id),
        _ => thread_number(),
    }
}

/// The same, and inside a panic hook that of the task which panics: for locks that may be taken again by who has them. A wait there is
/// the thread's all the same.
pub fn owner_in_hook() -> NonZeroU64 {
    match current::with_worker_in_place(|worker| worker.context().running()) {
        Some(Some(task)) => numbered(task.header().id),
        _ => thread_number(),
    }
}

fn numbered(id: u64) -> NonZeroU64 {
    NonZeroU64::new(id).expect("numbers begin with 1")
}

/// The address that tells the waiter of the caller, a task or a thread, from all waiters that exist. A multiple of 8.
///
/// An address may be used again once its task or thread has ended. Compare it, and do not dereference it.
#[inline(never)]
pub fn waiter_address() -> NonNull<()> {
    match current::with_worker_in_place(|worker| worker.context().waiting_task()) {
        Some(Some(task)) => address_of(task),
        _ => thread_address(),
    }
}

/// As [`waiter_address`], and counts one operation of the caller as [`charge`](crate::scheduler::budget::charge) does.
///
/// For locks that are taken without a wait, where two ways to the worker would cost more than the lock may.
#[inline(never)]
pub fn charged_waiter_address() -> NonNull<()> {
    let address = current::with_worker_in_place(|worker| match worker.charge() {
        true => None,
        false => Some(worker.context().waiting_task().map_or_else(thread_address, address_of)),
    });
    match address {
        Some(address) => address.unwrap_or_else(charged_waiter_address_slow),
        None => thread_address(),
    }
}

#[inline(never)]
fn charged_waiter_address_slow() -> NonNull<()> {
    budget::charge();
    waiter_address()
}

#[inline]
fn address_of(task: TaskRef) -> NonNull<()> {
    NonNull::from(&task.header().waiter).cast()
}

/// A thread without a task has no waiter in a fixed place, so a variable of its own stands for it.
#[inline]
fn thread_address() -> NonNull<()> {
    NUMBER.with(|number| NonNull::from(number).cast())
}

fn thread_number() -> NonZeroU64 {
    if let Some(number) = NUMBER.get() {
        return number;
    }
    let number = numbered(shared::reserve_ids(1));
    NUMBER.set(Some(number));
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

/// True if at one moment of the call all other tasks of the caller's runtime were asleep: for tests, which want what they have
/// started to have come as far as it goes. Off a runtime there are none.
pub fn others_are_asleep() -> bool {
    let Some(shared) = current::runtime() else { return true };
    let me = context::task().map(|task| *task);
    let tasks = shared.tasks();
    let others = || tasks.iter().map(Task::as_ref).filter(|task| Some(*task) != me);
    let words = || others().map(|task| task.header().waiter.word.why());
    let seen: Vec<_> = words().collect();
    // One that counts as asleep may be about to leave its stack, where its worker is not in its park, or was cancelled, of which that
    // one has not heard.
    let is_here = |block| current::with_worker(|worker| worker.is_home_of(block)) == Some(true);
    let is_at_rest = |block: &Arc<Block>| block.is_parked() || is_here(block.as_home());
    let at_rest = shared.blocks.iter().all(|block| is_at_rest(block) && block.marked.is_empty());
    // One that was seen asleep may have been woken by one that was looked at later, and fell asleep in between. Who is in the
    // same sleep at a second look, after all first ones, slept all the while.
    at_rest
        && shared.alive() == tasks.len() as u64
        && seen.iter().all(|word| word.is_asleep())
        && words().eq(seen)
}

/// A worker, told from others and from plain threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home(usize);

/// The worker that the caller runs on, if it is a task.
pub fn home() -> Option<Home> {
    current::with_worker(|worker| Home(worker.place()))
}

/// True where the caller is a task, false on a plain thread (also inside a panic hook, where a wait blocks the thread).
pub fn in_task() -> bool {
    context::task().is_some()
}
