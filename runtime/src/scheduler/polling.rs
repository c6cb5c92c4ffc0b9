//! Short polls: whether an idle worker polls its driver before it parks.
//!
//! A park and its wake-up cost processor time and delay. A poll saves both where the next event is
//! only microseconds away: one busy connection, or a hand-over between two polling workers.
//!
//! * Each poll lasts [`LONGEST`] at most.
//! * A poll that finds nothing doubles the number of idle times without a poll, up to
//!   [`MOST_SKIPS`]. So does a poll that a timer ends: the worker knew that time, and could have
//!   slept. A poll that finds other work resets the number.
//! * A batch of more than [`FEW`] events doubles it as well. Under load a sleep gathers events, and
//!   polls would take them in smaller and more expensive portions.
//! * Polls take events one by one, so they hide whether a sleep would gather some. After [`STREAK`]
//!   polls in a row that found events, one idle time is without a poll.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

use crate::base::skips::Skips;

/// Time limit of a poll: about twice what a park and its wake-up take.
pub(super) const LONGEST: Duration = Duration::from_micros(30);

/// Size limit of a batch of events that speaks for polls.
const FEW: usize = 2;

/// Limit of the polls in a row that find events.
const STREAK: u32 = 16;

/// Limit of the idle times without a poll.
const MOST_SKIPS: u32 = 255;

/// Decides on the polls of one worker.
pub(super) struct Polling {
    allowed: bool,
    /// Polls in a row that found events.
    streak: Cell<u32>,
    /// Idle times without a poll.
    skips: Skips,
}

impl Polling {
    pub(super) fn new(allowed: bool) -> Self {
        Polling { allowed, streak: Cell::new(0), skips: Skips::new(0, MOST_SKIPS) }
    }

    /// Returns true if the worker polls in the idle time that begins now.
    pub(super) fn begin(&self) -> bool {
        if self.streak.get() == STREAK {
            self.streak.set(0);
            return false;
        }
        self.allowed && self.skips.is_due()
    }

    /// Notes whether a poll found work other than timers, and how many events it found.
    pub(super) fn end(&self, found: bool, events: usize) {
        self.streak.set(if events > 0 { self.streak.get() + 1 } else { 0 });
        self.skips.note(found && events <= FEW);
    }

    /// Notes how many events the driver found other than by a poll.
    pub(super) fn note_batch(&self, events: usize) {
        if events > FEW {
            self.skips.note(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the polls in so many idle times. Each poll finds so many events, and each sleep, too.
    fn polls(polling: &Polling, idle_times: usize, polled: Option<usize>, slept: usize) -> usize {
        let polls = (0..idle_times).filter(|_| {
            let polls = polling.begin();
            match polls {
                true => polling.end(polled.is_some(), polled.unwrap_or(0)),
                false => polling.note_batch(slept),
            }
            polls
        });
        polls.count()
    }

    #[test]
    fn polls_where_that_finds_work() {
        let polling = Polling::new(true);
        assert_eq!(polls(&polling, 1000, Some(0), 0), 1000, "work of other workers");
        assert!(polls(&polling, 1000, Some(1), 1) > 900, "events");
    }

    #[test]
    fn an_idle_worker_does_not_poll() {
        let polling = Polling::new(true);
        polls(&polling, 1000, None, 1);
        assert!(polls(&polling, 100_000, None, 1) < 500);
        assert!(polls(&polling, 100_000, None, 0) < 500, "nor one that is woken for nothing");
    }

    #[test]
    fn a_change_is_learned_both_ways() {
        let polling = Polling::new(true);
        polls(&polling, 100_000, None, 1);
        assert!(polls(&polling, 1000, Some(1), 1) > 700);
        assert!(polls(&polling, 1000, None, 1) < 20);
    }

    #[test]
    fn a_worker_sleeps_where_a_sleep_gathers_events() {
        let polling = Polling::new(true);
        let load = FEW + 1;
        polls(&polling, 10_000, Some(1), load);
        assert!(polls(&polling, 10_000, Some(1), load) < 1000, "also if polls find them one by one");
        assert!(polls(&polling, 10_000, Some(load), load) < 100);
        polls(&polling, 1000, Some(1), 1);
        assert!(polls(&polling, 1000, Some(1), 1) > 900, "the load is gone");
    }

    #[test]
    fn a_worker_that_may_not_poll_does_not() {
        assert_eq!(polls(&Polling::new(false), 1000, Some(1), 1), 0);
    }
}
