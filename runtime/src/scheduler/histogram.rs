//! Histograms of one worker: how long tasks run, and how long they wait for their turn.

#![forbid(unsafe_code)]

use std::array;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::cycles::Cycles;
use crate::scheduler::counters::Counter;
use crate::tasks::header::TaskRef;
use crate::timer::ring::Node;

/// How many buckets a histogram has: two for each power of two nanoseconds, from 64 on.
pub(crate) const BUCKETS: usize = 64;

/// The binary logarithm of where the second bucket begins.
const FIRST: u32 = 6;

/// Counts times by their length.
pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS],
    nanos: Counter,
}

impl Histogram {
    fn new() -> Self {
        Histogram { buckets: array::from_fn(|_| Counter::default()), nanos: Counter::default() }
    }

    /// Counts a time. Called by the worker that alone writes here.
    pub(crate) fn record(&self, nanos: u64) {
        self.buckets[bucket_of(nanos)].add(1);
        self.nanos.add(nanos);
    }

    /// Returns the counts, and the sum of the times in nanoseconds.
    pub(crate) fn read(&self) -> ([u64; BUCKETS], u64) {
        (self.buckets.each_ref().map(Counter::get), self.nanos.get())
    }
}

fn bucket_of(nanos: u64) -> usize {
    let Some(octave) = nanos.checked_ilog2().and_then(|bits| bits.checked_sub(FIRST)) else { return 0 };
    let half = nanos >> (octave + FIRST - 1) & 1;
    (1 + 2 * octave as usize + half as usize).min(BUCKETS - 1)
}

/// Returns the end of a bucket in nanoseconds, which is in the next one. The last bucket has none.
pub(crate) fn end_of(bucket: usize) -> Option<u64> {
    (bucket < BUCKETS - 1).then(|| (2 + bucket as u64 % 2) << (FIRST as usize - 1 + bucket / 2))
}

/// The histograms of one worker, where the program asks for them.
pub(crate) struct Histograms {
    /// Of so many runs and wakes one is measured.
    pub(crate) every: NonZeroU32,
    pub(crate) cycles: Cycles,
    /// How long tasks ran without a stop.
    pub(crate) runs: Histogram,
    /// How long tasks waited for a run.
    pub(crate) delays: Histogram,
    /// When the first task of those came that other threads have woken and the worker has not taken. 0 without one.
    arrived: AtomicU64,
}

impl Histograms {
    pub(crate) fn new(every: NonZeroU32) -> Self {
        let (runs, delays) = (Histogram::new(), Histogram::new());
        Histograms { every, cycles: Cycles::of_machine(), runs, delays, arrived: AtomicU64::new(0) }
    }

    /// Notes that a task comes from another thread.
    pub(crate) fn note_arrival(&self) {
        // Relaxed: for reports. An arrival beside the worker's look counts from the next one or from that look.
        if self.arrived.load(Ordering::Relaxed) == 0 {
            self.arrived.store(self.cycles.read(), Ordering::Relaxed);
        }
    }

    /// Returns when the first arrival came that was not taken, and forgets it; 0 if there is none.
    pub(crate) fn take_arrival(&self) -> u64 {
        // Relaxed: as above.
        let arrived = self.arrived.load(Ordering::Relaxed);
        self.arrived.store(0, Ordering::Relaxed);
        arrived
    }

    /// Notes a new task, which is spawned off the workers.
    pub(crate) fn note_spawned_outside(&self, task: TaskRef) {
        let now = self.cycles.read();
        if now.is_multiple_of(self.every.get().into()) {
            task.header().timer.stamp(now);
        }
    }

    /// Records how long a task has waited for its run, which begins now.
    pub(crate) fn record_delay(&self, stamp: u64, now: u64) {
        self.delays.record(self.cycles.nanos(Node::since(stamp, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_one_before_ends() {
        for bucket in 0..BUCKETS - 1 {
            let end = end_of(bucket).unwrap();
            assert_eq!((bucket_of(end - 1), bucket_of(end)), (bucket, bucket + 1));
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX), end_of(BUCKETS - 1)), (0, BUCKETS - 1, None));
        assert_eq!([0, 1, 2, 3].map(end_of), [64, 96, 128, 192].map(Some));
    }
}
