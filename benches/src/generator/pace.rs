//! The due times of the requests of one connection under a fixed rate.

use hdrhistogram::Histogram;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The due times of one connection, evenly spaced and out of step with the other connections.
///
/// A request that cannot leave in time stays due when it was: that is what keeps the latencies honest while
/// the server stands still ("coordinated omission" is Gil Tene's name for the mistake).
pub(crate) struct Pace {
    start: Instant,
    /// Seconds from the start to the first request.
    phase: f64,
    /// Seconds between two requests.
    interval: f64,
    /// Requests taken.
    taken: u64,
}

impl Pace {
    /// The share of connection `id` of `connections` in `rate` requests per second from `start` on.
    pub(crate) fn new(rate: f64, id: usize, connections: usize, start: Instant) -> Self {
        Self { start, phase: id as f64 / rate, interval: connections as f64 / rate, taken: 0 }
    }

    /// Returns when the next request is due.
    pub(crate) fn next_due(&self) -> Instant {
        // From the count each time, so that no rounding adds up.
        self.start + Duration::from_secs_f64(self.phase + self.interval * self.taken as f64)
    }

    /// Moves up to `most` of the requests that are due at `now` to `dues`, which is emptied first.
    pub(crate) fn take_due(&mut self, now: Instant, most: usize, dues: &mut Vec<Instant>) {
        dues.clear();
        while dues.len() < most && self.next_due() <= now {
            dues.push(self.next_due());
            self.taken += 1;
        }
    }

    /// How late the requests that were not taken and that are due in `interval` have become by `now`.
    pub(crate) fn late(&self, interval: &Range<Instant>, now: Instant) -> Late {
        let seconds = |moment: Instant| moment.saturating_duration_since(self.start).as_secs_f64();
        // A number below zero becomes that of the first request, which is what is meant.
        let number = |moment| ((seconds(moment) - self.phase) / self.interval).ceil() as u64;
        let end = number(interval.end);
        let count = end.saturating_sub(number(interval.start).max(self.taken));
        let last = self.phase + self.interval * (end as f64 - 1.0);
        Late { least: (seconds(now) - last) * 1e9, step: self.interval * 1e9, count }
    }
}

/// Latencies that are evenly spaced, as the requests are.
pub(crate) struct Late {
    /// The latency of the last request, and the difference to the one before, in nanoseconds.
    least: f64,
    step: f64,
    count: u64,
}

impl Late {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes them down, all those of a bucket at a time: there may be millions.
    pub(crate) fn record(&self, latencies: &mut Histogram<u64>) {
        let mut done = 0;
        while done < self.count {
            let first = (self.least + self.step * done as f64).max(1.0) as u64;
            let bound = latencies.highest_equivalent(first) as f64;
            let next = (((bound - self.least) / self.step) as u64 + 1).clamp(done + 1, self.count);
            latencies.saturating_record_n(first, next - done);
            done = next;
        }
    }
}

#[cfg(test)]
mod tests;
