//! The idle and steal protocol on more workers than a test has processors: a simulation in virtual time.
//!
//! Queues, counters, park states, what a thief saw and how often one looks are the library's own files. What a worker does with them stands in
//! `scaling/worker.rs` and `scaling/rest.rs` once more, function by function, with the cost of each step in between
//! (`scaling/costs.rs`). So the protocol is the real one and the time is made up: what is promised here are relations and
//! bounds, no speed. SCALING.md quotes the table:
//!
//! `cargo test --release -p fibra-runtime --test scaling_model -- --ignored --nocapture figures`

#![expect(dead_code, reason = "the model uses what it needs of the files that it includes")]

#[path = "scaling/block.rs"]
mod block;
#[path = "scaling/clock.rs"]
mod clock;
mod common;
#[path = "scaling/costs.rs"]
mod costs;
#[path = "../src/scheduler/idle/mod.rs"]
mod idle;
#[path = "scaling/line.rs"]
mod line;
#[path = "scaling/load.rs"]
mod load;
#[path = "../src/scheduler/looks.rs"]
mod looks;
#[path = "scaling/model.rs"]
mod model;
#[path = "../src/scheduler/park_state.rs"]
mod park_state;
#[path = "scaling/primitive.rs"]
mod primitive;
#[path = "../src/scheduler/queue.rs"]
mod queue;
#[path = "scaling/random.rs"]
mod random;
#[path = "scaling/rest.rs"]
mod rest;
#[path = "scaling/tally.rs"]
mod tally;
#[path = "scaling/task.rs"]
mod task;
#[path = "../src/scheduler/task_counts.rs"]
mod task_counts;
#[path = "../src/scheduler/tuning.rs"]
mod tuning;
#[path = "scaling/worker.rs"]
mod worker;

/// The floors of the library, as the files that are included import from them.
mod base {
    pub(crate) use crate::primitive;
}
mod scheduler {
    pub(crate) use crate::{block, idle};
}
mod tasks {
    pub(crate) use crate::task as header;
}

use std::sync::LazyLock;

use clock::{HOLD_UP, Pace};
use common::hang_guard;
use costs::{MICRO, MILLI, RISE, SLACK, WATCH_FIRST, WATCH_MOST};
use load::{Lengths, Load};
use model::{Outcome, simulate};
use tally::Counts;

const SHORT: Lengths = Lengths::Around(100 * MICRO);
const LONG: Lengths = Lengths::Around(MILLI);

const BORN_HELD: Load = Load::BornOnOne { each: 50, lengths: SHORT, held: true };
const BORN_HELD_LONG: Load = Load::BornOnOne { each: 50, lengths: LONG, held: true };
const BORN_DETACHED: Load = Load::BornOnOne { each: 50, lengths: SHORT, held: false };
const AT_ONCE: Load = Load::AllAtOnce { each: 50, lengths: SHORT };
const BURSTS: Load = Load::Bursts { each: 2, bursts: 5, every: MILLI, lengths: SHORT };
const HALF_BUSY: Load = Load::Events { each: 15, every: 100 * MICRO, lengths: Lengths::Around(50 * MICRO) };
const BUSY: Load = Load::Events { each: 15, every: 100 * MICRO, lengths: Lengths::Around(85 * MICRO) };
const STUCK: Load = Load::Events {
    each: 15,
    every: 100 * MICRO,
    lengths: Lengths::Mixed { short: 20 * MICRO, long: 2 * MILLI, one_in: 50 },
};
const LONE: Load = Load::Lone { spawns: 500, every: 20 * MICRO, lengths: Lengths::All(5 * MICRO) };
const CONNECTIONS: Load = Load::Connections { each: 10, every: 20 * MICRO };

const LOADS: [(&str, Load); 10] = [
    ("born on one worker, joined", BORN_HELD),
    ("the same, of 1 ms each", BORN_HELD_LONG),
    ("the same, detached", BORN_DETACHED),
    ("all at once from outside", AT_ONCE),
    ("bursts from outside", BURSTS),
    ("events on each, half busy", HALF_BUSY),
    ("events on each, 85 % busy", BUSY),
    ("events, one in 50 is long", STUCK),
    ("connections at one worker", CONNECTIONS),
    ("one spawns, the others have nothing", LONE),
];

/// Those that look for lost wake-ups: something comes while workers park and rise, and then nothing for long.
const HUNTS: [(&str, Load); 3] =
    [("near parks", NEAR_PARKS), ("near parks, long", NEAR_PARKS_LONG), ("near watches", NEAR_WATCHES)];
const NEAR_PARKS: Load =
    Load::Groups { groups: 300, of: 2, within: 25 * MICRO, every: 5 * MILLI, lengths: Lengths::All(MICRO) };
const NEAR_PARKS_LONG: Load = Load::Groups {
    groups: 300,
    of: 3,
    within: 40 * MICRO,
    every: 20 * MILLI,
    lengths: Lengths::All(4 * MILLI),
};
const NEAR_WATCHES: Load = Load::Events {
    each: 300,
    every: 400 * MICRO,
    lengths: Lengths::Mixed { short: 20 * MICRO, long: 5 * MILLI, one_in: 16 },
};

/// Every load on some numbers of workers, and the models on a few workers that are held up now and then.
static RUNS: LazyLock<Vec<(&str, Outcome)>> = LazyLock::new(|| {
    let loads = LOADS.iter().flat_map(|named| [1, 2, 3, 8, 64].map(|workers| (named, workers, Pace::Even)));
    let searches =
        HUNTS.iter().flat_map(|named| [1, 2, 3, 4, 8].map(|workers| (named, workers, Pace::Interrupted)));
    let runs = loads.chain(searches);
    runs.map(|((name, load), workers, pace)| (*name, simulate(workers, pace, load))).collect()
});

