//! The targets of fibra. Requests by the clock and system calls are judged by `figures`, instructions by
//! `ci/counts.sh`.

use regex_lite::Regex;

use super::network::EVENT_LOOP;
use super::question::Bound::{self, Best, Itself, Named, OneWorker};
use super::question::Measure::{self, Cpu, Latency, Lateness, LatenessTail, Memory, Shares, Time};
use super::question::Target;
use super::question::When::{self, Always, More, One};

const FIBRA: &str = "fibra";
const MIGRATABLE: &str = "fibra migr.";
const BY_HAND: Bound = Named(EVENT_LOOP);
const EVEN: Bound = Named("even shares");
const PARKING_LOT: Bound = Named("parking_lot");
const TOKIO: Bound = Named("tokio");

/// A pattern of titles, the numbers of workers, what is measured of which entrant, in proportion to what, and
/// its bound.
type Meant = (&'static str, When, Measure, &'static str, Bound, f64);

const MEANT: &[Meant] = &[
    // With two workers no row may be behind the best rival. A contended mutex has a bound of its own.
    ("^(tasks|structured|hand-over|crowds|timers)|^locks: ([^m]|mutex over)", More, Time, FIBRA, Best, 1.0),
    ("^skewed load: tasks (born|behind)", More, Time, FIBRA, Best, 1.0),
    ("^skewed load: tasks started", More, Time, MIGRATABLE, Best, 1.0),
    ("^timers", More, Cpu, FIBRA, Best, 1.0),
    ("^timers", More, Lateness, FIBRA, Best, 1.0),
    ("^timers", More, LatenessTail, FIBRA, Best, 1.0),
    ("^locks: mutex, tiny section, (8|64|2 tasks apart)", More, Time, FIBRA, PARKING_LOT, 1.5),
    ("^locks: mutex, tiny section, (8|64|2 tasks apart)", More, Shares, FIBRA, Itself, 2.0),
    ("^locks: 1 write in 8, tiny section, 64", More, Time, FIBRA, Itself, 40.0),
    ("^crowds: condition variable, slot", Always, Time, "fibra threads", PARKING_LOT, 2.0),
    ("^crowds: condition variable, slot", More, Time, FIBRA, PARKING_LOT, 3.0),
    ("^hand-over: (ping-pong|call|128 slots, 1 p|unbounded)", More, Time, FIBRA, OneWorker, 1.3),
    ("^hand-over, apart: (ping-pong|call)", More, Time, FIBRA, Named("cache lines"), 2.5),
    ("^skewed load: tasks (born|behind)", More, Time, FIBRA, EVEN, 1.2),
    ("^skewed load: tasks started", More, Time, MIGRATABLE, EVEN, 1.3),
    ("^structured: loop", More, Time, FIBRA, Named("rayon"), 1.3),
    ("^structured: scope", Always, Time, FIBRA, Named("two spawns"), 1.3),
    ("^structured: skynet", One, Time, FIBRA, Best, 1.0),
    ("^structured: timeout", One, Time, FIBRA, Itself, 60.0),
    ("^tasks: yield, 2 ", One, Time, FIBRA, Best, 0.35),
    ("^tasks: yield, 1000 ", One, Time, FIBRA, Best, 0.5),
    ("^tasks: spawn and join one", One, Time, FIBRA, Best, 0.5),
    ("^tasks: spawn 100000,", One, Time, FIBRA, Best, 0.8),
    ("^tasks: park", One, Time, FIBRA, TOKIO, 0.6),
    ("^locks: (mutex|read lock), free", One, Time, FIBRA, PARKING_LOT, 1.05),
    ("^locks: mutex over", One, Time, FIBRA, Best, 0.4),
    ("^locks: (reentrant )?mutex over", One, Shares, FIBRA, Itself, 1.1),
    ("^locks: semaphore, 3", One, Time, FIBRA, Best, 0.35),
    ("^hand-over: ping-pong, 1 slot", One, Time, FIBRA, Best, 0.4),
    ("^hand-over: ping-pong, event", One, Time, FIBRA, Best, 0.3),
    ("^hand-over: ping-pong, condition", One, Time, FIBRA, Best, 0.45),
    ("^hand-over: call", One, Time, FIBRA, Best, 0.5),
    ("^hand-over: 128 slots, . producer", One, Time, FIBRA, TOKIO, 0.35),
    ("^timers: 100000 ", One, Cpu, FIBRA, TOKIO, 1.0),
    ("^timers: 100000 ", One, Lateness, FIBRA, Itself, 100e3),
    ("^memory: 200000 ", One, Memory, FIBRA, Itself, 4_900.0),
    ("^memory: 200000 ", One, Memory, "fibra 64-KiB", Itself, 4_500.0),
    ("^network: echo", One, Cpu, FIBRA, Named("tokio current"), 1.0),
    ("^network: echo, 1 connection", One, Cpu, FIBRA, BY_HAND, 1.0),
    ("^network: echo, (64|1000) connections", One, Cpu, FIBRA, BY_HAND, 1.04),
    ("^network: echo, 8000 connections", One, Cpu, FIBRA, BY_HAND, 1.06),
    ("^network: echo, 1 connection", One, Latency, FIBRA, BY_HAND, 0.5),
    ("^network: HTTP", One, Cpu, FIBRA, Best, 0.98),
];

/// The targets of the question with this title.
pub(super) fn of(title: &str, workers: usize) -> Vec<Target> {
    let is_meant = |(pattern, when, ..): &&Meant| {
        when.includes(workers) && Regex::new(pattern).expect("a regular expression").is_match(title)
    };
    let target = |&(_, _, measure, entrant, of, most): &Meant| Target { measure, entrant, most, of };
    MEANT.iter().filter(is_meant).map(target).collect()
}
