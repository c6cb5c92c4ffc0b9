//! What `#[fibra::test(seeds = …, schedule = …)]` expands to calls of.

#![forbid(unsafe_code)]

use std::process::{ExitCode, Termination};
use std::sync::Arc;
use std::time::Duration;

use fibra::attributes::{TIMEOUT, describe_leaked, leaked};
use fibra::{Handle, Task};

use crate::context;
use crate::explore::explore;
use crate::host_id::HostId;
use crate::sim::{Builder, Program, Sim};
use crate::strategy::Schedule;

/// How many seeds a test has, unless it sets them.
const SEEDS: u64 = 100;

/// Describes a test whose body runs in simulations.
#[derive(Debug)]
pub struct Test {
    name: &'static str,
    sim: Builder,
    seeds: u64,
    should_panic: bool,
}

impl Test {
    /// Describes a test with random schedules.
    pub fn new(name: &'static str) -> Self {
        Test { name, sim: Sim::builder(), seeds: SEEDS, should_panic: false }.timeout(TIMEOUT)
    }

    /// Sets the number of runs.
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the schedule: `fifo`, `random`, `pct(depth)` or `exhaustive(preemptions)`.
    ///
    /// # Panics
    /// Panics at any other text.
    #[track_caller]
    pub fn schedule(mut self, text: &str) -> Self {
        let (name, number) = text.split_once('(').unwrap_or((text, ")"));
        let schedule = match (name, number.strip_suffix(')').map(str::parse)) {
            ("fifo", Some(Err(_))) => Schedule::Fifo,
            ("random", Some(Err(_))) => Schedule::Random,
            ("pct", Some(Ok(depth))) => Schedule::Pct { depth },
            ("exhaustive", Some(Ok(preemptions))) => Schedule::Exhaustive { preemptions },
            _ => panic!(
                "\"{text}\" is no schedule: there are \"fifo\", \"random\", \"pct(3)\" and \"exhaustive(2)\", with any numbers"
            ),
        };
        self.sim = self.sim.schedule(schedule);
        self
    }

    /// Sets how long a run may take, in real time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.sim.test = Some((self.name, timeout));
        self
    }

    /// Says that the harness expects a panic. So a test that fails for another reason returns.
    pub fn should_panic(mut self) -> Self {
        self.should_panic = true;
        self
    }

    /// Runs the test.
    ///
    /// # Panics
    /// Panics if a run fails.
    #[track_caller]
    pub fn run<T: Termination + 'static>(self, body: fn() -> T) -> ExitCode {
        let program: Program = Arc::new(move || {
            let has_failed = body().report() != ExitCode::SUCCESS;
            let Some(run) = context::run() else { return };
            let is_on_main = |task: &Task| run.network().tasks().host_of(task.id()) == HostId::default();
            if has_failed {
                run.end_for("the test has returned a failure".to_owned());
            } else if let Some(leaked) = leaked(is_on_main) {
                run.end_for(describe_leaked(&Handle::current(), leaked));
            }
        });
        match explore(&self.sim, self.seeds, &program) {
            Err(failure) if self.should_panic && !failure.is_panic => eprintln!("{failure}"),
            explored => _ = explored.unwrap_or_else(|failure| panic!("{failure}")),
        }
        ExitCode::SUCCESS
    }
}
