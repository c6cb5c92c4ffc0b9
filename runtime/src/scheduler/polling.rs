//! Adaptive polling: whether to poll a little before sleeping in the driver.
//!
//! Falling asleep and being woken costs processor time and delay, depending on the machine and the
//! load. One busy connection pays for it with every request. Under an even stream of requests a
//! sleeper finds several at once when it wakes. No threshold on the length of idle times tells
//! these loads apart. So the worker tries both ways, and compares the processor time that its
//! thread spends per task that it runs.
//!
//! Idle times are counted in epochs. Each epoch is spent in one way, polling or sleeping, and
//! measured as a whole with two readings of the thread's clock. The cheaper way is kept, with some
//! favour for polling, which answers sooner. Now and then an epoch explores the alternative, in
//! case the load has changed; the longer nothing changes, the rarer that is. Polling that finds
//! nothing a few times in a row ends its epoch at once, so little is spent on it where it is
//! useless.
//!
//! Under load ([`Reading::is_loaded_since`]) requests queue behind each other; wake-ups are not
//! what they wait for. Polling then takes the same work in smaller portions, each with a poll of
//! the driver. That costs more, but less than two measurements of the same way differ by. So
//! polling is not favoured under load but has to be cheaper by a margin. A lone connection keeps
//! its worker busy for less than half of the time, since its peer has to compute as well.
//!
//! Hand-overs between workers differ: such wakes do not come from the driver, and are no such load.
//! Polling pays there only once both workers poll. While one sleeps, its partner polls for as long
//! as the sleeper takes to wake, which is expensive. So a worker that another thread woke polls for
//! a [short](SHORT) time even in a sleeping epoch, about as long as a sleep would cost. Then one
//! worker that tries to poll suffices: it finds that its partner answers at once. Short polls that
//! find nothing become rare, until one finds something.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::base::clock;
use crate::base::sys;

/// The longest time of one poll, after its first look.
const LONGEST: Duration = Duration::from_micros(40);

/// The longest time of a short poll, which saves a sleep between two hand-overs.
const SHORT: Duration = Duration::from_micros(8);

/// The most idle times without a short poll, after several have found nothing.
const SKIP_MOST: u32 = 15;

/// Idle times in an epoch.
const EPOCH: u32 = 32;

/// Polls in a row that may find nothing before the epoch ends early.
const FAILURES: u32 = 3;

/// Epochs in a row without load until the load counts as gone: many connections ask in bursts with
/// a trickle in between.
const MEMORY: u32 = 64;

/// Epochs between two explorations of the alternative: at first, while polling, and while sleeping.
const EXPLORE_FIRST: u32 = 4;
const EXPLORE_MOST_POLLING: u32 = 32;
const EXPLORE_MOST_SLEEPING: u32 = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Sleep,
    Poll,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::Sleep => Way::Poll,
            Way::Poll => Way::Sleep,
        }
    }
}

/// Records what a thread has spent and done so far.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    /// Processor time.
    pub(crate) spent: Duration,
    /// Tasks run; wraps.
    pub(crate) done: u32,
    /// Events that the driver found; wraps.
    pub(crate) events: u32,
}

impl Reading {
    /// Reads what this thread has spent before it becomes a worker.
    ///
    /// `fibra::run` may be called late.
    fn first() -> Self {
        Reading { at: clock::machine(), spent: sys::thread_time(), done: 0, events: 0 }
    }

    /// Returns true if this thread, which slept when idle, was busy for more than five eighths of
    /// the time with events that the driver found.
    fn is_loaded_since(&self, begun: &Reading, idle_times: u32) -> bool {
        let found = self.events.wrapping_sub(begun.events);
        found >= idle_times && self.spent.saturating_sub(begun.spent) * 8 > (self.at - begun.at) * 5
    }
}

/// Holds what one worker has learned.
pub(crate) struct Polling {
    enabled: bool,
    /// The way of this epoch, and the cheaper way so far.
    way: Way,
    best: Way,
    /// Nanoseconds per task, by way; unknown at first.
    sleeping: Option<u64>,
    polling: Option<u64>,
    /// For how many epochs the last load is still remembered.
    loaded: u32,
    begun: Reading,
    left: u32,
    failures: u32,
    explore: u32,
    until_explore: u32,
    /// After the last short poll that found nothing: for how many idle times there is none, and how many of them are left.
    skip: u32,
    until_short: u32,
}

impl Polling {
    /// Starts to learn. Called on the thread of the worker.
    pub(crate) fn new(enabled: bool) -> Self {
        Polling {
            enabled,
            way: Way::Sleep,
            best: Way::Sleep,
            sleeping: None,
            polling: None,
            loaded: 0,
            begun: Reading::first(),
            left: EPOCH,
            failures: 0,
            explore: EXPLORE_FIRST,
            until_explore: 1,
            skip: 0,
            until_short: 0,
        }
    }