fn for_all_runs(promise: impl Fn(&Outcome) -> bool) {
    let _guard = hang_guard();
    for (name, run) in RUNS.iter() {
        assert!(promise(run), "{name}, {} workers: {:?}", run.workers, run.counts);
    }
}

#[test]
fn every_task_runs_once() {
    for_all_runs(|run| run.counts.ended == run.counts.tasks && run.counts.twice == 0);
}

#[test]
fn in_the_end_all_workers_sleep_and_none_is_counted_as_awake() {
    for_all_runs(|run| run.at_rest);
}

#[test]
fn no_task_waits_while_a_worker_sleeps_and_none_comes_to_help() {
    // A worker that came too late to see it at one look sees it at the next, and takes it at the look after, unless held up.
    let bound = 2 * (WATCH_MOST + SLACK + RISE) + 20 * HOLD_UP;
    for_all_runs(|run| run.counts.neglected <= bound);
}

#[test]
fn at_most_half_of_the_workers_search_or_one() {
    for_all_runs(|run| run.counts.most_searching <= (run.workers as u64).div_ceil(2));
}

#[test]
fn a_load_that_spreads_wakes_each_worker_a_few_times() {
    let _guard = hang_guard();
    for load in [BORN_HELD, BORN_HELD_LONG, BORN_DETACHED, AT_ONCE] {
        let run = simulate(64, Pace::Even, &load);
        assert!(run.counts.wakes <= 3 * 64, "{:?}", run.counts);
    }
}

#[test]
fn work_born_on_one_of_eight_workers_is_done_in_a_fifth_more_than_the_ideal_time() {
    let _guard = hang_guard();
    for load in [BORN_HELD, BORN_HELD_LONG, BORN_DETACHED, AT_ONCE] {
        let run = simulate(8, Pace::Even, &load);
        assert!(run.stretch() <= 1.2, "{}: {:?}", run.stretch(), run.counts);
    }
}

#[test]
fn workers_come_to_work_born_on_one_in_time_in_proportion_to_their_number() {
    let _guard = hang_guard();
    for workers in [16, 64, 128] {
        let run = simulate(workers, Pace::Even, &BORN_HELD_LONG);
        let ideal = run.counts.useful / workers as u64;
        let ramp = workers as u64 * (WATCH_MOST / 2 + SLACK);
        assert!(run.counts.last <= ideal + ideal / 10 + ramp, "{:?}", run.counts);
    }
}

#[test]
fn a_worker_that_has_what_it_needs_is_left_alone() {
    let _guard = hang_guard();
    for workers in [8, 64] {
        let Outcome { counts, .. } = simulate(workers, Pace::Even, &HALF_BUSY);
        assert!(counts.wakes * 20 <= counts.tasks, "{counts:?}");
        assert!(counts.stolen * 10 <= counts.tasks, "{counts:?}");
    }
}

#[test]
fn of_many_idle_workers_few_watch_one_that_spawns() {
    let _guard = hang_guard();
    for workers in [8, 64] {
        let Outcome { counts, .. } = simulate(workers, Pace::Even, &LONE);
        let of_one = counts.last / WATCH_FIRST;
        assert!(counts.ticks <= of_one + workers as u64, "{counts:?}");
    }
}

#[test]
fn tasks_queued_behind_a_long_task_are_taken_within_two_watches() {
    let _guard = hang_guard();
    for workers in [8, 64] {
        let Outcome { counts, .. } = simulate(workers, Pace::Even, &STUCK);
        assert!(counts.longest <= 2 * (WATCH_MOST + SLACK + RISE), "{counts:?}");
    }
}

#[test]
fn connections_that_come_in_at_one_worker_are_spread_evenly() {
    let _guard = hang_guard();
    for workers in [2, 8, 64] {
        let run = simulate(workers, Pace::Even, &CONNECTIONS);
        assert!(run.homes.iter().all(|home| home.abs_diff(10) <= 1), "{:?}", run.homes);
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    let _guard = hang_guard();
    assert_eq!(simulate(8, Pace::Even, &BUSY).counts, simulate(8, Pace::Even, &BUSY).counts);
}

/// Prints what SCALING.md quotes.
#[test]
#[ignore = "prints tables, and takes half a minute without the optimizer"]
fn figures() {
    println!("| load | workers | busy | time / ideal | stolen / task | steals / task | wakes / task |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for_figures(&LOADS[..4], |run, each| {
        let Counts { stolen, steals, wakes, .. } = run.counts;
        let (busy, stretch) = (100.0 / run.stretch(), run.stretch());
        format!("{busy:.0} % | {stretch:.2} | {:.2} | {:.3} | {:.3}", each(stolen), each(steals), each(wakes))
    });
    println!(
        "| load | workers | wait, mean | longest | stolen / task | wakes / task | watches / worker and ms |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for_figures(&LOADS[4..], |run, each| {
        let Counts { waited, longest, stolen, wakes, ticks, last, .. } = run.counts;
        let watches = ticks as f64 * 1e6 / (run.workers as u64 * last) as f64;
        let (mean, longest) = (each(waited) / 1e3, longest as f64 / 1e3);
        format!("{mean:.0} µs | {longest:.0} µs | {:.2} | {:.3} | {watches:.1}", each(stolen), each(wakes))
    });
}

fn for_figures(loads: &[(&str, Load)], row: impl Fn(&Outcome, &dyn Fn(u64) -> f64) -> String) {
    for (name, load) in loads {
        for workers in [1, 2, 8, 64, 256] {
            let run = simulate(workers, Pace::Even, load);
            let each = |count: u64| count as f64 / run.counts.tasks as f64;
            println!("| {name} | {workers} | {} |", row(&run, &each));
        }
    }
}
