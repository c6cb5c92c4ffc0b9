//! What a run answers where its program asks the system for the time or for random bytes.
//!
//! `interpose.rs` asks here. A thread without a run gets no answer, and asks the system.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::iter;
use std::time::{Duration, Instant};

use fastrand::Rng;
use fibra_runtime::clock;

/// What the clock of the day shows when a run begins: the first second of 2024.
const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// How often a program may read the clock while it stands. A loop that waits for it to move never ends.
const READINGS: u32 = 10_000_000;

/// Tells the random numbers of the system from those of the program.
const SYSTEM: u64 = 0x0b5e_55ed_5eed_c0de;

/// What a run needs for its answers. It has no destructor, so threads have it from their first call to their last.
struct Run {
    random: Rng,
    /// The zero of the monotonic clock, once it is known.
    zero: Option<Instant>,
    /// When the main task began.
    begin: Option<Instant>,
    /// The last reading, and how many were the same.
    last: Option<Instant>,
    readings: u32,
}

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// Makes the calling thread that of a run.
pub(crate) fn enter(seed: u64) {
    let random = Rng::with_seed(seed ^ SYSTEM);
    RUN.set(Some(Run { random, zero: None, begin: None, last: None, readings: 0 }));
    // The clock answers with zero while it has none.
    let zero = clock::machine();
    with(|run| run.zero = Some(zero));
}

/// Notes that the program begins.
pub(crate) fn begin() {
    with(|run| run.begin = Some(clock::now()));
}

/// Makes the calling thread an ordinary one.
pub(crate) fn leave() {
    RUN.set(None);
}

/// Runs `f`, which asks for nothing, with the run of the calling thread. A signal handler that comes meanwhile has none.
fn with<R>(f: impl FnOnce(&mut Run) -> R) -> Option<R> {
    RUN.with(|run| run.try_borrow_mut().ok()?.as_mut().map(f))
}

/// Returns true on the thread of a run.
pub(crate) fn is_given() -> bool {
    with(|_| ()).is_some()
}

/// The clocks of the system that are virtual in a run.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    Monotonic,
    OfTheDay,
}

/// Returns what a clock shows in virtual time, if the thread lives by that now.
pub(crate) fn reading(of: Clock) -> Option<Duration> {
    let Some(zero) = with(|run| run.zero)? else { return Some(Duration::ZERO) };
    let now = clock::shown()?;
    let begin = with(|run| {
        run.readings = if run.last.replace(now) == Some(now) { run.readings.saturating_add(1) } else { 0 };
        run.begin.unwrap_or(now)
    })?;
    Some(match of {
        Clock::Monotonic => now - zero,
        Clock::OfTheDay => EPOCH + (now - begin),
    })
}

/// Returns true if the program has read the clock too often while it stood.
pub(crate) fn is_read_in_vain() -> bool {
    with(|run| run.readings > READINGS) == Some(true)
}

/// Returns random bytes that the seed of the run decides.
pub(crate) fn random_bytes() -> impl Iterator<Item = u8> {
    iter::from_fn(|| with(|run| run.random.u8(..)))
}
