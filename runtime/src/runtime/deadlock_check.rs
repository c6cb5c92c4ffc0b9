//! The check for deadlocks: it reports the cycles that it has seen twice.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::abort::say;
use crate::base::clock;
use crate::base::payload::tell;
use crate::runtime::deadlock::{Deadlock, Sleeps};
use crate::runtime::wait_graph::WaitGraph;
use crate::scheduler::shared::Shared;

type Hook = dyn Fn(&Deadlock) + Send + Sync;

/// Where checks are on, and the program sets no period.
const PERIOD: Duration = Duration::from_secs(1);

/// Of the time of a processor checks take at most one part in so many.
const SHARE: u32 = 20;

/// How to check for deadlocks.
#[derive(Default)]
pub(super) struct Config {
    pub(super) period: Option<Duration>,
    pub(super) hook: Option<Arc<Hook>>,
}

impl Config {
    /// Returns the time between two checks; `None` without checks.
    pub(super) fn period(&self) -> Option<Duration> {
        let is_on = self.is_required() || cfg!(debug_assertions);
        let unset = if is_on { PERIOD } else { Duration::MAX };
        Some(self.period.unwrap_or(unset)).filter(|period| *period < Duration::MAX)
    }

    /// Returns true if the program asks for checks.
    pub(super) fn is_required(&self) -> bool {
        self.period.is_some() || self.hook.is_some()
    }
}

/// The check of one runtime for deadlocks: it reports cycles that it has seen twice.
pub(super) struct Check {
    period: Duration,
    hook: Option<Arc<Hook>>,
    next: Instant,
    /// The cycles of the last check, and whether each was reported.
    seen: HashMap<Sleeps, bool>,
}

impl Check {
    pub(super) fn new(period: Duration, config: &Config) -> Self {
        Check { period, hook: config.hook.clone(), next: clock::machine() + period, seen: HashMap::new() }
    }

    /// Checks, if that is due.
    pub(super) fn look(&mut self, shared: &Shared) {
        let begin = clock::machine();
        if begin < self.next {
            return;
        }
        let before = mem::take(&mut self.seen);
        for deadlock in WaitGraph::of(shared, false).cycles() {
            let sleeps = deadlock.sleeps();
            let is_told = match before.get(&sleeps) {
                Some(false) => deadlock.with_stacks().inspect(|deadlock| self.tell(deadlock)).is_some(),
                is_told => is_told.is_some(),
            };
            self.seen.insert(sleeps, is_told);
        }
        let end = clock::machine();
        self.next = end + self.period.max((end - begin) * SHARE);
    }

    fn tell(&self, deadlock: &Deadlock) {
        match &self.hook {
            Some(hook) => tell("the hook for deadlocks", deadlock, |deadlock| hook(deadlock)),
            None => say(format_args!("{deadlock}")),
        }
    }
}
