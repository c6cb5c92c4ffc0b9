//! Spinning before a sleep: where it may help, how long, and whether it has helped of late.
//!
//! | | [`spin_until`], for what somebody brings | [`back_off_until`], for a lock | [`stand_back_until`], for a channel |
//! | --- | --- | --- | --- |
//! | looks | often: what is there is seen at once | seldom: each look takes the lock's cache line from its owner | as seldom: much is there then |
//! | where others are ready on the worker | never | as long as four of five have helped: they may well want the same lock | never |
//! | where nothing else is ready | until eight in a row were in vain | the same | the same |
//!
//! Of two workers whose tasks want a short lock all the time, one so backs off while the other locks and unlocks in its own
//! cache, and nobody goes to sleep: with eight tasks that takes a fifth of the time that it takes to look often. So it is with the
//! two sides of a channel: while one stands back the other sends, or receives, some thirty messages in its own cache. A lock held
//! over a suspension is mostly still held after the last look: the tasks soon sleep at once, and the lock goes from one to the
//! next on one worker.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::thread::{self, LocalKey};

use crate::scheduler::current;

/// Looks of [`spin_until`], before each of which it pauses twice as often as before the one before, up to `1 << LONGEST`
/// times: some 130 in all.
const LOOKS: u32 = 18;
const LONGEST: u32 = 3;

/// Looks of those who back off, and how often they pause before the first; before each other one twice as often as before.
const SELDOM_LOOKS: u32 = 3;
const FIRST_PAUSES: u32 = 32;

/// The most luck there is.
const MOST: i32 = 8;

/// How many waits do without a spin where there is no luck, until one tries again: twice as many after each that tried in vain.
const SHORT_REST: i32 = 256;
const LONG_REST: i32 = 4096;

/// What a spin in vain takes from the luck beside others, to which one that helped adds 1.
const LOSS_BESIDE_OTHERS: i32 = 4;

thread_local! {
    static LUCK: Luck = const { Luck::new() };
    static LUCK_BESIDE_OTHERS: Luck = const { Luck::new() };
}

/// What has come of the last spins on a thread.
struct Luck {
    /// Above 0: they are worth while. Else, negated: how many waits have done without one since.
    left: Cell<i32>,
    rest: Cell<i32>,
}

/// Spins until `done`, for a microsecond or two, where that may help and of late has helped. True if it was done.
pub fn spin_until(done: impl FnMut() -> bool) -> bool {
    is_worth_while() && spin(done)
}

/// True where a spin may help, and of late has helped.
pub(crate) fn is_worth_while() -> bool {
    is_idle() && is_lucky(&LUCK)
}

/// The same as [`spin_until`], where it [is worth while](is_worth_while).
pub(crate) fn spin(mut done: impl FnMut() -> bool) -> bool {
    let spun = (0..LOOKS).any(|look| {
        pause(1 << look.min(LONGEST));
        done()
    });
    note(&LUCK, if spun { MOST } else { -1 });
    spun
}

/// The same for a lock, which `take` tries to take and somebody else may hold for a moment: up to some 220 pauses of the
/// processor, which are one to ten microseconds.
pub fn back_off_until(take: impl FnMut() -> bool) -> bool {
    match is_idle() {
        true => back_off(&LUCK, MOST, 1, take),
        false => has_peers() && back_off(&LUCK_BESIDE_OTHERS, 1, LOSS_BESIDE_OTHERS, take),
    }
}

/// The same for a channel, where the other side is at work on another processor and there is nothing to do but wait for it.
pub fn stand_back_until(done: impl FnMut() -> bool) -> bool {
    is_idle() && back_off(&LUCK, MOST, 1, done)
}

/// Leaves a lock that somebody else holds alone for a moment, some 32 pauses of the processor: time enough for its owner to
/// take it many times more.
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

/// True where another worker or thread can end a wait, and nothing else is ready to run here.
fn is_idle() -> bool {
    current::with_worker(|worker| worker.may_spin()).unwrap_or(true) && has_processors()
}

/// True where a task of this worker was made ready by one that runs on it.
pub(crate) fn is_another_ready() -> bool {
    current::with_worker(|worker| worker.has_ready()) == Some(true)
}

/// True where another worker or thread can end a wait.
fn has_peers() -> bool {
    current::with_worker(|worker| worker.has_peers()).unwrap_or(true) && has_processors()
}

/// True if the process may use more than one processor: on a single one nobody can do anything while another spins.
fn has_processors() -> bool {
    static MANY: OnceLock<bool> = OnceLock::new();
    *MANY.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// Finds out how many processors there are, once, by what the calling thread may use: it is to be one that is not pinned.
pub(crate) fn count_processors() {
    has_processors();
}

impl Luck {
    const fn new() -> Self {
        Luck { left: Cell::new(MOST), rest: Cell::new(SHORT_REST) }
    }

    /// True if spins have been worth while; and once in a while, to find out.
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
