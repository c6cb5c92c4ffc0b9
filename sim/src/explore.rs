//! Many runs of a program under different schedules, and the shrinking of a failure.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::script::Script;
use crate::sim::{Builder, Failure, Program, REPLAY, SEED, Sim, variable};
use crate::strategy::{Path, Schedule};

/// Limit of the runs that shrink a failure.
const SHRINKS: usize = 500;

/// Limit of the steps of all of them.
const STEPS: u64 = 20_000_000;

/// Limit of the descriptors that they leave behind: the system gives a process about a thousand.
const DESCRIPTORS: usize = 256;

/// Limit of the text of a schedule: the system takes no longer variable.
const TEXT: usize = 100_000;

/// Tells how far an exploration went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exploration {
    /// The number of runs.
    pub runs: u64,
}

/// Runs `program` under `runs` random schedules, with the seeds from 0.
///
/// Seeds run in parallel. The environment variable `FIBRA_SIM_RUNS` overrides `runs`, `FIBRA_SIM_SEED` has that seed run only,
/// and `FIBRA_SIM_REPLAY` repeats a run. [`Builder::check`] explores with other limits of time and steps.
///
/// # Panics
/// Panics if a run fails, with the failure of the lowest seed, shrunk. Panics in builds without `--cfg fibra_sim`.
#[track_caller]
pub fn check(runs: u64, program: impl Fn() + Send + Sync + 'static) -> Exploration {
    Sim::builder().check(runs, program)
}

/// Runs `program` under `runs` schedules of [`Schedule::Pct`] with that depth, as [`check`] does.
///
/// # Panics
/// As [`check`], and if `depth` is 0.
#[track_caller]
pub fn check_pct(runs: u64, depth: usize, program: impl Fn() + Send + Sync + 'static) -> Exploration {
    Sim::builder().schedule(Schedule::Pct { depth }).check(runs, program)
}

/// Runs `program` under all schedules with at most so many preemptions, each once.
///
/// Only the order of tasks differs. All random choices, that of a `select!` among several ready cases too, are those of seed 0,
/// or of `FIBRA_SIM_SEED`. A run has the limit of steps that [`Builder::max_steps`] tells, and none of time.
///
/// # Panics
/// As [`check`].
#[track_caller]
pub fn check_exhaustive(preemptions: usize, program: impl Fn() + Send + Sync + 'static) -> Exploration {
    Sim::builder().schedule(Schedule::Exhaustive { preemptions }).check(0, program)
}

