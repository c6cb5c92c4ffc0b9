//! What one worker counts: numbers that it alone writes, and that any thread may read.
//!
//! They lie in cache lines of their own, so a reader slows no other access to the worker. All but the
//! gauges only grow. A set of them that is read while the worker runs is of no single moment.

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

    /// Sets the number, which is a gauge. Called by the worker that alone writes it.
    pub(crate) fn set(&self, number: u64) {
        // Relaxed: as in `add`.
        self.0.store(number, Ordering::Relaxed);
    }

    /// Returns the number, perhaps a late view of it.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Holds the counters of one worker. `runtime/metrics.rs` tells what they mean to users.
#[derive(Default)]
pub(crate) struct Counters {
    /// The tasks that were spawned on this worker and those that ended on it.
    pub(crate) tasks: Counts,
    /// Looks for the next task, up to the last tick or rest.
    pub(crate) picks: Counter,
    /// Looks for the next task that found none.
    pub(crate) idle_periods: Counter,
    /// Looks that found a task which did not run here: it was placed elsewhere, or found no stack.
    pub(crate) unrun: Counter,
    /// Tasks taken to be run out of the stealable queue and from those placed here. A thief tells by
    /// it whether the tasks that it saw there have waited.
    pub(crate) taken: Counter,
    /// Batches of tasks stolen from other workers.
    pub(crate) steals: Counter,
    /// Tasks in those batches.
    pub(crate) stolen: Counter,
    /// Tasks that other threads woke or placed here.
    pub(crate) arrivals: Counter,
    /// Parks in the driver.
    pub(crate) parks: Counter,
    /// Parks after which there was nothing to run.
    pub(crate) idle_parks: Counter,
    /// Calls of the driver, parks among them.
    pub(crate) polls: Counter,
    /// Tasks that the driver woke.
    pub(crate) events: Counter,
    /// Timers that have fired.
    pub(crate) timers: Counter,
    /// Yields of tasks that had used up their budget.
    pub(crate) budget_yields: Counter,
    /// Waits for mutexes and read-write locks.
    pub(crate) lock_waits: Counter,
    /// How long one in [`LOCK_WAITS_PER_TIMING`] of those waits took, in nanoseconds.
    pub(crate) lock_wait_nanos: Counter,
    /// The idle periods that have ended, in nanoseconds.
    pub(crate) idle_nanos: Counter,
    /// When the present idle period has begun, in nanoseconds of the runtime's life; 0 while there is none.
    pub(crate) idle_since: Counter,
    pub(crate) gauges: Gauges,
}

/// Numbers that the worker notes at each tick and rest.
#[derive(Default)]
pub(crate) struct Gauges {
    /// Started tasks that are ready.
    pub(crate) ready: Counter,
    /// Tasks that wait for a stack.
    pub(crate) awaiting_stack: Counter,
    /// Armed timers.
    pub(crate) timers: Counter,
    /// How late the timers were that have fired, in nanoseconds.
    pub(crate) timer_lateness: Counter,
    /// Unused stacks of the worker.
    pub(crate) stacks: Counter,
}

/// Of so many waits for a lock one is timed, since a reading of the clock takes a large part of a short wait.
pub(crate) const LOCK_WAITS_PER_TIMING: u64 = 8;
