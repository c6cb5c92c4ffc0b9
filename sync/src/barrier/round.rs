//! The parties of a barrier that have come, in their rounds.
//!
//! ```text
//!            arrive                     arrive, the last: it leads
//!   0 ─────────────▶ 1 ─▶ … ─▶ n - 1 ─────────────────────────────▶ 0, in the next round
//!     ◀─────────────
//!         leave
//! ```
//!
//! The list may hold parties of rounds that have ended and that their leaders have not woken yet, in front of those of the
//! present one. They can leave no more: a departure that finds its round over is woken instead.

use std::cell::Cell;

use crate::wait::RawWake;
use crate::wait::list::{List, Node};

/// The round that parties come to. Kept in a lock.
pub(crate) struct Round {
    /// How many rounds have ended.
    number: u64,
    /// How many have come to this one.
    arrived: usize,
    list: List<Party>,
}

/// A party, as its round knows it.
pub struct Party {
    round: Cell<u64>,
    leads: Cell<bool>,
}

/// A round that has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended(u64);

impl Party {
    pub(crate) const fn new() -> Self {
        Party { round: Cell::new(0), leads: Cell::new(false) }
    }

    /// The round that this party has led to its end, if it has.
    pub(crate) fn led(&self) -> Option<Ended> {
        self.leads.get().then(|| Ended(self.round.get()))
    }
}

impl Round {
    pub(crate) const fn new() -> Self {
        Round { number: 0, arrived: 0, list: List::new() }
    }

    /// Comes to the round. False if that completes it: the caller then wakes the others by way of [`next`](Round::next).
    ///
    /// # Safety
    /// As for [`List::push_back`].
    pub(crate) unsafe fn arrive(&mut self, parties: usize, node: &Node<Party>, wake: RawWake) -> bool {
        if self.complete(parties, node.data()) {
            return false;
        }
        self.arrived += 1;
        // SAFETY: the caller's contract.
        unsafe { self.list.push_back(node, wake) };
        true
    }

    /// Comes to the round if that completes it, as [`arrive`](Round::arrive).
    pub(crate) fn complete(&mut self, parties: usize, party: &Party) -> bool {
        party.round.set(self.number);
        let last = self.arrived + 1 >= parties;
        if last {
            party.leads.set(true);
            self.arrived = 0;
            self.number += 1;
        }
        last
    }

    /// The longest sleeper of a round that has ended.
    pub(crate) fn next(&mut self, ended: Ended) -> Option<RawWake> {
        self.list.pop_front_if(|party| party.round.get() <= ended.0)
    }

    /// Takes an arrival back. False if the round is over: the party has passed, and its wake is on its way.
    ///
    /// # Safety
    /// The node is in this list or in none.
    pub(crate) unsafe fn leave(&mut self, node: &Node<Party>) -> bool {
        // Under the same lock as the end of a round: one that is over has a leader, who wakes all its parties.
        if node.data().round.get() < self.number {
            return false;
        }
        self.arrived -= 1;
        // SAFETY: the caller's contract.
        unsafe { self.list.remove(node) }
    }
}
