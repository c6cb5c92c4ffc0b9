//! Histograms of times, as users see them.

#![forbid(unsafe_code)]

use std::time::Duration;

use crate::scheduler::histogram::{self, BUCKETS, end_of};

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
    pub(super) fn of(counted: &histogram::Histogram) -> Self {
        let (buckets, nanos) = counted.read();
        Histogram { buckets, sum: Duration::from_nanos(nanos) }
    }

    pub(super) fn merged(mut self, other: Self) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

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