    /// Returns how long to poll in the idle time that begins now, if at all.
    ///
    /// `handed` tells whether another thread ended the last idle time. `read` is called once per
    /// epoch.
    pub(crate) fn begin(&mut self, handed: bool, read: impl FnOnce() -> Reading) -> Option<Duration> {
        if !self.enabled {
            return None;
        }
        if self.left == 0 {
            self.end_epoch(read());
        }
        self.left -= 1;
        match self.way {
            Way::Poll => Some(LONGEST),
            Way::Sleep => (handed && self.may_poll_shortly()).then_some(SHORT),
        }
    }

    fn may_poll_shortly(&mut self) -> bool {
        let skipped = self.until_short > 0;
        self.until_short = self.until_short.saturating_sub(1);
        !skipped
    }

    /// Notes that work came while polling.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.skip = 0;
    }

    /// Notes that no work came in all the time of a poll.
    pub(crate) fn failed(&mut self, read: impl FnOnce() -> Reading) {
        if self.way == Way::Sleep {
            self.skip = (2 * self.skip + 1).min(SKIP_MOST);
            self.until_short = self.skip;
            return;
        }
        self.failures += 1;
        if self.failures >= FAILURES {
            self.end_epoch(read());
        }
    }

    fn end_epoch(&mut self, now: Reading) {
        let cost = self.cost(now);
        let idle_times = EPOCH - self.left;
        let loaded = self.way == Way::Sleep && now.is_loaded_since(&self.begun, idle_times);
        if !loaded && self.loaded == 1 && self.best == Way::Sleep {
            self.until_explore = self.until_explore.min(EXPLORE_FIRST);
        }
        self.loaded = if loaded { MEMORY } else { self.loaded.saturating_sub(1) };
        let known = match self.way {
            Way::Sleep => &mut self.sleeping,
            Way::Poll => &mut self.polling,
        };
        // Of the alternative only the latest epoch counts: the one before may be from another load.
        *known = Some(match *known {
            Some(known) if self.way == self.best => (known / 4 * 3).saturating_add(cost / 4),
            _ => cost,
        });
        if self.way != self.best {
            self.settle(self.cheaper());
            return self.start(self.best, now);
        }
        if self.best == Way::Poll && self.cheaper() == Way::Sleep {
            self.settle(Way::Sleep);
        }
        self.until_explore = self.until_explore.saturating_sub(1);
        let explores = self.until_explore == 0;
        self.start(if explores { self.best.other() } else { self.best }, now);
    }

    /// Returns the nanoseconds per task of the epoch that ends.
    ///
    /// Polling that brought nothing costs the maximum.
    fn cost(&self, now: Reading) -> u64 {
        let spent = now.spent.saturating_sub(self.begun.spent).as_nanos();
        match now.done.wrapping_sub(self.begun.done) {
            0 if self.way == Way::Poll => u64::MAX,
            done => u64::try_from(spent / u128::from(done.max(1))).unwrap_or(u64::MAX),
        }
    }

    /// Returns the way to go on with.
    ///
    /// Polling wins where it costs up to a quarter more than sleeping, since it answers in half the
    /// time. Once chosen, it may cost up to three eighths more: the peer may learn at the same
    /// time, and two learners that switch at each small difference would not settle. Under load it
    /// may cost three quarters at most.
    fn cheaper(&self) -> Way {
        let most = |cost: u64| match self.best {
            _ if self.loaded > 0 => cost / 4 * 3,
            Way::Poll => cost.saturating_add(cost / 8 * 3),
            Way::Sleep => cost.saturating_add(cost / 4),
        };
        match (self.polling, self.sleeping) {
            (Some(polling), Some(sleeping)) if polling <= most(sleeping) => Way::Poll,
            _ => Way::Sleep,
        }
    }

    /// Goes on with `best`, and explores the alternative more rarely the longer `best` stays.
    fn settle(&mut self, best: Way) {
        let most = if best == Way::Poll { EXPLORE_MOST_POLLING } else { EXPLORE_MOST_SLEEPING };
        self.explore = if best == self.best { (self.explore * 2).min(most) } else { EXPLORE_FIRST };
        self.until_explore = self.explore;
        self.best = best;
    }

    fn start(&mut self, way: Way, now: Reading) {
        (self.way, self.begun, self.left, self.failures) = (way, now, EPOCH, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker whose idle times all cost the same, by way, in nanoseconds per task.
    struct Simulated {
        polling: Polling,
        now: Reading,
        polled: u32,
        /// Tasks that a sleep finds when it ends; a poll that finds any finds one.
        found: u32,
        /// Whether the driver finds them.
        driven: bool,
        /// How many nanoseconds of every hundred a worker is busy that sleeps.
        busy: u32,
    }

    impl Simulated {
        fn new(enabled: bool) -> Self {
            let polling = Polling::new(enabled);
            let now = polling.begun;
            Simulated { polling, now, polled: 0, found: 1, driven: true, busy: 40 }
        }

        /// `rounds` idle times; `poll` is `None` where a poll finds nothing, and a sleep follows.
        fn run(&mut self, rounds: u32, sleep: u64, poll: Option<u64>) -> u32 {
            self.polled = 0;
            for _ in 0..rounds {
                let now = self.now;
                let polls = self.polling.begin(false, || now).is_some();
                self.polled += u32::from(polls);
                let (cost, found, busy) = match (polls, poll) {
                    (true, Some(cost)) => {
                        self.polling.succeeded();
                        (cost, 1, 100)
                    }
                    (true, None) => {
                        self.spend(LONGEST, 100);
                        let now = self.now;
                        self.polling.failed(|| now);
                        (sleep, self.found, self.busy)
                    }
                    (false, _) => (sleep, self.found, self.busy),
                };
                self.spend(Duration::from_nanos(cost) * found.max(1), busy);
                self.now.done += found;
                self.now.events += if self.driven { found } else { 0 };
            }
            self.polled
        }

        fn spend(&mut self, time: Duration, busy: u32) {
            self.now.spent += time;
            self.now.at += time * 100 / busy;
        }
    }

    #[test]
    fn what_its_thread_has_spent_before_is_not_of_the_first_epoch() {
        let before = loop {
            let spent = sys::thread_time();
            if !spent.is_zero() || cfg!(not(unix)) {
                break spent;
            }
        };
        assert!(Polling::new(true).begun.spent >= before);
    }

    #[test]
    fn polls_where_that_is_cheaper() {
        let mut worker = Simulated::new(true);
        worker.run(1000, 22_000, Some(16_000));
        assert!(worker.run(100_000, 22_000, Some(16_000)) > 95_000);
    }

    #[test]
    fn sleeps_where_that_is_cheaper() {
        let mut worker = Simulated::new(true);
        worker.run(1000, 8_600, Some(16_600));
        assert!(worker.run(100_000, 8_600, Some(16_600)) < 3_000);
    }

    #[test]
    fn an_idle_worker_does_not_poll() {
        let mut worker = Simulated::new(true);
        worker.run(1000, 22_000, None);
        assert!(worker.run(100_000, 22_000, None) < 100);
        worker.found = 0;
        worker.run(1000, 7_000, None);
        assert!(worker.run(100_000, 7_000, None) < 100, "nor one that is woken for nothing");
    }

    #[test]
    fn a_change_is_learned_both_ways() {
        let mut worker = Simulated::new(true);
        worker.run(100_000, 8_600, Some(16_600));
        worker.run(20_000, 22_000, Some(16_000));
        assert!(worker.run(1000, 22_000, Some(16_000)) > 900);
        worker.run(3_000, 8_600, Some(16_600));
        assert!(worker.run(1000, 8_600, Some(16_600)) < 200);
        worker.run(1000, 22_000, Some(16_000));
        assert!(worker.run(10_000, 22_000, None) < 50);
    }

    #[test]
    fn under_load_polling_has_to_be_cheaper_by_far() {
        let mut worker = Simulated::new(true);
        worker.run(1000, 22_000, Some(16_000));
        worker.busy = 80;
        worker.run(3_000, 8_000, Some(7_000));
        assert!(worker.run(10_000, 8_000, Some(7_000)) < 300);
        worker.run(20_000, 8_000, Some(5_500));
        assert!(worker.run(10_000, 8_000, Some(5_500)) > 9_000);
        worker.busy = 40;
        worker.run(10_000, 16_000, Some(18_000));
        assert!(worker.run(10_000, 16_000, Some(18_000)) > 9_000, "the load is gone");
    }

    #[test]
    fn hand_overs_between_workers_are_no_load() {
        let mut worker = Simulated::new(true);
        (worker.busy, worker.driven) = (80, false);
        worker.run(1000, 8_000, Some(9_000));
        assert!(worker.run(10_000, 8_000, Some(9_000)) > 9_000);
    }

    #[test]
    fn whom_another_thread_wakes_polls_shortly_as_long_as_that_finds_something() {
        let mut worker = Simulated::new(true);
        worker.run(1000, 8_600, Some(16_600));
        let now = worker.now;
        let polling = &mut worker.polling;
        let mut polls = |finds: bool| {
            let polls = (0..EPOCH).filter(|_| {
                polling.way = Way::Sleep;
                polling.left = EPOCH;
                let begun = polling.begin(true, || now);
                assert!(begun.is_none_or(|longest| longest == SHORT));
                match (begun, finds) {
                    (Some(_), true) => polling.succeeded(),
                    (Some(_), false) => polling.failed(|| now),
                    (None, _) => {}
                }
                begun.is_some()
            });
            polls.count()
        };
        assert_eq!(polls(true), 32);
        assert_eq!(polls(false), 5, "1, 3, 7 and 15 idle times apart");
        assert_eq!(polls(false), 2);
        assert!(polls(true) > 16, "again once one has found something");
    }

    #[test]
    fn never_where_there_is_one_core() {
        let mut worker = Simulated::new(false);
        assert_eq!(worker.polling.begin(true, || worker.now), None);
        assert_eq!(worker.run(10_000, 22_000, Some(1)), 0);
    }
}
