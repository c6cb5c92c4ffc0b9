//! Whether a token was cancelled, and who waits for that.
//!
//! ```text
//!                 cancel, once
//!   running ─────────────────────▶ cancelled, for ever: all who have joined are woken
//! ```
//!
//! Who cancels sets the flag and then takes the lock to wake those who wait; who joins looks at the flag under the lock. So
//! whoever has the lock second sees the first.

use crate::base::primitive::{Arc, AtomicBool, Ordering};
use crate::base::spin_lock::Lock;
use crate::waiter::kind::RawWake;
use crate::waiter::list::{List, Node};
use crate::waiter::select_token::Claim;

pub(crate) struct Stop {
    /// Shared with the bounds of the scopes that the token ends.
    cancelled: Arc<AtomicBool>,
    waiters: Lock<List>,
}

impl Stop {
    pub(crate) fn new(cancelled: bool) -> Self {
        Stop { cancelled: Arc::new(AtomicBool::new(cancelled)), waiters: Lock::new(List::new()) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release in `cancel`; what was done before it is seen.
        self.cancelled.load(Ordering::Acquire)
    }

    /// True for the first one, who then wakes all [who wait](Stop::waiters).
    pub(crate) fn cancel(&self) -> bool {
        // SeqCst: comes before the mark in the header of a task in a scope, which is the store of the pair with `ASLEEP`.
        // Releases for `is_cancelled`.
        !self.cancelled.swap(true, Ordering::SeqCst)
    }

    /// Returns the flag itself, for the bound of a scope.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    pub(crate) fn waiters(&self) -> &Lock<List> {
        &self.waiters
    }

    /// Answers false if it is cancelled, or else joins those who wait; as an arm if it is one of several.
    ///
    /// # Safety
    /// As for [`List::push_back`], or for [`List::push_back_for`].
    pub(crate) unsafe fn join(&self, node: &Node, wake: RawWake, arm: Option<(&Claim, usize)>) -> bool {
        let mut waiters = self.waiters.lock();
        if self.is_cancelled() {
            return false;
        }
        // SAFETY: the caller's contract; the nodes of this list are only touched under this lock.
        unsafe {
            match arm {
                Some((claim, arm)) => waiters.push_back_for(node, wake, claim, arm),
                None => waiters.push_back(node, wake),
            }
        }
        true
    }

    /// Takes the node out of the list of those who wait. False if a cancel has done so.
    ///
    /// # Safety
    /// The node is in this list or in none.
    pub(crate) unsafe fn leave(&self, node: &Node) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.waiters.lock().remove(node) }
    }
}
