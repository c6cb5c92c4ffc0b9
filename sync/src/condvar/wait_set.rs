//! The waiters of a condition, and their way to the mutex.
//!
//! ```text
//!                   join             notify: under both locks                   an unlock
//!  owns the mutex ──────▶ in the set ────────────────────────▶ in the mutex's queue ─────▶ owns the mutex or competes
//!                            │                                                              ▲
//!                            └── leave: deadline or cancel ─────────────────────────────────┘ as a new arrival
//! ```
//!
//! A notification moves the longest waiter to the end of the mutex's queue, as if it had come to lock. It wakes no waiter
//! while the mutex is owned. If the mutex is free and no woken waiter is on its way, it wakes the first one.
//!
//! A notified waiter stays in the mutex's queue until it is served, also when its deadline passes or it is cancelled: it must
//! lock the mutex anyway. So no notification is lost: it finds a waiter under the lock of the set, or the waiter has left.
//!
//! The lock order is: the set, then the mutex's queue.

use std::ptr;

use crate::mutex::core::{Core, Waiter};
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

/// How many waiters move under one hold of the queue's lock.
const BATCH: usize = 32;

/// The waiters of one condition.
pub(crate) struct WaitSet {
    /// True while there are waiters; written under the lock.
    has_waiters: AtomicBool,
    waiters: Lock<Waiters>,
}

struct Waiters {
    /// The mutex that all waiters had locked. They borrow it, so it is there as long as they are.
    mutex: *const Core,
    /// How often all were notified. A call does not mean the waiters of later rounds.
    round: u64,
    list: List<Waiter>,
}

// SAFETY: the mutex is only reached while a waiter borrows it, and is `Sync`.
unsafe impl Send for Waiters {}

/// The waiters that a notification is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    One,
    All,
}

impl WaitSet {
    pub(crate) const fn new() -> Self {
        let waiters = Waiters { mutex: ptr::null(), round: 0, list: List::new() };
        WaitSet { has_waiters: AtomicBool::new(false), waiters: Lock::new(waiters) }
    }

    /// Joins the set. False if there are waiters with another mutex.
    ///
    /// # Safety
    /// `node` is in no list; it and `mutex` stay alive and in place until it has left, by [`WaitSet::leave`] or out of the
    /// mutex's queue; its data is only touched under the lock of the list that it is in.
    pub(crate) unsafe fn join(&self, node: &Node<Waiter>, wake: RawWake, mutex: &Core) -> bool {
        let mut waiters = self.waiters.lock();
        if !waiters.list.is_empty() && !ptr::eq(waiters.mutex, mutex) {
            return false;
        }
        waiters.mutex = mutex;
        node.data().round.set(waiters.round);
        // SAFETY: by this function's contract.
        unsafe { waiters.list.push_back(node, wake) };
        // Relaxed: the waiter holds the mutex, and a thread that must notify it has had the mutex after.
        self.has_waiters.store(true, Ordering::Relaxed);
        true
    }

    /// Leaves the set. False if a notification was first: the node is in the mutex's queue then, or out of it and to be woken.
    ///
    /// # Safety
    /// `node` joined this set.
    pub(crate) unsafe fn leave(&self, node: &Node<Waiter>) -> bool {
        let mut waiters = self.waiters.lock();
        if node.data().is_notified() {
            return false;
        }
        // SAFETY: it joined, and only a notification takes a node out.
        unsafe { waiters.list.remove(node) };
        self.settle(&waiters);
        true
    }

    /// Notifies, and wakes the waiters that find the mutex free. Returns how many were notified.
    #[inline]
    pub(crate) fn notify(&self, audience: Audience) -> usize {
        // Relaxed: see `join`.
        if !self.has_waiters.load(Ordering::Relaxed) { 0 } else { self.notify_waiters(audience) }
    }

    fn notify_waiters(&self, audience: Audience) -> usize {
        let limit = match audience {
            Audience::One => 1,
            Audience::All => BATCH,
        };
        let round = self.begin(audience);
        let mut notified = 0;
        loop {
            let (count, wake) = self.notify_some(limit, round);
            if let Some(wake) = wake {
                wake.wake();
            }
            notified += count;
            if count < limit || audience == Audience::One {
                return notified;
            }
        }
    }

    /// The round before which the notified waiters joined.
    fn begin(&self, audience: Audience) -> u64 {
        match audience {
            Audience::One => u64::MAX,
            Audience::All => {
                let mut waiters = self.waiters.lock();
                waiters.round += 1;
                waiters.round
            }
        }
    }

    fn notify_some(&self, limit: usize, round: u64) -> (usize, Option<RawWake>) {
        let mut waiters = self.waiters.lock();
        if waiters.list.is_empty() {
            return (0, None);
        }
        // SAFETY: there is a waiter, which borrows the mutex and does not leave while this lock is held.
        let mutex = unsafe { &*waiters.mutex };
        // SAFETY: this lock is held, and by `join` all in the list wait for this mutex.
        let notified = unsafe { mutex.admit(&mut waiters.list, limit, |waiter| waiter.round.get() < round) };
        self.settle(&waiters);
        notified
    }

    fn settle(&self, waiters: &Waiters) {
        // Relaxed: as in `join`; stores are in the order of the lock.
        self.has_waiters.store(!waiters.list.is_empty(), Ordering::Relaxed);
    }
}