impl Builder {
    /// Explores as [`check`] does, by the schedule and with the limits of this simulation.
    ///
    /// [`Schedule::Exhaustive`] has as many runs as there are orders, whatever `runs` is.
    ///
    /// # Panics
    /// As [`check`].
    #[track_caller]
    pub fn check(self, runs: u64, program: impl Fn() + Send + Sync + 'static) -> Exploration {
        refuse_without_points();
        told(explore(&self, runs, &(Arc::new(program) as Program)))
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
    told(Sim::builder().run_once(&(Arc::new(program) as Program), schedule, None, seed).into_result());
}

/// Runs `program` under all schedules of an exhaustive exploration, or else with that many seeds.
///
/// `Fifo` and `Random` need no points of preemption.
#[track_caller]
pub(crate) fn explore(sim: &Builder, runs: u64, program: &Program) -> Result<Exploration, Failure> {
    if matches!(sim.schedule, Schedule::Pct { .. } | Schedule::Exhaustive { .. }) {
        refuse_without_points();
    }
    if std::env::var_os(REPLAY).is_some() {
        return sim.run_here(program).map(|_| Exploration { runs: 1 });
    }
    let explored = match sim.schedule {
        Schedule::Exhaustive { preemptions } => explore_all(sim, preemptions, program),
        _ => explore_seeds(sim, runs, program),
    };
    explored.map_err(|failure| shrink(sim, program, failure))
}

fn explore_all(sim: &Builder, preemptions: usize, program: &Program) -> Result<Exploration, Failure> {
    let mut sim = sim.clone();
    sim.records = true;
    let (mut path, mut runs, seed) = (Path::new(preemptions), 0, variable(SEED).unwrap_or(0));
    loop {
        let mut outcome = sim.run_once(program, "", Some(path), seed);
        runs += 1;
        let next = outcome.path.take().and_then(Path::next);
        outcome.into_result()?;
        match next {
            Some(next) => path = next,
            None => return Ok(Exploration { runs }),
        }
    }
}

fn explore_seeds(sim: &Builder, runs: u64, program: &Program) -> Result<Exploration, Failure> {
    let runs = variable("FIBRA_SIM_RUNS").unwrap_or(runs);
    let seeds = variable(SEED).map_or(0..runs, |seed: u64| seed..seed.saturating_add(1));
    // One run tells how long a run is.
    let first = sim.run_once(program, &Schedule::Fifo.text(0), None, seeds.start);
    let schedule = sim.schedule.text(first.decisions);
    first.into_result()?;
    let (next, failed) = (AtomicU64::new(seeds.start), Mutex::new(None::<Failure>));
    let failed_seed = AtomicU64::new(u64::MAX);
    let work = || {
        loop {
            // Relaxed, all: the numbers only have to differ, and a late look costs a run.
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || seed > failed_seed.load(Ordering::Relaxed) {
                return;
            }
            if let Err(failure) = sim.run_once(program, &schedule, None, seed).into_result()
                && failed_seed.fetch_min(seed, Ordering::Relaxed) > seed
            {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|failed| failed.seed > seed) {
                    *failed = Some(failure);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(Exploration { runs: seeds.end - seeds.start }), Err)
}

#[track_caller]
fn told<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|failure| panic!("{failure}"))
}

/// Removes choices from the schedule of a failure as long as it fails in the same way.
fn shrink(sim: &Builder, program: &Program, failure: Failure) -> Failure {
    let mut sim = sim.clone();
    sim.records = true;
    let (mut runs, mut left, mut steps) = (0, 0, 0);
    let mut fail = |schedule: &str| {
        let outcome = sim.run_once(program, schedule, None, failure.seed);
        (runs, left, steps) = (runs + 1, left + outcome.left, steps + outcome.report.steps());
        let goes_on = runs < SHRINKS && left < DESCRIPTORS && steps < STEPS;
        let found = outcome.failure.filter(|found| found.is_panic == failure.is_panic);
        // What it did, which may be less than it was told.
        let did = |found: &Failure| found.schedule.parse::<Script>().expect("the choices are recorded").0;
        (found.map(|found| (did(&found), found)), goes_on)
    };
    // Most runs do not record their choices.
    let (Some((mut choices, mut least)), mut goes_on) = fail(&failure.schedule) else { return failure };
    // Halves first, then quarters, down to single choices.
    let mut size = choices.len();
    while size > 0 {
        let mut begin = 0;
        while begin < choices.len() && goes_on {
            let kept = choices.iter().enumerate().filter(|(index, _)| !(begin..begin + size).contains(index));
            let kept = Script(kept.map(|(_, (decision, choice))| (*decision, *choice)).collect());
            let found;
            (found, goes_on) = fail(&kept.to_string());
            match found {
                Some((fewer, smaller)) if fewer.len() < choices.len() => (choices, least) = (fewer, smaller),
                _ => begin += size,
            }
        }
        size /= 2;
    }
    if least.schedule.len() > TEXT { failure } else { least }
}

#[track_caller]
fn refuse_without_points() {
    if !cfg!(fibra_sim) {
        panic!(
            "an exploration preempts tasks at points, which need a build with RUSTFLAGS=\"--cfg fibra_sim\""
        );
    }
}

#[cfg(test)]
mod tests;
