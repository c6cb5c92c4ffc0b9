//! Who waits or unlocks, and whether it may spin: what a primitive has to know of its caller.

use std::cell::Cell;
use std::hint::spin_loop;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::thread;

use crate::current;
use crate::task::Task;

/// Rounds of [`spin_until`], each twice as long as the one before up to `1 << LONGEST_ROUND` pauses: some 130 in all.
const ROUNDS: u32 = 18;
const LONGEST_ROUND: u32 = 3;

/// How many spins in a row may be in vain before no more are made, and how many waits do without until the next attempt.
const LUCKY: i32 = 8;
const UNLUCKY: i32 = 256;

thread_local! {
    /// The number of this thread as an owner, once it was asked for.
    static NUMBER: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
    /// Above 0: how many more spins may be in vain. Else, negated: how many waits have done without one since.
    static LUCK: Cell<i32> = const { Cell::new(LUCKY) };
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

/// True where all other tasks of the caller's runtime are asleep: for tests, which want what they have started to have come as
/// far as it goes. Off a runtime there are none.
pub fn others_are_asleep() -> bool {
    let Some(shared) = current::runtime() else { return true };
    let me = current::task();
    let tasks = shared.tasks();
    let mut others = tasks.iter().map(Task::as_ref).filter(|task| Some(*task) != me);
    shared.alive() == tasks.len() as u64 && others.all(|task| task.header().waiter.word.why().is_asleep())
}

/// A worker, told from others and from plain threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home(usize);

/// The worker that the caller runs on, if it is a task.
pub fn home() -> Option<Home> {
    current::with_worker(|worker| Home(worker.place()))
}

/// True where a short wait may spin: another worker or thread can end it, and nothing else is ready to run here.
fn may_spin() -> bool {
    current::with_worker(|worker| worker.may_spin()).unwrap_or_else(has_processors)
}

/// True if there is more than one processor.
fn has_processors() -> bool {
    static MANY: OnceLock<bool> = OnceLock::new();
    *MANY.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// Spins until `done`, for a microsecond or two, where that may help and of late has helped. True if it was done.
pub fn spin_until(mut done: impl FnMut() -> bool) -> bool {
    if !may_spin() || !is_lucky() {
        return false;
    }
    let spun = (0..ROUNDS).any(|round| {
        for _ in 0..1_u32 << round.min(LONGEST_ROUND) {
            spin_loop();
        }
        done()
    });
    note_luck(spun);
    spun
}

/// True if the last spins on this thread were not all in vain; and once in a while, to find out.
#[inline(never)]
fn is_lucky() -> bool {
    let luck = LUCK.get();
    LUCK.set(if luck > 0 { luck } else { luck - 1 });
    luck > 0 || luck <= -UNLUCKY
}

#[inline(never)]
fn note_luck(spun: bool) {
    LUCK.set(if spun { LUCKY } else { (LUCK.get() - 1).clamp(0, LUCKY) });
}
