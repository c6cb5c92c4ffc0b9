//! When the requests of one connection are due under a fixed rate.

use std::time::{Duration, Instant};

/// The due times of one connection, evenly spaced and out of step with the other connections.
///
/// A request that cannot leave in time stays due when it was: that is what keeps the latencies honest while the server
/// stands still ("coordinated omission" is Gil Tene's name for the mistake).
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

    /// When the next request is due.
    pub(crate) fn next_due(&self) -> Instant {
        // From the count each time, so that no rounding adds up.
        self.start + Duration::from_secs_f64(self.phase + self.interval * self.taken as f64)
    }

    /// Moves up to `most` of the requests that are due at `now` to `dues`, which is emptied first.
    pub(crate) fn take_due(&mut self, now: Instant, most: usize, dues: &mut Vec<Instant>) {
        dues.clear();
        dues.extend(self.rest(now).take(most));
    }

    /// The requests due by `now` that nobody took yet.
    pub(crate) fn rest(&mut self, now: Instant) -> impl Iterator<Item = Instant> {
        std::iter::from_fn(move || {
            let due = self.next_due();
            (due <= now).then(|| {
                self.taken += 1;
                due
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(id: usize, start: Instant) -> Pace {
        Pace::new(100.0, id, 2, start)
    }

    #[test]
    fn connections_take_turns() {
        let start = Instant::now();
        let due = |id| pace(id, start).next_due() - start;
        assert_eq!(due(0), Duration::ZERO);
        assert_eq!(due(1), Duration::from_millis(10));
    }

    #[test]
    fn what_is_late_stays_due_when_it_was() {
        let start = Instant::now();
        let (mut pace, mut dues) = (pace(0, start), Vec::new());
        pace.take_due(start + Duration::from_millis(50), 2, &mut dues);
        assert_eq!(dues, [start, start + Duration::from_millis(20)]);
        assert_eq!(pace.next_due(), start + Duration::from_millis(40));
    }

    #[test]
    fn the_rest_is_what_is_due_and_was_not_taken() {
        let start = Instant::now();
        let (mut pace, mut dues) = (pace(0, start), Vec::new());
        pace.take_due(start, 10, &mut dues);
        assert_eq!(pace.rest(start + Duration::from_millis(90)).count(), 4);
        assert_eq!(pace.rest(start + Duration::from_millis(90)).count(), 0);
    }
}
