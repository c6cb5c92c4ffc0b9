//! Many runs of a program under different schedules, and the shrinking of a failure.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::script::Script;
use crate::sim::{Builder, Failure, Outcome, Program, REPLAY, Sim, variable};
use crate::strategy::{Path, Schedule, Strategy};

/// Limit of the runs that shrink a failure.
const SHRINKS: usize = 500;

/// Limit of the steps of all of them.
const STEPS: u64 = 20_000_000;

/// Limit of those that leave a thread and descriptors behind.
const STUCK: usize = 100;

/// Tells how far an exploration went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exploration {
    /// The number of runs.
    pub runs: u64,
}

/// Runs `program` under `runs` random schedules, with the seeds from 0.
///
/// Seeds run in parallel. The environment variable `FIBRA_SIM_RUNS` overrides `runs`.
///
/// # Panics
/// Panics if a run fails, with the failure of the lowest seed, shrunk. Panics in builds without `--cfg fibra_sim`.
#[track_caller]
pub fn check(runs: u64, program: impl Fn() + Send + Sync + 'static) -> Exploration {
    refuse_without_points();
    check_seeds(Schedule::Random, runs, program)
}

/// Runs `program` under `runs` schedules of [`Schedule::Pct`] with that depth, as [`check`] does.
///
/// # Panics
/// As [`check`].
#[track_caller]
pub fn check_pct(runs: u64, depth: usize, program: impl Fn() + Send + Sync + 'static) -> Exploration {
    refuse_without_points();
    check_seeds(Schedule::Pct { depth }, runs, program)
}

/// Runs `program` under all schedules with at most so many preemptions, each once.
///
/// # Panics
/// As [`check`].
#[track_caller]
pub fn check_exhaustive(preemptions: usize, program: impl Fn() + Send + Sync + 'static) -> Exploration {
    refuse_without_points();
    let sim = Sim::builder();
    if is_replay() {
        sim.run(program);
        return Exploration { runs: 1 };
    }
    let program: Program = Arc::new(program);
    let (mut path, mut runs) = (Path::new(preemptions), 0);
    loop {
        let outcome = sim.run_once(&program, Strategy::Path(path), 0);
        runs += 1;
        if outcome.failure.is_some() {
            fail(&sim, &program, outcome);
        }
        let Strategy::Path(taken) = outcome.strategy else { unreachable!("the run had a path") };
        match taken.next() {
            Some(next) => path = next,
            None => return Exploration { runs },
        }
    }
}

/// Runs `program` under the schedule that a failure has told.
///
/// # Panics
/// Panics if the run fails, and if the text is no schedule of this version.
///
/// # Examples
/// ```
/// static ORDER: std::sync::Mutex<Vec<u32>> = std::sync::Mutex::new(Vec::new());
/// let program = || {
///     let children = [1, 2].map(|n| fibra::spawn(move || ORDER.lock().unwrap().push(n)));
///     children.into_iter().for_each(|child| child.join().unwrap());
/// };
/// fibra_sim::replay(0, "1:", program);
/// assert_eq!(*ORDER.lock().unwrap(), [1, 2]);
/// ```
#[track_caller]
pub fn replay(seed: u64, schedule: &str, program: impl Fn() + Send + Sync + 'static) {
    let script: Script = schedule.parse().unwrap_or_else(|error| panic!("{error}"));
    let program: Program = Arc::new(program);
    let outcome = Sim::builder().run_once(&program, Strategy::Script(script), seed);
    if let Err(failure) = outcome.into_result() {
        panic!("{failure}");
    }
}

/// Runs `program` under that schedule with the seeds from 0, whether or not the build has points of preemption.
#[track_caller]
pub(crate) fn check_seeds(
    schedule: Schedule,
    runs: u64,
    program: impl Fn() + Send + Sync + 'static,
) -> Exploration {
    let sim = &Sim::builder().schedule(schedule);
    if is_replay() {
        sim.clone().run(program);
        return Exploration { runs: 1 };
    }
    let program: &Program = &(Arc::new(program) as Program);
    let runs = variable("FIBRA_SIM_RUNS").unwrap_or(runs);
    // One run tells how long a run is.
    let first = sim.run_once(program, Strategy::Fifo, 0);
    let decisions = first.decisions;
    if first.failure.is_some() {
        fail(sim, program, first);
    }
    let (next, failed) = (AtomicU64::new(0), Mutex::new(None::<Outcome>));
    let failed_seed = AtomicU64::new(u64::MAX);
    let work = || {
        loop {
            // Relaxed, all: the numbers only have to differ, and a late look costs a run.
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= runs || seed > failed_seed.load(Ordering::Relaxed) {
                return;
            }
            let strategy = Strategy::new(sim.schedule, seed, Some(decisions));
            let outcome = sim.run_once(program, strategy, seed);
            if outcome.failure.is_some() && failed_seed.fetch_min(seed, Ordering::Relaxed) > seed {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|failed| failed.report.seed() > seed) {
                    *failed = Some(outcome);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    if let Some(failed) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        fail(sim, program, failed);
    }
    Exploration { runs }
}

#[track_caller]
fn fail(sim: &Builder, program: &Program, failed: Outcome) -> ! {
    let failure = failed.into_result().expect_err("only a failed run is told of");
    panic!("{}", shrink(sim, program, failure));
}

/// Removes choices from the schedule of a failure as long as it fails.
fn shrink(sim: &Builder, program: &Program, mut failure: Failure) -> Failure {
    let (mut runs, mut stuck, mut steps) = (0, 0, 0);
    // Halves first, then quarters, down to single choices.
    let mut size = failure.script.0.len();
    while size > 0 {
        let mut begin = 0;
        while begin < failure.script.0.len() && runs < SHRINKS && stuck < STUCK && steps < STEPS {
            let kept = failure.script.0.iter().enumerate();
            let kept = kept.filter(|(index, _)| !(begin..begin + size).contains(index));
            let script = Script(kept.map(|(_, (decision, choice))| (*decision, *choice)).collect());
            let outcome = sim.run_once(program, Strategy::Script(script), failure.seed);
            (runs, stuck) = (runs + 1, stuck + usize::from(outcome.is_stuck));
            steps += outcome.report.steps();
            match outcome.into_result() {
                // What it did, which may be less than it was told.
                Err(smaller) if smaller.script.0.len() < failure.script.0.len() => failure = smaller,
                _ => begin += size,
            }
        }
        size /= 2;
    }
    failure
}

#[track_caller]
fn refuse_without_points() {
    if !cfg!(fibra_sim) {
        panic!(
            "an exploration preempts tasks at points, which need a build with RUSTFLAGS=\"--cfg fibra_sim\""
        );
    }
}

/// Returns true if the environment asks for one run.
fn is_replay() -> bool {
    std::env::var_os(REPLAY).is_some()
}
