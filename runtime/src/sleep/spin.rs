//! Adaptive spinning before a sleep.
//!
//! | | [`spin_until`], for an event | [`back_off_until`], for a lock |
//! | --- | --- | --- |
//! | looks | often, to see the event at once | seldom: a look takes the cache line from the owner |
//! | other tasks are ready here | never | while four of five spins help: those tasks may want that lock, too |
//! | no other task is ready | until eight in a row fail | until eight in a row fail |
//!
//! [`stand_back_until`], for a channel, looks as seldom as a lock's back-off, and only while no
//! other task is ready.
//!
//! Two workers whose tasks want a short lock all the time so take turns: one backs off while its
//! peer locks and unlocks in its own cache, and no task sleeps. Likewise one endpoint of a channel
//! backs off while its peer sends, or receives, a run of messages in its own cache. A lock held
//! over a suspension is mostly still held after the last look. So its waiters soon sleep at once,
//! and the lock goes from task to task on one worker.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::thread::{self, LocalKey};

use crate::scheduler::current;

/// Looks of [`spin_until`]. The pauses before a look double each time, up to `1 << LONGEST`.
const LOOKS: u32 = 18;
const LONGEST: u32 = 3;

/// Looks of a back-off, and its pauses before the first. They double before each further look.
const SELDOM_LOOKS: u32 = 3;
const FIRST_PAUSES: u32 = 32;

/// Upper limit of the luck.
const MOST: i32 = 8;

/// Waits without a spin after the luck is used up, before one spins again. They double with each
/// further failure.
const SHORT_REST: i32 = 256;
const LONG_REST: i32 = 4096;

/// Luck that a failed spin costs while other tasks are ready. A successful spin there adds 1.
const LOSS_BESIDE_OTHERS: i32 = 4;

thread_local! {
    static LUCK: Luck = const { Luck::new() };
    static LUCK_BESIDE_OTHERS: Luck = const { Luck::new() };
}

/// Success of the last spins of a thread.
struct Luck {
    /// Above 0: spins are worth while. Else, negated: the waits without a spin since.
    left: Cell<i32>,
    rest: Cell<i32>,
}

/// Spins until `done`, for a microsecond or two, if that may help and helped lately.
///
/// Returns true if it was done.
pub fn spin_until(done: impl FnMut() -> bool) -> bool {
    is_worth_while() && spin(done)
}

/// Returns true where a spin may help, and helped lately.
pub(crate) fn is_worth_while() -> bool {
    is_idle() && is_lucky(&LUCK)
}

/// Spins until `done`. For a caller that has checked [`is_worth_while`].
pub(crate) fn spin(mut done: impl FnMut() -> bool) -> bool {
    let spun = (0..LOOKS).any(|look| {
        pause(1 << look.min(LONGEST));
        done()
    });
    note(&LUCK, if spun { MOST } else { -1 });
    spun
}

/// Backs off from a contended lock until `take` takes it, for one to ten microseconds.
///
/// Does so where that may help and helped lately. Returns true if it was taken.
pub fn back_off_until(take: impl FnMut() -> bool) -> bool {
    match is_idle() {
        true => back_off(&LUCK, MOST, 1, take),
        false => has_peers() && back_off(&LUCK_BESIDE_OTHERS, 1, LOSS_BESIDE_OTHERS, take),
    }
}

/// Backs off from a contended channel until `done`, if no other task is ready here.
///
/// Returns true if it was done.
pub fn stand_back_until(done: impl FnMut() -> bool) -> bool {
    is_idle() && back_off(&LUCK, MOST, 1, done)
}

/// Backs off from a contended lock once, so that its owner can take it many more times.
pub fn stand_back() {
    if has_processors() {
        pause(FIRST_PAUSES);
    }
}

fn back_off(luck: &'static LocalKey<Luck>, gain: i32, loss: i32, mut done: impl FnMut() -> bool) -> bool {
    if !is_lucky(luck) {
        return false;
    }
    let helped = (0..SELDOM_LOOKS).any(|look| {
        pause(FIRST_PAUSES << look);
        done()
    });
    note(luck, if helped { gain } else { -loss });
    helped
}

fn pause(times: u32) {
    (0..times).for_each(|_| spin_loop());
}

/// Returns true where another worker or thread can end a wait, and no task is ready here.
fn is_idle() -> bool {
    current::with_worker(|worker| worker.may_spin()).unwrap_or(true) && has_processors()
}

/// Returns true where a task is ready on this worker.
pub(crate) fn is_another_ready() -> bool {
    current::with_worker(|worker| worker.has_ready()) == Some(true)
}

/// Returns true where another worker or thread can end a wait.
fn has_peers() -> bool {
    current::with_worker(|worker| worker.has_peers()).unwrap_or(true) && has_processors()
}

/// Returns true if the process may use several processors. On a single one a spin keeps all other
/// threads from running.
fn has_processors() -> bool {
    static MANY: OnceLock<bool> = OnceLock::new();
    *MANY.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// Counts the processors that the calling thread may use, once. The thread must not be pinned.
pub(crate) fn count_processors() {
    has_processors();
}

impl Luck {
    const fn new() -> Self {
        Luck { left: Cell::new(MOST), rest: Cell::new(SHORT_REST) }
    }

    /// Returns true if spins are worth while, and now and then to find out.
    fn is_there(&self) -> bool {
        let left = self.left.get();
        self.left.set(if left > 0 { left } else { left - 1 });
        left > 0 || left <= -self.rest.get()
    }

    fn note(&self, gain: i32) {
        let left = self.left.get();
        self.rest.set(match gain {
            1.. => SHORT_REST,
            _ if left > 0 => self.rest.get(),
            _ => LONG_REST.min(2 * self.rest.get()),
        });
        self.left.set((left.max(0) + gain).clamp(0, MOST));
    }
}

#[inline(never)]
fn is_lucky(luck: &'static LocalKey<Luck>) -> bool {
    luck.with(Luck::is_there)
}

/// Adds to the luck.
#[inline(never)]
fn note(luck: &'static LocalKey<Luck>, gain: i32) {
    luck.with(|luck| luck.note(gain));
}
