//! Counts the waits for locks.

#![forbid(unsafe_code)]

use std::time::Instant;

use crate::base::clock;
use crate::scheduler::counters::LOCK_WAITS_PER_TIMING;
use crate::scheduler::current;

/// A wait for a lock, which its worker counts. One in eight is timed, until this is dropped.
///
/// A plain thread counts none.
#[must_use = "the wait ends when this is dropped"]
pub struct LockWait {
    since: Option<Instant>,
}

impl LockWait {
    /// Counts a wait that begins.
    #[inline(never)]
    pub fn begin() -> Self {
        let waits = current::with_worker(|worker| worker.counters().lock_waits.add(1));
        let is_timed = waits.is_some_and(|waits| waits % LOCK_WAITS_PER_TIMING == 1);
        LockWait { since: is_timed.then(clock::machine) }
    }

    #[cold]
    fn end(since: Instant) {
        let nanos = clock::nanos(clock::machine() - since);
        current::with_worker(|worker| worker.counters().lock_wait_nanos.add(nanos));
    }
}

impl Drop for LockWait {
    #[inline]
    fn drop(&mut self) {
        if let Some(since) = self.since {
            Self::end(since);
        }
    }
}
