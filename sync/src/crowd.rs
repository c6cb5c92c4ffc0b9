//! Wait list with generations: a wake-up of all skips later arrivals.
//!
//! It lies in a [`Lock`](crate::wait::Lock). The end of a round yields its number; the caller then
//! wakes the waiters of that round a batch at a time. A waiter that arrives meanwhile has the
//! number of the next round, and sleeps on.

use std::cell::Cell;

use crate::wait::list::{List, Node};
use crate::wait::{Claim, RawWake};

/// Lists waiters, each with the round of its arrival.
pub(crate) struct Crowd {
    /// How many rounds have ended.
    round: u64,
    list: List<Cell<u64>>,
}

/// A round that has ended.
#[must_use]
#[derive(Clone, Copy)]
pub(crate) struct Ended(u64);

impl Crowd {
    pub(crate) const fn new() -> Self {
        Crowd { round: 0, list: List::new() }
    }

    /// Ends the round. The caller wakes all its waiters by [`next`](Crowd::next).
    pub(crate) fn end_round(&mut self) -> Ended {
        self.round += 1;
        Ended(self.round)
    }

    /// Takes out the longest waiter that joined before the end of this round.
    pub(crate) fn next(&mut self, ended: Ended) -> Option<RawWake> {
        self.list.pop_front_if(|joined| joined.get() < ended.0)
    }

    /// Takes out the longest waiter of any round, for an end after which none joins.
    pub(crate) fn next_of_all(&mut self) -> Option<RawWake> {
        self.list.pop_front()
    }

    /// Returns true if no waiter is in the list.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// # Safety
    /// As for [`List::push_back`].
    #[cfg(test)]
    pub(crate) unsafe fn join(&mut self, node: &Node<Cell<u64>>, wake: RawWake) {
        node.data().set(self.round);
        // SAFETY: the caller's contract.
        unsafe { self.list.push_back(node, wake) };
    }

    /// Joins as arm `arm` of a select.
    ///
    /// # Safety
    /// As for [`List::push_back_for`].
    pub(crate) unsafe fn join_for(
        &mut self,
        node: &Node<Cell<u64>>,
        wake: RawWake,
        claim: &Claim,
        arm: usize,
    ) {
        node.data().set(self.round);
        // SAFETY: the caller's contract.
        unsafe { self.list.push_back_for(node, wake, claim, arm) };
    }

    /// Unlinks a waiter. Returns true if it was still in the list.
    ///
    /// # Safety
    /// The node is in this crowd or in none.
    pub(crate) unsafe fn leave(&mut self, node: &Node<Cell<u64>>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.list.remove(node) }
    }
}
