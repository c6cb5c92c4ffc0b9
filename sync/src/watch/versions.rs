//! The version of a watched value, and who waits for the next.
//!
//! ```text
//!  63                                  1 0
//! ┌─────────────────────────────────────┬────────┐
//! │ version: one more with each change  │ CLOSED │     CLOSED: the last sender is gone; it stays
//! └─────────────────────────────────────┴────────┘
//! ```
//!
//! * The version moves while the value is locked for writing, and is read beside the value while that is locked for
//!   reading: the two always belong together.
//! * Who moves it wakes after, under the lock of the list and with the value unlocked. Who goes to sleep looks at the word
//!   under that lock, so it is either found in the list or sees the move.
//! * A future that finds a sender at the value looks again under the lock of the list, and is told by that sender once it has let
//!   the value go, changed or not: if it was told before, the future sees that the value is free.
//! * A sleeper has the version that it saw last, which is the present one when it enters: the versions ascend in the list,
//!   and a waker stops at the first one who came after its own change.

use std::cell::Cell;

use crate::crowd::{Crowd, Ended};
use crate::primitive::{AtomicU64, Ordering};
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

const CLOSED: u64 = 1;
const ONE_VERSION: u64 = 2;

/// The version, senders, receivers and sleepers.
pub(crate) struct Versions {
    word: AtomicU64,
    watchers: Lock<Watchers>,
}

pub(crate) struct Watchers {
    senders: usize,
    receivers: usize,
    /// Each with the version that it saw last.
    sleepers: List<u64>,
    /// Those who wait for the last receiver to go.
    mourners: List,
    /// Futures that found a sender at the value, and may not wait as for a lock.
    turned_away: Crowd,
}

/// The word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) closed: bool,
}

impl Versions {
    /// Version 0, with one sender.
    pub(crate) const fn new() -> Self {
        let watchers = Watchers {
            senders: 1,
            receivers: 0,
            sleepers: List::new(),
            mourners: List::new(),
            turned_away: Crowd::new(),
        };
        Versions { word: AtomicU64::new(0), watchers: Lock::new(watchers) }
    }

    pub(crate) fn look(&self) -> Snapshot {
        // Acquire: pairs with the Release in `advance` and `close`: what was done before the change is seen.
        let bits = self.word.load(Ordering::Acquire);
        Snapshot { version: bits / ONE_VERSION, closed: bits & CLOSED != 0 }
    }

    /// Counts a change; by who has the value locked for writing. The new version, for [`Watchers::next_before`].
    #[must_use]
    pub(crate) fn advance(&self) -> u64 {
        // Release: pairs with the Acquire in `look`.
        self.word.fetch_add(ONE_VERSION, Ordering::Release) / ONE_VERSION + 1
    }

    pub(crate) fn watchers(&self) -> &Lock<Watchers> {
        &self.watchers
    }

    pub(crate) fn add_sender(&self) {
        self.watchers.lock().senders += 1;
    }

    /// Counts a sender no more. True if it was the last: all sleepers are to be woken, by
    /// [`next_before`](Watchers::next_before) and [`u64::MAX`].
    #[must_use]
    pub(crate) fn remove_sender(&self) -> bool {
        let mut watchers = self.watchers.lock();
        watchers.senders -= 1;
        let last = watchers.senders == 0;
        if last {
            // Release: pairs with the Acquire in `look`.
            self.word.fetch_or(CLOSED, Ordering::Release);
        }
        last
    }

    pub(crate) fn add_receiver(&self) {
        self.watchers.lock().receivers += 1;
    }

    /// Counts a receiver no more. True if it was the last: [`next_mourner`](Watchers::next_mourner) tells whom to wake.
    #[must_use]
    pub(crate) fn remove_receiver(&self) -> bool {
        let mut watchers = self.watchers.lock();
        watchers.receivers -= 1;
        watchers.receivers == 0
    }

    /// Waits for a version other than `node`'s, unless that has come or none comes any more.
    ///
    /// # Safety
    /// `node` is in no list and stays in place until [`leave`](Versions::leave) has answered true or `wake` has landed.
    pub(crate) unsafe fn enter(&self, node: &Node<u64>, wake: RawWake) -> bool {
        let mut watchers = self.watchers.lock();
        let waits = self.look() == Snapshot { version: *node.data(), closed: false };
        if waits {
            // SAFETY: the caller's contract; the list and its nodes are only touched under this lock.
            unsafe { watchers.sleepers.push_back(node, wake) };
        }
        waits
    }

    /// Waits no more. False if a waker was first, whose wake is then on its way.
    ///
    /// # Safety
    /// `node` was entered here.
    pub(crate) unsafe fn leave(&self, node: &Node<u64>) -> bool {
        // SAFETY: by the caller's contract the node is in this list or in none.
        unsafe { self.watchers.lock().sleepers.remove(node) }
    }

    /// As [`enter`](Versions::enter), for who waits for the last receiver to go.
    ///
    /// # Safety
    /// As for `enter`.
    pub(crate) unsafe fn mourn(&self, node: &Node, wake: RawWake) -> bool {
        let mut watchers = self.watchers.lock();
        let waits = watchers.receivers > 0;
        if waits {
            // SAFETY: the caller's contract; the list and its nodes are only touched under this lock.
            unsafe { watchers.mourners.push_back(node, wake) };
        }
        waits
    }

    /// As [`leave`](Versions::leave), for who waits for the last receiver to go.
    ///
    /// # Safety
    /// As for `leave`.
    pub(crate) unsafe fn mourn_no_more(&self, node: &Node) -> bool {
        // SAFETY: by the caller's contract the node is in this list or in none.
        unsafe { self.watchers.lock().mourners.remove(node) }
    }

    /// Waits for a sender to let the value go, unless it `is_free`.
    ///
    /// # Safety
    /// As for [`enter`](Versions::enter).
    pub(crate) unsafe fn stand_aside(
        &self,
        node: &Node<Cell<u64>>,
        wake: RawWake,
        is_free: impl FnOnce() -> bool,
    ) -> bool {
        let mut watchers = self.watchers.lock();
        let waits = !is_free();
        if waits {
            // SAFETY: the caller's contract; the list and its nodes are only touched under this lock.
            unsafe { watchers.turned_away.join(node, wake) };
        }
        waits
    }

    /// As [`leave`](Versions::leave), for who waits for a sender to let the value go.
    ///
    /// # Safety
    /// As for `leave`.
    pub(crate) unsafe fn stand_aside_no_more(&self, node: &Node<Cell<u64>>) -> bool {
        // SAFETY: by the caller's contract the node is in this list or in none.
        unsafe { self.watchers.lock().turned_away.leave(node) }
    }
}

impl Watchers {
    pub(crate) fn senders(&self) -> usize {
        self.senders
    }

    pub(crate) fn receivers(&self) -> usize {
        self.receivers
    }

    /// Whom to wake next of those who saw a version before `version` last.
    pub(crate) fn next_before(&mut self, version: u64) -> Option<RawWake> {
        self.sleepers.pop_front_if(|seen| *seen < version)
    }

    /// Whom to wake next of those who were turned away from the value before the first call with this `ended`.
    pub(crate) fn next_turned_away(&mut self, ended: &mut Option<Ended>) -> Option<RawWake> {
        let ended = *ended.get_or_insert_with(|| self.turned_away.end_round());
        self.turned_away.next(ended)
    }

    /// Whom to wake next of those who waited for the last receiver to go, while there is none.
    pub(crate) fn next_mourner(&mut self) -> Option<RawWake> {
        match self.receivers {
            0 => self.mourners.pop_front(),
            _ => None,
        }
    }
}
