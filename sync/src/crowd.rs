//! Sleepers who are woken all together, told apart from those who come after by the round that they came in.
//!
//! Kept in a [`Lock`](crate::wait::Lock). Who ends a round takes its number, and then wakes its sleepers a batch at a time: who comes
//! meanwhile has the next round's number and sleeps on.

use std::cell::Cell;

use crate::wait::list::{List, Node};
use crate::wait::{Claim, RawWake};

/// Sleepers, each with the round that it came in.
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

    /// Ends the round: all who have joined are to be woken, by way of [`next`](Crowd::next).
    pub(crate) fn end_round(&mut self) -> Ended {
        self.round += 1;
        Ended(self.round)
    }

    /// The longest sleeper of those who joined before the end of this round.
    pub(crate) fn next(&mut self, ended: Ended) -> Option<RawWake> {
        self.list.pop_front_if(|joined| joined.get() < ended.0)
    }

    /// The longest sleeper of whatever round: for an end after which nobody joins.
    pub(crate) fn next_of_all(&mut self) -> Option<RawWake> {
        self.list.pop_front()
    }

    /// True if nobody sleeps here.
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

    /// Joins as one that waits for several things, of which this one is `arm`.
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

    /// True if the sleeper was still here.
    ///
    /// # Safety
    /// The node is in this crowd or in none.
    pub(crate) unsafe fn leave(&mut self, node: &Node<Cell<u64>>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.list.remove(node) }
    }
}
