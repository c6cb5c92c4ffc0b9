//! A flag that lets all through while it is set, and the crowd that waits for it.
//!
//! ```text
//!               set: ends the round of those who have joined
//!   closed ◀────────────────────────────────────────────────▶ open
//!               reset: those who join now are of the next round
//! ```
//!
//! Who finds the flag set takes no lock. Flag and crowd change under one lock: who joins has seen the flag not set, so a set
//! that comes later ends the round that it has joined, also if a reset follows at once; and a set that is still waking wakes
//! nobody of the next round.

use std::cell::Cell;

use crate::crowd::{Crowd, Ended};
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::list::Node;
use crate::wait::{Claim, Lock, RawWake};

/// The state of an event that stays set.
pub(crate) struct Gate {
    set: AtomicBool,
    crowd: Lock<Crowd>,
}

impl Gate {
    pub(crate) const fn new(set: bool) -> Self {
        Gate { set: AtomicBool::new(set), crowd: Lock::new(Crowd::new()) }
    }

    pub(crate) fn is_set(&self) -> bool {
        // Acquire: pairs with the Release in `set`: what was done before the set is seen after the wait.
        self.set.load(Ordering::Acquire)
    }

    /// Lets all through. Those who have joined are to be woken, by way of [`Crowd::next`].
    pub(crate) fn set(&self) -> Ended {
        let mut crowd = self.crowd.lock();
        // Release: pairs with `is_set`.
        self.set.store(true, Ordering::Release);
        crowd.end_round()
    }

    /// Lets nobody through from now on.
    pub(crate) fn reset(&self) {
        // Under the lock, so that a `set` is either before or after. Relaxed: nothing is published.
        let _crowd = self.crowd.lock();
        self.set.store(false, Ordering::Relaxed);
    }

    pub(crate) fn crowd(&self) -> &Lock<Crowd> {
        &self.crowd
    }

    /// Answers false if the flag is set, or else joins those who wait.
    ///
    /// # Safety
    /// As for [`List::push_back`](crate::wait::list::List::push_back).
    pub(crate) unsafe fn join(&self, node: &Node<Cell<u64>>, wake: RawWake) -> bool {
        let mut crowd = self.crowd.lock();
        if self.is_set() {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { crowd.join(node, wake) };
        true
    }

    /// As [`join`](Gate::join), for one that waits for several things, of which this one is `arm`.
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
        if self.is_set() {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { crowd.join_for(node, wake, claim, arm) };
        true
    }
}
