//! What one worker counts: numbers that it alone writes, and that any thread may read.
//!
//! They lie in a cache line of their own, so a reader slows no other access to the worker. Each
//! number only grows. A set of them that is read while the worker runs is of no single moment.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::scheduler::task_counts::Counts;

/// Counts for one worker.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number and returns the sum. Called by the worker that alone writes it.
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) -> u64 {
        // Relaxed: it publishes nothing. Not a read-modify-write: there is one writer.
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(more);
        self.0.store(sum, Ordering::Relaxed);
        sum
    }

    /// Returns the number, perhaps a late view of it.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Holds the counters of one worker.
#[derive(Default)]
pub(crate) struct Counters {
    /// The tasks that were spawned on this worker and those that ended on it.
    pub(crate) tasks: Counts,
    /// Looks for the next task, up to the last tick or rest.
    pub(crate) picks: Counter,
    /// Looks for the next task that found none.
    pub(crate) rests: Counter,
    /// Tasks taken to be run out of the stealable queue and from those placed here. A thief tells by
    /// it whether the tasks that it saw there have waited.
    pub(crate) taken: Counter,
    /// Batches of tasks stolen from other workers.
    pub(crate) thefts: Counter,
    /// Tasks that other threads woke or placed here.
    pub(crate) arrivals: Counter,
    /// Parks in the driver.
    pub(crate) parks: Counter,
    /// Calls of the driver, parks among them.
    pub(crate) polls: Counter,
    /// Tasks that the driver woke.
    pub(crate) events: Counter,
    /// Timers that have fired.
    pub(crate) timers: Counter,
}

impl Counters {
    /// Returns all numbers with their names.
    pub(crate) fn read(&self) -> [(&'static str, u64); 11] {
        [
            ("spawned", self.tasks.spawned()),
            ("ended", self.tasks.finished()),
            // In this order: a worker rests after its pick.
            ("rests", self.rests.get()),
            ("picks", self.picks.get()),
            ("taken", self.taken.get()),
            ("thefts", self.thefts.get()),
            ("arrivals", self.arrivals.get()),
            ("parks", self.parks.get()),
            ("polls", self.polls.get()),
            ("events", self.events.get()),
            ("timers", self.timers.get()),
        ]
    }
}
