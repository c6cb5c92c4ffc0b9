//! Short polls: whether an idle worker polls its driver before it parks.
//!
//! A park and its wake-up cost processor time and delay. A poll saves both where the next event is
//! only microseconds away: one busy connection, or a hand-over between two polling workers.
//!
//! * Each poll lasts [`LONGEST`] at most.
//! * No poll follows a batch of more than [`FEW`] events. Under load a sleep gathers events, and
//!   polls would take them in smaller and more expensive portions.
//! * A poll that finds nothing doubles the number of idle times without a poll, up to
//!   [`MOST_SKIPS`]. So does a poll that a timer ends: the worker knew that time, and could have
//!   slept. A poll that finds other work resets the number.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

use crate::base::skips::Skips;

/// Time limit of a poll: about twice what a park and its wake-up take.
pub(super) const LONGEST: Duration = Duration::from_micros(30);

/// Size limit of a batch of events that a poll may follow.
const FEW: usize = 2;

/// Limit of the idle times without a poll.
const MOST_SKIPS: u32 = 255;

/// Decides on the polls of one worker.
pub(super) struct Polling {
    allowed: bool,
    /// Events of the last look at the driver.
    batch: Cell<usize>,
    /// Idle times without a poll.
    skips: Skips,
}

impl Polling {
    pub(super) fn new(allowed: bool) -> Self {
        Polling { allowed, batch: Cell::new(0), skips: Skips::new(0, MOST_SKIPS) }
    }

    /// Returns true if the worker polls in the idle time that begins now.
    pub(super) fn begin(&self) -> bool {
        self.allowed && self.batch.get() <= FEW && self.skips.is_due()
    }

    /// Notes whether a poll found work other than timers.
    pub(super) fn end(&self, found: bool) {
        self.skips.note(found);
    }

    /// Notes how many events the driver found.
    pub(super) fn note_batch(&self, events: usize) {
        self.batch.set(events);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the polls in so many idle times that each follow a batch of `events`.
    fn polls(polling: &Polling, idle_times: usize, events: usize, finds: bool) -> usize {
        let polls = (0..idle_times).filter(|_| {
            let polls = polling.begin();
            if polls {
                polling.end(finds);
            }
            polling.note_batch(events);
            polls
        });
        polls.count()
    }

    #[test]
    fn polls_where_that_finds_work() {
        let polling = Polling::new(true);
        assert_eq!(polls(&polling, 1000, 1, true), 1000);
    }

    #[test]
    fn an_idle_worker_does_not_poll() {
        let polling = Polling::new(true);
        polls(&polling, 1000, 1, false);
        assert!(polls(&polling, 100_000, 1, false) < 500);
        assert!(polls(&polling, 100_000, 0, false) < 500, "nor one that is woken for nothing");
    }

    #[test]
    fn a_change_is_learned_both_ways() {
        let polling = Polling::new(true);
        polls(&polling, 100_000, 1, false);
        assert!(polls(&polling, 1000, 1, true) > 700);
        assert!(polls(&polling, 1000, 1, false) < 20);
    }

    #[test]
    fn large_batches_are_not_polled_for() {
        let polling = Polling::new(true);
        polling.note_batch(FEW + 1);
        assert_eq!(polls(&polling, 1000, FEW + 1, true), 0);
        polling.note_batch(FEW);
        assert_eq!(polls(&polling, 1000, FEW, true), 1000, "the load is gone");
    }

    #[test]
    fn a_worker_that_may_not_poll_does_not() {
        assert_eq!(polls(&Polling::new(false), 1000, 1, true), 0);
    }
}
