//! Readings of the clock: the one place that asks the system for the time.
//!
//! `ci/clock.sh` checks that no other library file reads a clock.
//!
//! A thread may have a *virtual* clock: that of a worker whose runtime runs in virtual time. It stands
//! while it is paused, and moves by [`move_to`] only. It never goes back, and tasks compare its
//! readings with each other, so it begins at the machine's time.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hint::cold_path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How many threads of the process have a virtual clock: one load for the readings of all others.
static VIRTUAL: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CLOCK: Cell<Option<Virtual>> = const { Cell::new(None) };
}

/// The virtual clock of a thread.
#[derive(Clone, Copy)]
struct Virtual {
    /// What it showed when it was paused or resumed.
    shown: Instant,
    /// When it was resumed, by the machine's clock. `None` while it is paused.
    running_since: Option<Instant>,
}

impl Virtual {
    fn now(self) -> Instant {
        self.shown
            + self.running_since.map_or(Duration::ZERO, |since| machine().saturating_duration_since(since))
    }
}

/// Returns the time that tasks, timers and deadlines live by.
#[inline(always)]
pub fn now() -> Instant {
    // Relaxed: a thread with a virtual clock has counted itself.
    if VIRTUAL.load(Ordering::Relaxed) > 0 {
        cold_path();
        return virtual_now();
    }
    Instant::now()
}

#[cold]
fn virtual_now() -> Instant {
    shown().unwrap_or_else(machine)
}

/// Returns true once there is a deadline, and it has come.
#[inline]
pub fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= now())
}

/// Returns the time of the machine, for measurements of what the machine does.
///
/// It is never virtual.
#[inline(always)]
pub fn machine() -> Instant {
    // Relaxed: as in `now`.
    if VIRTUAL.load(Ordering::Relaxed) > 0 {
        cold_path();
        return machine_beside_virtual();
    }
    Instant::now()
}

/// Reads the machine's clock, also where a simulation has replaced std's: that asks for [`shown`].
#[cold]
fn machine_beside_virtual() -> Instant {
    let clock = CLOCK.take();
    let now = Instant::now();
    CLOCK.set(clock);
    now
}

/// Returns the nanoseconds of a time of less than 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    time.as_secs() * 1_000_000_000 + u64::from(time.subsec_nanos())
}

/// Returns the time of day, for reports.
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// How many ticks of the coarse clock a second has.
const COARSE_RATE: u32 = 100;

/// Returns the ticks of the coarse clock: of the machine, since the process first asked.
pub(crate) fn coarse() -> u32 {
    coarse_at(machine())
}

/// Returns the tick of the coarse clock at that moment of the machine's clock.
pub(crate) fn coarse_at(now: Instant) -> u32 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let since = now.saturating_duration_since(*BEGIN.get_or_init(machine));
    // Wraps after a year, and so do differences.
    (since.as_secs() as u32)
        .wrapping_mul(COARSE_RATE)
        .wrapping_add(since.subsec_nanos() / (1_000_000_000 / COARSE_RATE))
}

/// Returns how long ago that tick of the coarse clock was.
pub(crate) fn coarsely_since(tick: u32) -> Duration {
    // A worker may have read the clock after the caller.
    let ticks = (coarse().wrapping_sub(tick) as i32).max(0);
    Duration::from_secs(ticks as u64) / COARSE_RATE
}

/// Returns what the virtual clock of the calling thread shows, if the thread has one.
///
/// For a simulation that replaces std's clock. `None` within [`machine`].
pub fn shown() -> Option<Instant> {
    CLOCK.get().map(Virtual::now)
}

/// Returns when the machine's clock will show what is as far ahead as `at` is by [`now`].
///
/// For a wait that blocks the thread: virtual time does not end it.
pub fn on_machine(at: Instant) -> Instant {
    // Relaxed: as in `now`.
    match VIRTUAL.load(Ordering::Relaxed) {
        0 => at,
        _ => machine() + at.saturating_duration_since(now()),
    }
}

/// Returns true if the calling thread's clock is paused.
#[inline(always)]
pub(crate) fn is_paused() -> bool {
    // Relaxed: as in `now`.
    VIRTUAL.load(Ordering::Relaxed) > 0 && CLOCK.get().is_some_and(|clock| clock.running_since.is_none())
}

/// Pauses the clock of the calling thread.
pub(crate) fn pause() {
    set(Some(Virtual { shown: now(), running_since: None }));
}

/// Lets the clock of the calling thread go on from where it is.
pub(crate) fn resume() {
    if is_paused() {
        set(Some(Virtual { shown: now(), running_since: Some(machine()) }));
    }
}

/// Moves the paused clock of the calling thread forward; does nothing if it is there or further.
pub(crate) fn move_to(at: Instant) {
    debug_assert!(is_paused(), "only a paused clock is moved");
    set(Some(Virtual { shown: now().max(at), running_since: None }));
}

fn set(clock: Option<Virtual>) -> Option<Virtual> {
    let former = CLOCK.replace(clock);
    // Relaxed: as in `now`.
    match (&former, &clock) {
        (None, Some(_)) => _ = VIRTUAL.fetch_add(1, Ordering::Relaxed),
        (Some(_), None) => _ = VIRTUAL.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
    former
}

/// Gives the calling thread the machine's clock, or a paused one, until the guard is dropped.
pub(crate) fn enter(paused: bool) -> FormerClock {
    let former = FormerClock(set(None));
    if paused {
        pause();
    }
    former
}

/// The clock that a thread had before it became a worker. It has it again when this is dropped.
pub(crate) struct FormerClock(Option<Virtual>);

impl Drop for FormerClock {
    fn drop(&mut self) {
        set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_paused_clock_stands_until_it_is_moved() {
        let former = enter(true);
        let begin = now();
        thread::sleep(Duration::from_millis(2));
        assert!(now() == begin && shown() == Some(begin));
        move_to(begin + HOUR);
        move_to(begin);
        assert_eq!(now(), begin + HOUR, "it never goes back");
        assert!(on_machine(begin + 2 * HOUR) - machine() <= HOUR);
        drop(former);
        assert!(now() < begin + HOUR, "the thread has the machine's clock again");
    }

    #[test]
    fn a_resumed_clock_goes_on_from_where_it_is() {
        let _former = enter(true);
        let moved = now() + HOUR;
        move_to(moved);
        resume();
        thread::sleep(Duration::from_millis(2));
        let after = now();
        assert!(after >= moved + Duration::from_millis(2) && after < moved + HOUR);
        pause();
        assert!(now() >= after && now() == now());
    }

    #[test]
    fn other_threads_keep_the_machines_clock() {
        let _former = enter(true);
        move_to(now() + HOUR);
        let theirs = thread::spawn(|| (shown(), now())).join().unwrap();
        assert!(theirs.0.is_none() && theirs.1 <= machine());
    }
}
