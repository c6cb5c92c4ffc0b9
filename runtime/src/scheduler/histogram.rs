//! Histograms of times. A worker has two: how long tasks run, and how long they wait for their turn.

#![forbid(unsafe_code)]

use std::array;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::cycles::Cycles;
use crate::scheduler::counters::Counter;
use crate::tasks::header::TaskRef;
use crate::timer::ring::Node;

/// How many buckets a histogram has: two for each power of two nanoseconds, from 64 on.
const BUCKETS: usize = 64;

/// The binary logarithm of where the second bucket begins.
const FIRST: u32 = 6;

/// Counts times by their length, in 64 buckets: two for each power of two, from 64 ns to 137 s.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// let none = fibra::metrics::Histogram::default();
/// assert_eq!((none.count(), none.mean(), none.quantile(0.5)), (0, None, None));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    sum: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: [0; BUCKETS], sum: Duration::ZERO }
    }
}

impl Histogram {
    pub(crate) fn merged(mut self, other: Self) -> Self {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
        self
    }

    /// Returns how many times were measured.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of the measured times.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the mean of the measured times, if there are any.
    pub fn mean(&self) -> Option<Duration> {
        Some(self.sum.div_f64(Some(self.count()).filter(|count| *count > 0)? as f64))
    }

    /// Returns each bucket as its end and its count. The end is not in the bucket, and the last bucket has none.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        self.buckets
            .iter()
            .enumerate()
            .map(|(bucket, count)| (end_of(bucket).map(Duration::from_nanos), *count))
    }

    /// Returns the end of the bucket below which that part of the times lies, 0.99 of them for example.
    ///
    /// `None` if there are none. Beyond 137 s it is the longest duration.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let wanted = (part.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let end = self.buckets().find(|(_, count)| {
            below += count;
            below >= wanted
        });
        end.map(|(end, _)| end.unwrap_or(Duration::MAX))
    }
}

/// A histogram that one worker counts.
pub(crate) struct Counting {
    buckets: [Counter; BUCKETS],
    nanos: Counter,
}

impl Counting {
    fn new() -> Self {
        Counting { buckets: array::from_fn(|_| Counter::default()), nanos: Counter::default() }
    }

    /// Counts a time. Called by the worker that alone writes here.
    pub(crate) fn record(&self, nanos: u64) {
        self.buckets[bucket_of(nanos)].add(1);
        self.nanos.add(nanos);
    }

    pub(crate) fn read(&self) -> Histogram {
        Histogram {
            buckets: self.buckets.each_ref().map(Counter::get),
            sum: Duration::from_nanos(self.nanos.get()),
        }
    }
}

fn bucket_of(nanos: u64) -> usize {
    let Some(octave) = nanos.checked_ilog2().and_then(|bits| bits.checked_sub(FIRST)) else { return 0 };
    let half = nanos >> (octave + FIRST - 1) & 1;
    (1 + 2 * octave as usize + half as usize).min(BUCKETS - 1)
}

/// Returns the end of a bucket in nanoseconds, which is in the next one. The last bucket has none.
fn end_of(bucket: usize) -> Option<u64> {
    (bucket < BUCKETS - 1).then(|| (2 + bucket as u64 % 2) << (FIRST as usize - 1 + bucket / 2))
}

/// The histograms of one worker, where the program asks for them.
pub(crate) struct Histograms {
    /// Of so many runs and wakes one is measured.
    pub(crate) every: NonZeroU32,
    pub(crate) cycles: Cycles,
    /// How long tasks ran without a stop.
    pub(crate) runs: Counting,
    /// How long tasks waited for a run.
    pub(crate) delays: Counting,
    /// When the first task of those came that other threads have woken and the worker has not taken. 0 without one.
    arrived: AtomicU64,
}

impl Histograms {
    pub(crate) fn new(every: NonZeroU32) -> Self {
        let (runs, delays) = (Counting::new(), Counting::new());
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

    #[test]
    fn quantiles_are_ends_of_buckets() {
        let mut histogram = Histogram::default();
        (histogram.buckets[0], histogram.buckets[3], histogram.sum) = (9, 1, Duration::from_nanos(300));
        assert_eq!((histogram.count(), histogram.mean()), (10, Some(Duration::from_nanos(30))));
        let ends = [0.0, 0.9, 0.91, 1.0].map(|part| histogram.quantile(part).unwrap().as_nanos());
        assert_eq!(ends, [64, 64, 192, 192]);
        let twice = histogram.clone().merged(histogram);
        assert_eq!((twice.count(), twice.sum()), (20, Duration::from_nanos(600)));
    }
}
