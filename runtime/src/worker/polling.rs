//! Adaptive polling: whether to poll a little before sleeping in the driver.
//!
//! To fall asleep and be woken costs about [`SLEEP_COST`] of processor time, and about as much delay. When the next
//! work is likely to come sooner than that, polling for it is cheaper and answers at once; when it is not, polling
//! burns the processor. So each idle time is judged afterwards by what polling through it would have saved or wasted,
//! and an average of the judgements decides the next one. While it says no, one idle time in [`EXPLORE`] is polled all
//! the same (and ever fewer as that keeps failing), since only a poll can tell that work now comes sooner.

use std::time::Duration;

/// What a sleep and its wake cost.
const SLEEP_COST: i64 = 22_000;

/// How long one poll lasts at the most.
pub(crate) const LONGEST: Duration = Duration::from_nanos(40_000);

/// One idle time in so many is polled although the average speaks against it; grows up to `EXPLORE_MOST`.
const EXPLORE: u32 = 16;
const EXPLORE_MOST: u32 = 4096;

/// Weight of the newest judgement: one part in so many.
const WEIGHT: i64 = 8;

/// What one worker has learned.
pub(crate) struct Polling {
    enabled: bool,
    /// Average gain in nanoseconds of polling through an idle time.
    gain: i64,
    until_explore: u32,
    explore: u32,
}

impl Polling {
    pub(crate) fn new(enabled: bool) -> Self {
        Polling { enabled, gain: 0, until_explore: EXPLORE, explore: EXPLORE }
    }

    /// Whether to poll through the idle time that begins now.
    pub(crate) fn begin(&mut self) -> bool {
        if !self.enabled {
            return false;
        }
        if self.gain > 0 {
            return true;
        }
        self.until_explore -= 1;
        if self.until_explore > 0 {
            return false;
        }
        self.until_explore = self.explore;
        true
    }

    /// Work came after `waited` of polling.
    pub(crate) fn succeeded(&mut self, waited: Duration) {
        self.explore = EXPLORE;
        self.learn(SLEEP_COST - i64::try_from(waited.as_nanos()).unwrap_or(i64::MAX / 2));
    }

    /// Nothing came in all the time that was polled.
    pub(crate) fn failed(&mut self) {
        if self.gain <= 0 {
            self.explore = (self.explore * 2).min(EXPLORE_MOST);
            self.until_explore = self.explore;
        }
        self.learn(-(LONGEST.as_nanos() as i64));
    }

    fn learn(&mut self, gain: i64) {
        self.gain += (gain - self.gain) / WEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(polling: &mut Polling, gap: Duration) -> bool {
        let polled = polling.begin();
        match polled {
            true if gap < LONGEST => polling.succeeded(gap),
            true => polling.failed(),
            false => {}
        }
        polled
    }

    #[test]
    fn quick_answers_are_polled_for() {
        let mut polling = Polling::new(true);
        (0..100).for_each(|_| _ = idle(&mut polling, Duration::from_micros(10)));
        assert!((0..1000).all(|_| idle(&mut polling, Duration::from_micros(10))));
    }

    #[test]
    fn slow_answers_are_slept_for() {
        let mut polling = Polling::new(true);
        let polled = (0..10_000).filter(|_| idle(&mut polling, Duration::from_micros(200))).count();
        assert!(polled < 30, "{polled} of 10,000 long idle times were polled");
    }

    #[test]
    fn a_change_is_learned_both_ways() {
        let mut polling = Polling::new(true);
        (0..1000).for_each(|_| _ = idle(&mut polling, Duration::from_micros(500)));
        (0..5000).for_each(|_| _ = idle(&mut polling, Duration::from_micros(5)));
        assert!(polling.begin());
        (0..100).for_each(|_| _ = idle(&mut polling, Duration::from_micros(500)));
        assert!(!polling.begin());
    }

    #[test]
    fn never_where_there_is_one_core() {
        let mut polling = Polling::new(false);
        assert!((0..1000).all(|_| !idle(&mut polling, Duration::ZERO)));
    }
}
