//! The count under [`CountdownEvent`](crate::CountdownEvent) and [`WaitGroup`](crate::WaitGroup).
//!
//! ```text
//!           signal                         signal, the last: under the lock
//!   n ──────────────▶ n - 1 ──▶ … ──▶ 1 ──────────────────────────────────▶ 0    serves all waiters
//!   ▲ ◀──────────────                                                       │
//!   │       add                                                             │
//!   └───────────────────────────────────────────────────────────────────────┘
//!                               add, where that is allowed
//! ```
//!
//! Only the step to zero is taken under the lock of the queue, where an arrival looks at the count. So a caller either sees
//! the zero, or is served by the step to it. All other steps are one compare-exchange.

#![forbid(unsafe_code)]

use std::time::Instant;

use crate::budget;
use crate::primitive::{AtomicU64, Ordering};
use crate::wait::{self, ArmPolicy, QueueArm, Until, WaitDescription, WaitQueue, Waiters};

/// A count, and the waiters for its being zero.
pub struct Countdown {
    count: AtomicU64,
    queue: WaitQueue<(), ()>,
}

/// What a signal did.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Signalled {
    Counted,
    /// The count is zero now, and the waiters are woken.
    Last,
    /// The count is lower than the steps, and stays as it was.
    TooMany,
}

/// What an addition did.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Added {
    Counted,
    /// The count is zero, and that is final.
    Over,
    /// The sum cannot be counted, and the count stays as it was.
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
        Countdown { count: AtomicU64::new(count), queue: WaitQueue::new(()) }
    }

    pub(crate) fn count(&self) -> u64 {
        // Acquire: pairs with the Release in `signal`. Exchanges continue the release sequence of those before, so a caller
        // that sees zero sees what was done before each signal.
        self.count.load(Ordering::Acquire)
    }

    /// Counts down by `steps`.
    pub(crate) fn signal(&self, steps: u64) -> Signalled {
        wait::point();
        // Relaxed: the exchange decides.
        let mut seen = self.count.load(Ordering::Relaxed);
        loop {
            let Some(rest) = seen.checked_sub(steps) else { return Signalled::TooMany };
            if rest == 0 && steps > 0 {
                match self.finish(seen) {
                    Ok(()) => return Signalled::Last,
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

    /// Counts from `last` to zero. Returns the count, if it is another one.
    fn finish(&self, last: u64) -> Result<(), u64> {
        self.queue.with(|(), waiters| {
            // Release: as in `signal`. Acquire: pairs with the Release of the signals before, which the wakes pass on.
            self.count.compare_exchange(last, 0, Ordering::AcqRel, Ordering::Relaxed)?;
            waiters.serve_all(0);
            Ok(())
        })
    }

    /// Counts up by `steps`.
    pub(crate) fn add(&self, steps: u64, zero: Zero) -> Added {
        wait::point();
        // Relaxed, here and below: nothing is published.
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

    /// Waits for zero as a cancellation point. Returns false if the deadline came first.
    pub(crate) fn wait_to(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
        description: &'static WaitDescription,
    ) -> bool {
        wait::checkpoint();
        self.count() == 0 || self.wait(Until::unwind(deadline()).described(description))
    }

    /// Waits until the count is zero. Returns false if the deadline came first.
    #[inline(always)]
    pub(crate) fn wait(&self, until: Until) -> bool {
        self.queue.wait_until(0, until, |()| self.count() == 0)
    }

    /// Waits until the count is zero, as a future.
    pub(crate) async fn wait_async(&self) {
        match self.count() {
            0 => budget::charge().await,
            _ => self.queue.wait_until_async(0, |()| self.count() == 0).await,
        }
    }

    /// Makes an arm of a select.
    pub(crate) fn arm(&self) -> QueueArm<'_, (), (), 1, Self> {
        QueueArm::new(&self.queue, 0, (), self).described(const { &WaitDescription::new("countdown") })
    }
}

impl ArmPolicy<(), (), 1> for Countdown {
    fn is_ready(&self, (): &(), (): &mut (), _waiters: &Waiters<'_, (), 1>) -> bool {
        self.count() == 0
    }
}
