//! The waiters of a condition, and their way to the mutex.
//!
//! ```text
//!                   wait             notify: under both locks                   an unlock
//!  owns the mutex ──────▶ in the set ────────────────────────▶ in the mutex's queue ─────▶ owns the mutex or competes
//!                            │                                                              ▲
//!                            └── deadline or cancel ────────────────────────────────────────┘ as a new arrival
//! ```
//!
//! A notification wakes the longest waiter, which then competes for the mutex. While the mutex is owned and a woken waiter is
//! on its way, it wakes none. It moves the others that it notifies to the end of the mutex's queue, as if they had come to lock.
//!
//! A notified waiter stays in the mutex's queue until it is served, also when its deadline passes or it is cancelled: it must
//! lock the mutex anyway. So no notification is lost: it finds a waiter under the lock of the set, or the waiter has left.
//!
//! The lock order is: the set, then the mutex's queue.

#![forbid(unsafe_code)]

use crate::mutex::core::Waiter;
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::{Admit, Outcome, Until, WaitQueue, Waiters};

/// The waiters of one condition, and the mutex `M` that they have had locked.
pub(crate) struct WaitSet<M> {
    /// True while there are waiters; written under the lock.
    has_waiters: AtomicBool,
    queue: WaitQueue<Option<M>, Waiter>,
}

impl<M: Copy + PartialEq> WaitSet<M> {
    pub(crate) const fn new() -> Self {
        WaitSet { has_waiters: AtomicBool::new(false), queue: WaitQueue::new(None) }
    }

    /// Waits to be notified and then served by the mutex. `Done` at once if there are waiters with another mutex.
    ///
    /// `unlock` unlocks the mutex. It runs once the waiter is in the set.
    #[inline(always)]
    pub(crate) fn wait(
        &self,
        waiter: Waiter,
        mutex: M,
        until: Until,
        unlock: impl FnOnce(),
    ) -> (Outcome<()>, Waiter) {
        self.queue.wait(
            0,
            waiter,
            until,
            |current, _, waiters| {
                if !waiters.is_empty(0) && *current != Some(mutex) {
                    return Admit::Done(());
                }
                *current = Some(mutex);
                // Relaxed: the waiter holds the mutex, and a thread that must notify it has had the mutex after.
                self.has_waiters.store(true, Ordering::Relaxed);
                Admit::Back
            },
            unlock,
            |_, _, waiters, _| self.settle(waiters),
        )
    }

    /// Notifies the waiters that `requeue` moves to their mutex. Returns how many it says they were.
    ///
    /// `requeue` runs under the lock, while a waiter borrows the mutex.
    #[inline]
    pub(crate) fn notify(&self, requeue: impl FnOnce(M, &mut Waiters<'_, Waiter, 1>) -> usize) -> usize {
        // Relaxed: see `wait`.
        if !self.has_waiters.load(Ordering::Relaxed) {
            return 0;
        }
        self.queue.with(|mutex, waiters| match *mutex {
            Some(mutex) if !waiters.is_empty(0) => {
                let count = requeue(mutex, waiters);
                self.settle(waiters);
                count
            }
            _ => 0,
        })
    }

    fn settle(&self, waiters: &Waiters<'_, Waiter, 1>) {
        // Relaxed: as in `wait`; stores are in the order of the lock.
        self.has_waiters.store(!waiters.is_empty(0), Ordering::Relaxed);
    }
}
