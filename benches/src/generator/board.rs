//! The board that counts the replies of all connections.

use super::pace::Pace;
use crate::wire::{Outcome, Progress, Totals};
use hdrhistogram::Histogram;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, mem};

/// Longer latencies than this count as this.
const LONGEST: Duration = Duration::from_secs(3600);

/// A moment in the far future.
const NEVER: u64 = u64::MAX;

/// Replies, latencies and faults of a run, and whether it goes on.
///
/// The atomics publish nothing but themselves, hence `Relaxed` throughout; the rest is behind a lock that is
/// held for some tens of nanoseconds and never over a wait.
pub(crate) struct Board {
    /// The zero of the two moments below.
    epoch: Instant,
    /// The measured interval, in nanoseconds after the epoch.
    begin: AtomicU64,
    end: AtomicU64,
    stopped: AtomicBool,
    /// Connections at work.
    live: AtomicUsize,
    tally: Mutex<Tally>,
}

struct Tally {
    latencies: Histogram<u64>,
    /// The latencies since the last report of progress, inside the interval or not.
    recent: Histogram<u64>,
    reported: Instant,
    totals: Totals,
    left: Vec<Left>,
    /// When requests were due whose own connection was lost.
    lost: Vec<Instant>,
}

/// The requests that a lane under a rate left unanswered.
struct Left {
    /// Requests on their way.
    dues: Vec<Instant>,
    /// Requests that were not sent.
    pace: Pace,
    since: Instant,
    /// It came to its end by a fault, and not because the run was over.
    lost: bool,
}

