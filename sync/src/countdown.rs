//! A count that is waited for to reach zero: the state under [`CountdownEvent`](crate::CountdownEvent) and
//! [`WaitGroup`](crate::WaitGroup).
//!
//! ```text
//!           signal                         signal, the last: under the lock
//!   n ──────────────▶ n - 1 ──▶ … ──▶ 1 ──────────────────────────────────▶ 0    ends the round: all who joined are woken
//!   ▲ ◀──────────────                                                       │
//!   │       add                                                             │
//!   └───────────────────────────────────────────────────────────────────────┘
//!                               add, where that is allowed
//! ```
//!
//! Only the step to zero is taken under the lock, and so is the last look of who goes to sleep. A sleeper therefore either
//! sees the zero, or is in the crowd when its round ends; and one that came after an `add` from zero belongs to a later
//! round than those who are still being woken.

use std::cell::Cell;

use crate::crowd::{Crowd, Ended};
use crate::primitive::{AtomicU64, Ordering};
use crate::wait::list::Node;
use crate::wait::{Claim, Lock, RawWake};

/// A count, and who waits for it to be zero.
pub struct Countdown {
    count: AtomicU64,
    crowd: Lock<Crowd>,
}

/// What a signal did.
#[must_use]
pub(crate) enum Signalled {
    Counted,
    /// The count is zero now: the caller wakes those who wait, by way of [`Countdown::crowd`].
    Last(Ended),
    /// The count was lower than what should be taken off; it is as it was.
    TooMany,
}

/// What an addition did.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Added {
    Counted,
    /// The count is zero, and that is final.
    Over,
    /// More than can be counted; the count is as it was.
    TooMany,
}

/// Whether a count that is zero may grow again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    Final,
    Reusable,
}

impl Countdown {
    pub(crate) const fn new(count: u64) -> Self {
        Countdown { count: AtomicU64::new(count), crowd: Lock::new(Crowd::new()) }
    }

    pub(crate) fn count(&self) -> u64 {
        // Acquire: pairs with the Release in `signal`; who sees zero sees what was done before each signal, since
        // exchanges go on with the release sequence of those before.
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn crowd(&self) -> &Lock<Crowd> {
        &self.crowd
    }

    /// Counts down by `steps`.
    pub(crate) fn signal(&self, steps: u64) -> Signalled {
        // Relaxed: the exchange decides.
        let mut seen = self.count.load(Ordering::Relaxed);
        loop {
            let Some(rest) = seen.checked_sub(steps) else { return Signalled::TooMany };
            if rest == 0 && steps > 0 {
                match self.finish(seen) {
                    Ok(ended) => return Signalled::Last(ended),
                    Err(now) => seen = now,
                }
                continue;
            }
            // Release: pairs with the Acquire in `count` and `finish`.
            match self.count.compare_exchange_weak(seen, rest, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Signalled::Counted,
                Err(now) => seen = now,
            }
        }
    }

    /// The step from `last` to zero. The count as it is, if that is another one.
    fn finish(&self, last: u64) -> Result<Ended, u64> {
        let mut crowd = self.crowd.lock();
        // Release: as in `signal`. Acquire: pairs with the Release of the signals before, which the wakes pass on.
        self.count.compare_exchange(last, 0, Ordering::AcqRel, Ordering::Relaxed)?;
        Ok(crowd.end_round())
    }

    /// Counts up by `steps`.
    pub(crate) fn add(&self, steps: u64, zero: Zero) -> Added {
        // Relaxed, both: nothing is published.
        let mut seen = self.count.load(Ordering::Relaxed);
        loop {
            if seen == 0 && zero == Zero::Final {
                return Added::Over;
            }
            let more = seen.checked_add(steps).filter(|more| usize::try_from(*more).is_ok());
            let Some(more) = more else { return Added::TooMany };
            match self.count.compare_exchange_weak(seen, more, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Added::Counted,
                Err(now) => seen = now,
            }
        }
    }

    /// Answers false if the count is zero, or else joins those who wait.
    ///
    /// # Safety
    /// As for [`List::push_back`](crate::wait::list::List::push_back).
    pub(crate) unsafe fn join(&self, node: &Node<Cell<u64>>, wake: RawWake) -> bool {
        let mut crowd = self.crowd.lock();
        if self.count() == 0 {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { crowd.join(node, wake) };
        true
    }

    /// As [`join`](Countdown::join), for one that waits for several things, of which this one is `arm`.
    ///
    /// # Safety
    /// As for [`List::push_back_for`](crate::wait::list::List::push_back_for).
    pub(crate) unsafe fn join_for(
        &self,
        node: &Node<Cell<u64>>,
        wake: RawWake,
        claim: &Claim,
        arm: usize,
    ) -> bool {
        let mut crowd = self.crowd.lock();
        if self.count() == 0 {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { crowd.join_for(node, wake, claim, arm) };
        true
    }
}
