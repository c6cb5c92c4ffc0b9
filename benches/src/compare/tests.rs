//! The targets of fibra: a target that vanishes from a question is missed here.

use super::contests;
use super::entrant::{Contest, Kind};
use super::question::Bound::{self, Best, Itself, Named, OneWorker};
use super::question::Measure::{self, Cpu, Latency, Lateness, Memory, Shares, Time};
use super::question::Target;

/// The question, with how many workers it is asked, what is measured of which entrant, in proportion to what,
/// and how much it may be at the most. The rest is judged elsewhere: the tail of a thousand connections,
/// requests by the clock and system calls by `figures`, instructions by `ci/counts.sh`.
type Meant = (&'static str, usize, Measure, &'static str, Bound, f64);

const FIBRA: &str = "fibra";
const BY_HAND: Bound = Named("event loop");
const TOKIO: Bound = Named("tokio");
const CURRENT: Bound = Named("tokio current");
const PARKING_LOT: Bound = Named("parking_lot");
const LINES: Bound = Named("cache lines");
const EVEN: Bound = Named("even shares");

const MEANT: [Meant; 63] = [
    ("tasks: yield, 2 tasks", 1, Time, FIBRA, Best, 0.35),
    ("tasks: yield, 1000 tasks", 1, Time, FIBRA, Best, 0.5),
    ("tasks: spawn and join one", 1, Time, FIBRA, Best, 0.5),
    ("tasks: spawn 100000, join all", 1, Time, FIBRA, Best, 0.8),
    ("tasks: park and unpark, there and back", 1, Time, FIBRA, TOKIO, 0.6),
    ("structured: timeout around what does not wait", 1, Time, FIBRA, Itself, 60.0),
    ("structured: scope of two children", 1, Time, FIBRA, Named("two spawns"), 1.3),
    ("structured: skynet of 100000 leaves", 1, Time, FIBRA, Best, 1.0),
    ("structured: loop over 10 million small items", 2, Time, FIBRA, Named("rayon"), 1.3),
    ("locks: mutex, free", 1, Time, FIBRA, PARKING_LOT, 1.05),
    ("locks: read lock, free", 1, Time, FIBRA, PARKING_LOT, 1.05),
    ("locks: mutex over a yield, 2 tasks", 1, Time, FIBRA, Best, 0.4),
    ("locks: mutex over a yield, 2 tasks", 1, Shares, FIBRA, Itself, 1.1),
    ("locks: mutex over a yield, 64 tasks", 1, Time, FIBRA, Best, 0.4),
    ("locks: mutex over a yield, 64 tasks", 1, Shares, FIBRA, Itself, 1.1),
    ("locks: mutex over a yield, 1000 tasks", 1, Time, FIBRA, Best, 0.4),
    ("locks: mutex over a yield, 1000 tasks", 1, Shares, FIBRA, Itself, 1.1),
    ("locks: reentrant mutex over a yield, 64 tasks", 1, Shares, FIBRA, Itself, 1.1),
    ("locks: semaphore, 3 of 1000 tasks", 1, Time, FIBRA, Best, 0.35),
    ("locks: mutex, tiny section, 2 tasks apart", 2, Time, FIBRA, PARKING_LOT, 1.5),
    ("locks: mutex, tiny section, 2 tasks apart", 2, Shares, FIBRA, Itself, 2.0),
    ("locks: mutex, tiny section, 8 tasks", 2, Time, FIBRA, PARKING_LOT, 1.5),
    ("locks: mutex, tiny section, 8 tasks", 2, Shares, FIBRA, Itself, 2.0),
    ("locks: mutex, tiny section, 64 tasks", 2, Time, FIBRA, PARKING_LOT, 1.5),
    ("locks: mutex, tiny section, 64 tasks", 2, Shares, FIBRA, Itself, 2.0),
    ("hand-over: ping-pong, 1 slot", 1, Time, FIBRA, Best, 0.4),
    ("hand-over: ping-pong, event", 1, Time, FIBRA, Best, 0.3),
    ("hand-over: ping-pong, condition variable", 1, Time, FIBRA, Best, 0.45),
    ("hand-over: call and oneshot reply", 1, Time, FIBRA, Best, 0.5),
    ("hand-over: 128 slots, 1 producer", 1, Time, FIBRA, TOKIO, 0.35),
    ("hand-over: 128 slots, 8 producers", 1, Time, FIBRA, TOKIO, 0.35),
    ("hand-over: ping-pong, 1 slot", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over: ping-pong, rendezvous", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over: ping-pong, event", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over: ping-pong, condition variable", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over: call and oneshot reply", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over: 128 slots, 1 producer", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over: unbounded, 1 producer", 2, Time, FIBRA, OneWorker, 1.3),
    ("hand-over, apart: ping-pong, 1 slot", 2, Time, FIBRA, LINES, 2.5),
    ("hand-over, apart: ping-pong, rendezvous", 2, Time, FIBRA, LINES, 2.5),
    ("hand-over, apart: ping-pong, event", 2, Time, FIBRA, LINES, 2.5),
    ("hand-over, apart: ping-pong, condition variable", 2, Time, FIBRA, LINES, 2.5),
    ("hand-over, apart: call and oneshot reply", 2, Time, FIBRA, LINES, 2.5),
    ("crowds: condition variable, slot of 10 and 10 tasks", 1, Time, "fibra threads", PARKING_LOT, 2.0),
    ("crowds: condition variable, slot of 10 and 10 tasks", 2, Time, FIBRA, PARKING_LOT, 3.0),
    ("crowds: condition variable, slot of 10 and 10 tasks", 4, Time, FIBRA, PARKING_LOT, 3.0),
    ("locks: 1 write in 8, tiny section, 64 tasks", 2, Time, FIBRA, Best, 1.0),
    ("locks: 1 write in 8, tiny section, 64 tasks", 2, Time, FIBRA, Itself, 40.0),
    ("timers: 100000 sleeps of 1 to 100 ms", 1, Cpu, FIBRA, TOKIO, 1.0),
    ("timers: 100000 sleeps of 1 to 100 ms", 1, Lateness, FIBRA, Itself, 100e3),
    ("skewed load: tasks born on one worker", 2, Time, FIBRA, EVEN, 1.2),
    ("skewed load: tasks started on one worker", 2, Time, "fibra migr.", EVEN, 1.3),
    ("memory: 200000 sleeping tasks, bytes each", 1, Memory, FIBRA, Itself, 4_900.0),
    ("memory: 200000 sleeping tasks, bytes each", 1, Memory, "fibra 64-KiB", Itself, 4_500.0),
    ("network: echo, 1 connection", 1, Latency, FIBRA, BY_HAND, 0.5),
    ("network: echo, 1 connection", 1, Cpu, FIBRA, BY_HAND, 1.0),
    ("network: echo, 1 connection", 1, Cpu, FIBRA, CURRENT, 1.0),
    ("network: echo, 64 connections", 1, Cpu, FIBRA, BY_HAND, 1.04),
    ("network: echo, 64 connections", 1, Cpu, FIBRA, CURRENT, 1.0),
    ("network: echo, 1000 connections", 1, Cpu, FIBRA, BY_HAND, 1.04),
    ("network: echo, 1000 connections", 1, Cpu, FIBRA, CURRENT, 1.0),
    ("network: echo, 8000 connections", 1, Cpu, FIBRA, BY_HAND, 1.06),
    ("network: echo, 8000 connections", 1, Cpu, FIBRA, CURRENT, 1.0),
];