impl Board {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            epoch: now,
            begin: AtomicU64::new(NEVER),
            end: AtomicU64::new(NEVER),
            stopped: AtomicBool::new(false),
            live: AtomicUsize::new(0),
            tally: Mutex::new(Tally {
                latencies: new_histogram(),
                recent: new_histogram(),
                reported: now,
                totals: Totals::default(),
                left: Vec::new(),
                lost: Vec::new(),
            }),
        }
    }

    /// Opens the measured interval.
    pub(crate) fn begin(&self) {
        self.begin.store(self.nanos(Instant::now()), Relaxed);
    }

    /// Closes the measured interval; connections then finish what they have on the way.
    pub(crate) fn end(&self) {
        self.end.store(self.nanos(Instant::now()), Relaxed);
    }

    /// Ends the run before its time.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Returns true if no further request is to be made.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || self.end.load(Relaxed) != NEVER
    }

    pub(crate) fn connection_starts(&self) {
        self.live.fetch_add(1, Relaxed);
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// Records how a connection ended. After a stop no fault counts.
    pub(crate) fn connection_ends(&self, how: io::Result<()>) {
        if let Err(fault) = how
            && !self.is_stopped()
        {
            self.count(&fault);
        }
        self.live.fetch_sub(1, Relaxed);
    }

    /// Records right replies that came at `now` to requests that were due at `dues`.
    pub(crate) fn record(&self, dues: &[Instant], now: Instant) {
        let came = self.nanos(now);
        let mut tally = self.tally();
        if self.covers(came) {
            tally.totals.replies += dues.len() as u64;
        }
        for &due in dues {
            self.record_latency(&mut tally, due, now);
        }
    }

    /// Records the unanswered requests of a lane that has ended.
    ///
    /// They are the requests under way and all that have come due by `pace`. After a fault, requests that
    /// come due before the end of the interval count too.
    pub(crate) fn leave(&self, how: &io::Result<()>, dues: Vec<Instant>, pace: Pace) {
        self.tally().left.push(Left { dues, pace, since: Instant::now(), lost: how.is_err() });
    }

    /// Records requests, due at `dues`, to which no reply will come, of a lane that goes on.
    pub(crate) fn lose(&self, dues: &mut Vec<Instant>) {
        self.tally().lost.append(dues);
    }

    /// Records a datagram that was due at `due` and had no reply until `now`.
    pub(crate) fn record_unanswered(&self, due: Instant, now: Instant) {
        let mut tally = self.tally();
        if self.covers(self.nanos(due)) {
            tally.totals.unanswered += 1;
            self.record_latency(&mut tally, due, now);
        }
    }

    fn record_latency(&self, tally: &mut Tally, due: Instant, now: Instant) {
        let latency = as_nanos(now.saturating_duration_since(due)).max(1);
        tally.recent.saturating_record(latency);
        if self.covers(self.nanos(due)) {
            tally.latencies.saturating_record(latency);
        }
    }

    pub(crate) fn count_wrong_bytes(&self) {
        self.tally().totals.faults.wrong_bytes += 1;
    }

    pub(crate) fn count_wrong_status(&self) {
        self.tally().totals.faults.wrong_status += 1;
    }

    pub(crate) fn count_timed_out(&self, connections: usize) {
        self.tally().totals.faults.timed_out += connections as u64;
    }

    pub(crate) fn count(&self, error: &io::Error) {
        use io::ErrorKind as Kind;
        let faults = &mut self.tally().totals.faults;
        match error.kind() {
            Kind::ConnectionRefused => faults.refused += 1,
            Kind::WouldBlock | Kind::TimedOut => faults.timed_out += 1,
            Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted | Kind::UnexpectedEof => {
                faults.lost += 1;
            }
            _ => {
                faults.other += 1;
                faults.example.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Sums up the time since the last call.
    pub(crate) fn progress(&self, elapsed: Duration) -> Progress {
        let now = Instant::now();
        let measuring = self.covers(self.nanos(now));
        let mut tally = self.tally();
        let span = now.saturating_duration_since(tally.reported).as_secs_f64();
        let progress = Progress {
            elapsed,
            measuring,
            rate: tally.recent.len() as f64 / span.max(1e-9),
            p99: tally.recent.value_at_quantile(0.99),
            faults: tally.totals.faults.total(),
        };
        tally.recent.reset();
        tally.reported = now;
        progress
    }

    /// Returns the records. The caller adds what the server and the generator used.
    pub(crate) fn outcome(&self) -> Outcome {
        let interval = self.interval();
        let mut tally = self.tally();
        if let Some(interval) = &interval {
            mem::take(&mut tally.left).into_iter().for_each(|left| give_up_on(left, interval, &mut tally));
            let lost = mem::take(&mut tally.lost);
            give_up_on_each(lost, interval, interval.end, &mut tally);
        }
        let elapsed = interval.map_or(Duration::ZERO, |interval| interval.end - interval.start);
        Outcome {
            totals: Totals { elapsed, ..tally.totals.clone() },
            latencies: tally
                .latencies
                .iter_recorded()
                .map(|v| (v.value_iterated_to(), v.count_at_value()))
                .collect(),
            ended_early: None,
        }
    }

    /// The measured interval, once it is over.
    fn interval(&self) -> Option<Range<Instant>> {
        let [begin, end] = [&self.begin, &self.end].map(|moment| moment.load(Relaxed));
        let moment = |nanos| self.epoch + Duration::from_nanos(nanos);
        (begin < end && end < NEVER).then(|| moment(begin)..moment(end))
    }

    fn covers(&self, moment: u64) -> bool {
        self.begin.load(Relaxed) <= moment && moment < self.end.load(Relaxed)
    }

    fn nanos(&self, moment: Instant) -> u64 {
        as_nanos(moment.saturating_duration_since(self.epoch))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records what a lane left: each request is as late as it was at the end of the lane or of the interval.
fn give_up_on(left: Left, interval: &Range<Instant>, tally: &mut Tally) {
    let end = left.since.max(interval.end);
    give_up_on_each(left.dues, interval, end, tally);
    let last = if left.lost { interval.end } else { interval.end.min(left.since) };
    let late = left.pace.late(&(interval.start..last), end);
    tally.totals.unsent += late.count();
    late.record(&mut tally.latencies);
}

/// Records the requests due in the interval, as late as they are at `end`.
fn give_up_on_each(dues: Vec<Instant>, interval: &Range<Instant>, end: Instant, tally: &mut Tally) {
    for due in dues.into_iter().filter(|due| interval.contains(due)) {
        tally.totals.unsent += 1;
        tally.latencies.saturating_record(as_nanos(end - due).max(1));
    }
}

/// An empty histogram of latencies in nanoseconds, with three significant digits.
pub(crate) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, as_nanos(LONGEST), 3)
        .expect("the bounds are in order and the digits below six")
}

fn as_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
