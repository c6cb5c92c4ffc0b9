//! What `#[fibra::test(seeds = …, schedule = …)]` expands to calls of.

#![forbid(unsafe_code)]

use std::process::{ExitCode, Termination};

use crate::explore::{check_exhaustive, check_pct, check_seeds};
use crate::strategy::Schedule;

/// How many seeds a test has, unless it sets them.
const SEEDS: u64 = 100;

/// Describes a test whose body runs in simulations.
#[derive(Debug)]
pub struct Test {
    seeds: u64,
    schedule: Schedule,
    /// The preemptions of an exhaustive exploration.
    preemptions: Option<usize>,
}

impl Default for Test {
    fn default() -> Self {
        Test { seeds: SEEDS, schedule: Schedule::Random, preemptions: None }
    }
}

impl Test {
    /// Describes a test with random schedules.
    pub fn new() -> Self {
        Test::default()
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
        match (name, number.strip_suffix(')').map(str::parse)) {
            ("fifo", Some(Err(_))) => self.schedule = Schedule::Fifo,
            ("random", Some(Err(_))) => self.schedule = Schedule::Random,
            ("pct", Some(Ok(depth))) => self.schedule = Schedule::Pct { depth },
            ("exhaustive", Some(Ok(preemptions))) => self.preemptions = Some(preemptions),
            _ => panic!(
                "\"{text}\" is no schedule: there are \"fifo\", \"random\", \"pct(3)\" and \"exhaustive(2)\", with any numbers"
            ),
        }
        self
    }

    /// Runs the test.
    ///
    /// # Panics
    /// Panics if a run fails.
    #[track_caller]
    pub fn run<T: Termination + 'static>(self, body: fn() -> T) -> ExitCode {
        let program =
            move || assert!(body().report() == ExitCode::SUCCESS, "the test has returned a failure");
        match (self.preemptions, self.schedule) {
            (Some(preemptions), _) => check_exhaustive(preemptions, program),
            (None, Schedule::Pct { depth }) => check_pct(self.seeds, depth, program),
            (None, schedule) => check_seeds(schedule, self.seeds, program),
        };
        ExitCode::SUCCESS
    }
}
