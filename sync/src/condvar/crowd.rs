//! Those who wait for a condition, and their way to the lock.
//!
//! ```text
//!                join                  notify: under both locks            an unlock
//!  has the lock ──────▶ in the crowd ───────────────────────▶ in the line ──────────▶ has the lock, or competes for it
//!                            │                                                         ▲
//!                            └── leave: time ran out, or cancelled ────────────────────┘ at the end of the line
//! ```
//!
//! A notification puts the longest waiter into the line of the mutex, where it stands as if it had come to lock. Nobody is
//! woken for a lock that another holds; only where the lock is free, and nobody is on the way to it, the first of them is.
//!
//! Who has been notified stands in the line until it is served, also when its deadline passes or it is cancelled: it must
//! have the lock anyway. So a notification is either refused to one who left the crowd, under the crowd's lock, or used.
//!
//! The lock order is: the crowd, then the line.

use std::ptr;

use crate::mutex::core::{Core, Waiter};
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

/// How many are put into the line under one hold of its lock.
const BATCH: usize = 32;

/// The waiters of one condition.
pub(crate) struct Crowd {
    /// Whether somebody waits; written under the lock.
    some: AtomicBool,
    waiters: Lock<Waiters>,
}

struct Waiters {
    /// The mutex that all waiters had locked. They borrow it, so it is there as long as they are.
    mutex: *const Core,
    /// How often all were notified. Who comes in a later round is not meant by an earlier call.
    round: u64,
    list: List<Waiter>,
}

// SAFETY: the mutex is only reached while a waiter borrows it, and is `Sync`.
unsafe impl Send for Waiters {}

/// Whom a notification is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    One,
    All,
}

impl Crowd {
    pub(crate) const fn new() -> Self {
        let waiters = Waiters { mutex: ptr::null(), round: 0, list: List::new() };
        Crowd { some: AtomicBool::new(false), waiters: Lock::new(waiters) }
    }

    /// Goes into the crowd. False if others wait there with another mutex.
    ///
    /// # Safety
    /// `node` is in no list; it and `line` stay alive and in place until it has left, by [`Crowd::leave`] or out of the line;
    /// its data is only touched under the lock of the list that it is in.
    pub(crate) unsafe fn join(&self, node: &Node<Waiter>, wake: RawWake, mutex: &Core) -> bool {
        let mut waiters = self.waiters.lock();
        if !waiters.list.is_empty() && !ptr::eq(waiters.mutex, mutex) {
            return false;
        }
        waiters.mutex = mutex;
        node.data().round.set(waiters.round);
        // SAFETY: by this function's contract.
        unsafe { waiters.list.push_back(node, wake) };
        // Relaxed: the waiter holds the mutex, and who must notify it has had the mutex after.
        self.some.store(true, Ordering::Relaxed);
        true
    }

    /// Leaves the crowd. False if a notification was first: the node is in the line then, or out of it and to be woken.
    ///
    /// # Safety
    /// `node` joined this crowd.
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

    /// Notifies, and wakes who is to be woken. How many were notified.
    #[inline]
    pub(crate) fn notify(&self, audience: Audience) -> usize {
        // Relaxed: see `join`.
        if !self.some.load(Ordering::Relaxed) { 0 } else { self.notify_waiters(audience) }
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

    /// The round before which those came who are notified.
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
        let notified = unsafe { mutex.admit(&mut waiters.list, limit, |seat| seat.round.get() < round) };
        self.settle(&waiters);
        notified
    }

    fn settle(&self, waiters: &Waiters) {
        // Relaxed: as in `join`; stores are in the order of the lock.
        self.some.store(!waiters.list.is_empty(), Ordering::Relaxed);
    }
}
