//! Who waits or unlocks, and whether it may spin: what a primitive has to know of its caller.

use std::cell::Cell;
use std::hint::spin_loop;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::thread;

use crate::current;
use crate::task::Task;

/// Rounds of [`spin_until`], each twice as long as the one before up to 64 pauses: about two microseconds in all.
const ROUNDS: u32 = 16;

thread_local! {
    /// The number of this thread as an owner, once it was asked for.
    static NUMBER: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
}

/// The number of the task or the thread that runs here. No other task and no other thread ever has it, also after this one
/// has ended: owners of locks are told apart by it.
///
/// Fits into 62 bits: it would take a century to spawn so many tasks.
#[inline(never)]
pub fn owner() -> NonZeroU64 {
    match current::task() {
        Some(task) => numbered(task.header().id),
        None => thread_number(),
    }
}

fn numbered(id: u64) -> NonZeroU64 {
    NonZeroU64::new(id).expect("numbers begin with 1")
}

/// As [`owner`], and counts one operation of the caller as [`charge`](super::charge) does: for locks that are taken without
/// a wait, where two ways to the worker would cost more than the lock may.
#[inline(never)]
pub fn charged_owner() -> NonZeroU64 {
    let number = current::with_worker(|worker| match worker.charge() || worker.in_hook.get() {
        true => None,
        false => NonZeroU64::new(worker.running()?.header().id),
    });
    match number {
        Some(number) => number.unwrap_or_else(charged_owner_slow),
        None => thread_number(),
    }
}

#[inline(never)]
fn charged_owner_slow() -> NonZeroU64 {
    super::charge();
    owner()
}

fn thread_number() -> NonZeroU64 {
    if let Some(number) = NUMBER.get() {
        return number;
    }
    let number = numbered(crate::runtime::reserve_ids(1));
    NUMBER.set(Some(number));
    number
}

/// Names the task or the thread that runs here, for the message of a panic.
pub fn describe_caller() -> String {
    match current::task() {
        Some(task) => Task::counted(task).to_string(),
        None => match thread::current().name() {
            Some(name) => format!("thread `{name}`"),
            None => format!("thread {:?}", thread::current().id()),
        },
    }
}

/// A worker, told from others and from plain threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home(usize);

/// The worker that the caller runs on, if it is a task.
pub fn home() -> Option<Home> {
    current::with_worker(|worker| Home(worker.place()))
}

/// True where a short wait may spin: another worker or thread runs that can end it, and nothing else is ready to run here.
pub fn may_spin() -> bool {
    current::with_worker(|worker| worker.may_spin()).unwrap_or_else(has_processors)
}

/// True if there is more than one processor.
fn has_processors() -> bool {
    static MANY: OnceLock<bool> = OnceLock::new();
    *MANY.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// Spins until `done`, for a short while and only where that may help. True if it was done.
pub fn spin_until(mut done: impl FnMut() -> bool) -> bool {
    if !may_spin() {
        return false;
    }
    (0..ROUNDS).any(|round| {
        for _ in 0..1_u32 << round.min(6) {
            spin_loop();
        }
        done()
    })
}
