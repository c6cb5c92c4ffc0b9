//! Ticks at a steady pace.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::api::sleep::{deadline, sleep, sleep_until};
use crate::base::clock;

#[cfg(test)]
mod tests;

/// Delay from which a tick counts as missed, even if the next tick is not due.
///
/// A busy machine delays a timer by less, and that must not shift all later ticks.
const LATE: Duration = Duration::from_millis(5);

/// Ticks at a steady pace; made by [`interval`] or [`interval_at`].
///
/// One task ticks at a time. Nothing runs between two ticks: a missed tick is detected at the next
/// call.
///
/// # Differences from tokio
/// The names and the meaning are tokio's. `tick` works on plain threads too.
#[derive(Debug)]
pub struct Interval {
    /// When the next tick is due; never, if the clock cannot tell it.
    next: Option<Instant>,
    period: Duration,
    behavior: MissedTickBehavior,
}

/// Chooses what an [`Interval`] does about missed ticks.
///
/// Ticks are missed when the work between two of them takes too long.
///
/// With a period of 100 ms, and work that takes 250 ms after the first tick and nothing later,
/// ticks come at these milliseconds, those in parentheses late:
///
/// | behaviour | ticks |
/// | --- | --- |
/// | `Burst` | 0, (250 for 100), (250 for 200), 300, 400 |
/// | `Delay` | 0, (250 for 100), 350, 450, 550 |
/// | `Skip` | 0, (250 for 100), 300, 400, 500 |
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, MissedTickBehavior, interval};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut ticks = interval(Duration::from_millis(2));
/// let first = ticks.tick();
/// ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// fibra::sleep(Duration::from_millis(5));
/// assert_eq!(ticks.tick() - first, Duration::from_millis(2));
/// // The tick that was due meanwhile is left out.
/// assert!(ticks.tick() - first >= Duration::from_millis(6));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissedTickBehavior {
    /// Make up for all missed ticks at once, until the ticks are on time again. The default.
    #[default]
    Burst,
    /// Tick late, and let the next tick come a whole period after that: the pace is kept, the time is not.
    Delay,
    /// Tick late, leave out all further missed ticks, and go on with the next tick of the schedule.
    Skip,
}

/// Makes an [`Interval`] whose first tick is due at once.
///
/// Each further tick is due a `period` after its predecessor.
///
/// # Panics
/// Panics if the period is zero.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, interval};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut ticks = interval(Duration::from_millis(2));
/// let first = ticks.tick();
/// assert_eq!(ticks.tick() - first, Duration::from_millis(2));
/// assert!(first.elapsed() >= Duration::from_millis(2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(clock::now(), period)
}

/// Makes an [`Interval`] whose first tick is due at `start`.
///
/// # Panics
/// Panics if the period is zero.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use std::time::{Duration, Instant};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let start = Instant::now() + Duration::from_millis(1);
/// let mut ticks = fibra::time::interval_at(start, Duration::from_millis(2));
/// assert_eq!(ticks.tick(), start);
/// assert_eq!(ticks.tick(), start + Duration::from_millis(2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "ticks need time between them: give the interval a period above zero");
    Interval { next: Some(start), period, behavior: MissedTickBehavior::default() }
}

impl Interval {
    /// Waits until the next tick is due, and returns the time at which it was.
    ///
    /// An overdue tick comes at once, after all ready tasks have run.
    ///
    /// # Cancellation
    /// A cancellation point. An unwound call has used up no tick.
    pub fn tick(&mut self) -> Instant {
        let Some(due) = self.next else { for_ever() };
        sleep_until(due);
        self.next = self.after(due, clock::now());
        due
    }

    /// Returns the due time of the tick after the tick that was due at `due` and came at `now`.
    fn after(&self, due: Instant, now: Instant) -> Option<Instant> {
        let next = due.checked_add(self.period);
        let late = now.saturating_duration_since(due);
        match self.behavior {
            MissedTickBehavior::Delay if late > LATE.min(self.period) => now.checked_add(self.period),
            MissedTickBehavior::Skip if late >= self.period => {
                now.checked_add(self.period - remainder(late, self.period))
            }
            MissedTickBehavior::Burst | MissedTickBehavior::Delay | MissedTickBehavior::Skip => next,
        }
    }

    /// Lets the next tick come a whole period from now.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::Duration;
    /// use fibra::time::interval;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let mut ticks = interval(Duration::from_millis(3));
    /// let first = ticks.tick();
    /// ticks.reset();
    /// assert!(ticks.tick() >= first + Duration::from_millis(3));
    /// ticks.reset_immediately();
    /// let now = ticks.tick();
    /// ticks.reset_after(Duration::from_millis(1));
    /// assert!(ticks.tick() > now);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reset(&mut self) {
        self.next = deadline(self.period);
    }

    /// Lets the next tick come at once.
    pub fn reset_immediately(&mut self) {
        self.reset_at(clock::now());
    }

    /// Lets the next tick come after `delay`, and further ticks from there on.
    pub fn reset_after(&mut self, delay: Duration) {
        self.next = deadline(delay);
    }

    /// Lets the next tick come at `due`, and further ticks from there on.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::{Duration, Instant};
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let mut ticks = fibra::time::interval(Duration::from_secs(60));
    /// let due = Instant::now() + Duration::from_millis(1);
    /// ticks.reset_at(due);
    /// assert_eq!(ticks.tick(), due);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reset_at(&mut self, due: Instant) {
        self.next = Some(due);
    }

    /// Returns the time between two ticks.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::Duration;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let ticks = fibra::time::interval(Duration::from_millis(5));
    /// assert_eq!(ticks.period(), Duration::from_millis(5));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns what is done about missed ticks.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Sets what is done about missed ticks.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::Duration;
    /// use fibra::time::{MissedTickBehavior, interval};
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let mut ticks = interval(Duration::from_millis(5));
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Skip);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }
}

/// Ticks for ever: `next` is [`tick`](Interval::tick).
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, interval};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let ticks: Vec<_> = interval(Duration::from_millis(1)).take(3).collect();
/// assert_eq!(ticks[2] - ticks[0], Duration::from_millis(2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
impl Iterator for Interval {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        Some(self.tick())
    }
}

/// Returns `time` modulo `period`.
fn remainder(time: Duration, period: Duration) -> Duration {
    let nanos = time.as_nanos() % period.as_nanos();
    // Less than `time`, which was measured: more than five centuries of nanoseconds fit.
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Waits for a tick beyond the range of the clock. Only a cancel ends it.
fn for_ever() -> ! {
    loop {
        sleep(Duration::MAX);
    }
}
