//! When the requests of one connection are due under a fixed rate.

use std::time::{Duration, Instant};

/// The due times of one connection, evenly spaced and out of step with the other connections.
///
/// A request that cannot leave in time stays due when it was: that is what keeps the latencies honest while the server
/// stands still ("coordinated omission" is Gil Tene's name for the mistake).
pub(crate) struct Pace {
    start: Instant,
    end: Instant,
    /// Seconds from the start to the first request.
    phase: f64,
    /// Seconds between two requests.
    interval: f64,
    /// Requests taken.
    taken: u64,
}

impl Pace {
    /// The share of connection `id` of `connections` in `rate` requests per second from `start` to `end`.
    pub(crate) fn new(rate: f64, id: usize, connections: usize, start: Instant, end: Instant) -> Self {
        Self { start, end, phase: id as f64 / rate, interval: connections as f64 / rate, taken: 0 }
    }

    /// When the next request is due; `None` after the last.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        // From the count each time, so that no rounding adds up.
        let offset = self.phase + self.interval * self.taken as f64;
        let due = self.start.checked_add(Duration::try_from_secs_f64(offset).ok()?)?;
        (due < self.end).then_some(due)
    }

    /// Moves up to `most` of the requests that are due at `now` to `dues`, which is emptied first.
    pub(crate) fn take_due(&mut self, now: Instant, most: usize, dues: &mut Vec<Instant>) {
        dues.clear();
        while dues.len() < most
            && let Some(due) = self.next_due().filter(|&due| due <= now)
        {
            dues.push(due);
            self.taken += 1;
        }
    }

    /// The requests due by `now` that nobody took.
    pub(crate) fn rest(mut self, now: Instant) -> impl Iterator<Item = Instant> {
        std::iter::from_fn(move || {
            let due = self.next_due().filter(|&due| due <= now)?;
            self.taken += 1;
            Some(due)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(id: usize, start: Instant) -> Pace {
        Pace::new(100.0, id, 2, start, start + Duration::from_millis(100))
    }

    #[test]
    fn connections_take_turns() {
        let start = Instant::now();
        let due = |id| pace(id, start).next_due().map(|due| due - start);
        assert_eq!(due(0), Some(Duration::ZERO));
        assert_eq!(due(1), Some(Duration::from_millis(10)));
    }

    #[test]
    fn what_is_late_stays_due_when_it_was() {
        let start = Instant::now();
        let (mut pace, mut dues) = (pace(0, start), Vec::new());
        pace.take_due(start + Duration::from_millis(50), 2, &mut dues);
        assert_eq!(dues, [start, start + Duration::from_millis(20)]);
        assert_eq!(pace.next_due(), Some(start + Duration::from_millis(40)));
    }

    #[test]
    fn nothing_is_due_after_the_end() {
        let start = Instant::now();
        let later = start + Duration::from_secs(9);
        assert_eq!(pace(0, start).rest(later).count(), 5);
    }
}