#[test]
fn what_is_meant_to_be_reached_is_asked_and_judged() {
    let all = [1, 2, 4].map(|workers| (workers, contests(workers)));
    for (title, workers, measure, entrant, of, most) in MEANT {
        let (_, contests) = all.iter().find(|(asked, _)| *asked == workers).expect("a half");
        let contest = contests.iter().find(|contest| contest.title() == title);
        let contest = contest.unwrap_or_else(|| panic!("{title} is not asked with {workers} workers"));
        let meant = Target { measure, entrant, most, of };
        assert!(contest.targets.contains(&meant), "{title}: {:?} instead of {meant:?}", contest.targets);
        let enters = |name: &str| contest.entrants.iter().any(|entrant| entrant.name.starts_with(name));
        assert!(enters(entrant), "{title}: {entrant} does not enter");
        if let Named(name) = of {
            assert!(enters(name), "{title}: {name} does not enter");
        }
    }
}

#[test]
fn with_two_workers_no_row_may_be_behind_the_best_rival() {
    let has_rival = |contest: &Contest| contest.entrants.iter().any(|entrant| entrant.kind == Kind::Theirs);
    for contest in contests(2).iter().filter(|contest| has_rival(contest)) {
        let is_judged = contest.targets.iter().any(|target| target.of == Best && target.most <= 1.0);
        // A contended mutex has a bound of its own, by the machine's cache lines.
        let is_excepted = contest.title().starts_with("locks: mutex, tiny section");
        assert!(is_judged || is_excepted, "{}: {:?}", contest.title(), contest.targets);
    }
}
