//! The watch over tasks that hold their workers, and over those that wait for each other.
//!
//! A thread of its own looks at each worker, four times per limit. Where a run lasts longer than
//! the limit, the thread finds the task by [`Run`](crate::scheduler::run_watch::Run), and reports
//! it. The same thread checks for [deadlocks](crate::runtime::deadlock_check).

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::abort::say;
use crate::base::clock;
use crate::base::limit::Refusal;
use crate::base::payload::tell;
use crate::runtime::deadlock_check;
use crate::runtime::shutdown;
use crate::scheduler::block::Block;
use crate::scheduler::driver_here;
use crate::scheduler::shared::Shared;
use crate::tasks::task::Task;

/// The watch looks so often per limit, and not more often than that.
const LOOKS: u32 = 4;
const LOOK_LEAST: Duration = Duration::from_millis(1);

type Hook = dyn Fn(&Stall) + Send + Sync;

/// What the watch of a runtime is to do.
pub(crate) struct Config {
    /// None without a watch.
    pub(crate) limit: Option<Duration>,
    /// The program has set the limit: without a thread for the watch the start fails.
    pub(crate) is_required: bool,
    pub(crate) hook: Option<Arc<Hook>>,
    pub(super) deadlocks: deadlock_check::Config,
}

/// The limit in debug builds where the program sets none.
const DEBUG_LIMIT: Duration = Duration::from_secs(1);

impl Default for Config {
    fn default() -> Self {
        let limit = cfg!(debug_assertions).then_some(DEBUG_LIMIT);
        Config { limit, is_required: false, hook: None, deadlocks: deadlock_check::Config::default() }
    }
}

/// Tells which task held its worker for too long.
///
/// See [`Builder::stall_limit`](crate::runtime::builder::Builder::stall_limit).
#[derive(Debug)]
pub struct Stall {
    task: Task,
    worker: usize,
    held: Duration,
}

impl Stall {
    /// Returns the task, which held its worker still when the watch looked.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns the index of the worker.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Returns the time for which the task has held its worker so far, at the least.
    pub fn held(&self) -> Duration {
        self.held
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has held worker {} for {:.0?}", self.task, self.worker, self.held)
    }
}

/// Starts the watch of `shared`, if there is to be one.
///
/// # Errors
/// Fails when its thread cannot be had, and the program asks for the watch.
pub(crate) fn start(
    shared: &Arc<Shared>,
    name: &str,
    config: &Config,
) -> io::Result<Option<thread::JoinHandle<()>>> {
    let (limit, hook) = (config.limit, config.hook.clone());
    let period = if shared.is_simulated() { None } else { config.deadlocks.period() };
    let deadlocks = period.map(|period| deadlock_check::Check::new(period, &config.deadlocks));
    let pause = limit.map(|limit| limit / LOOKS).into_iter().chain(period).min();
    let Some(pause) = pause else { return Ok(None) };
    let is_required = config.is_required || config.deadlocks.is_required();
    let shared = Arc::clone(shared);
    let builder = thread::Builder::new().name(format!("{name}-watch"));
    let life = move || watch(&shared, pause.max(LOOK_LEAST), limit, hook.as_deref(), deadlocks);
    match driver_here::unpinned(|| builder.spawn(life)) {
        Ok(thread) => Ok(Some(thread)),
        Err(_) if !is_required => Ok(None),
        Err(error) => Err(Refusal::of_thread("the watch of the workers", error).into()),
    }
}

fn watch(
    shared: &Shared,
    pause: Duration,
    limit: Option<Duration>,
    hook: Option<&Hook>,
    mut deadlocks: Option<deadlock_check::Check>,
) {
    let now = clock::machine();
    let mut seen: Vec<Seen> = shared.blocks.iter().map(|block| Seen::new(block, now)).collect();
    while !shutdown::wait(shared, Some(pause)) {
        for (seen, block) in seen.iter_mut().zip(&shared.blocks) {
            if let Some(limit) = limit
                && let Some(stall) = seen.look(block, shared, limit)
            {
                report(shared, &stall, limit, hook);
            }
        }
        if let Some(deadlocks) = &mut deadlocks {
            deadlocks.look(shared);
        }
    }
}

fn report(shared: &Shared, stall: &Stall, limit: Duration, hook: Option<&Hook>) {
    // Relaxed: a count that publishes nothing.
    shared.stalls.fetch_add(1, Ordering::Relaxed);
    let recorder = shared.recorder.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(recorder) = recorder {
        tell("the hook of the recorder", stall, |stall| recorder(&stall.task, stall.worker, stall.held));
    }
    match hook {
        Some(hook) => tell("the hook for stalls", stall, hook),
        None => {
            let stack = stall.task.backtrace().map(|stack| stack.below(6)).unwrap_or_default();
            say(format_args!("{stall}, longer than the limit of {limit:?}{stack}"));
        }
    }
}

/// What the watch has seen of one worker.
struct Seen {
    number: u64,
    since: Instant,
    told: bool,
}

impl Seen {
    fn new(block: &Block, now: Instant) -> Self {
        Seen { number: block.run.look().number, since: now, told: false }
    }

    fn look(&mut self, block: &Block, shared: &Shared, limit: Duration) -> Option<Stall> {
        let now = clock::machine();
        let sight = block.run.look();
        if !sight.is_of_a_run() || sight.number != self.number {
            *self = Seen { number: sight.number, since: now, told: false };
            return None;
        }
        let held = now - self.since;
        if self.told || held <= limit {
            return None;
        }
        // The home worker of a migratable task is where it started.
        let find = |address| shared.blocks.iter().find_map(|block| block.registry.find(address));
        let task = block.run.task_of(sight, find)?;
        self.told = true;
        Some(Stall { task, worker: block.index, held })
    }
}
