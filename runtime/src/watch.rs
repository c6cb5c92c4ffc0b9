//! The watch over tasks that hold their workers.
//!
//! ```text
//!  worker                                watching thread, four times per limit
//!  number := number + 1    (per run)     the number that it was last time, and a task there?
//!  task := address                        ── for longer than the limit: finds the task by its address in the registries,
//!  …                                          looks at the number again, and tells
//!  task := null            (at rest)
//! ```
//!
//! The watch trusts no address: it is looked up among the tasks that are alive, under the lock of their registry. If the
//! number is still the same after that, the worker has been in that one run all the time, so it is that run's task.

use std::fmt;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::report::say;
use crate::runtime::{Shared, guarded};
use crate::task::{Header, Task, TaskRef};
use crate::worker::block::Block;

/// The watch looks so often per limit, and not more often than that.
const LOOKS: u32 = 4;
const LOOK_LEAST: Duration = Duration::from_millis(1);

type Hook = dyn Fn(&Stall) + Send + Sync;

/// What the watch of a runtime is to do.
#[derive(Default)]
pub(crate) struct Config {
    pub(crate) limit: Option<Duration>,
    pub(crate) hook: Option<Arc<Hook>>,
}

/// A task that has held its worker for too long; see [`Builder::stall_limit`](crate::Builder::stall_limit).
pub struct Stall {
    task: Task,
    worker: usize,
    held: Duration,
}

impl Stall {
    /// The task, which held its worker still when the watch looked.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The worker, by its index.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// For how long the task has held it so far, at the least.
    pub fn held(&self) -> Duration {
        self.held
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has held worker {} for {:?}", self.task, self.worker, self.held)
    }
}

impl fmt::Debug for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Stall");
        out.field("task", &self.task).field("worker", &self.worker).field("held", &self.held).finish()
    }
}

/// What one worker says of its present run; written by it alone.
#[derive(Default)]
pub(crate) struct Run {
    number: AtomicU64,
    task: AtomicPtr<Header>,
}

impl Run {
    #[cold]
    pub(crate) fn begin(&self, task: TaskRef) {
        // Relaxed: published by the address.
        self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release: pairs with the Acquire in `look`, which then sees this number or a later one.
        self.task.store(task.as_ptr(), Ordering::Release);
    }

    /// The worker rests.
    pub(crate) fn end(&self) {
        // Relaxed: seen sooner or later, and by then no run began: the number would tell.
        self.task.store(ptr::null_mut(), Ordering::Relaxed);
    }

    fn look(&self) -> (*const Header, u64) {
        // Acquire: pairs with the Release in `begin`.
        let task = self.task.load(Ordering::Acquire);
        // Relaxed: ordered by the Acquire.
        (task, self.number.load(Ordering::Relaxed))
    }
}

/// What the runtime and its watching thread share.
#[derive(Default)]
pub(crate) struct Watch {
    stalls: AtomicU64,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Watch {
    pub(crate) fn stalls(&self) -> u64 {
        // Relaxed: a count and nothing behind it.
        self.stalls.load(Ordering::Relaxed)
    }

    /// The runtime has ended, and so does the watch.
    pub(crate) fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.notify_all();
    }

    /// Waits for the next look. False at the end.
    fn wait(&self, pause: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.end.wait_timeout_while(ended, pause, |ended| !*ended);
        let (ended, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*ended
    }
}

/// Starts the watch of `shared`, if there is to be one.
///
/// # Errors
/// When its thread cannot be had.
pub(crate) fn start(shared: &Arc<Shared>, name: &str) -> io::Result<Option<thread::JoinHandle<()>>> {
    let Some(limit) = shared.config.watch.limit else { return Ok(None) };
    let shared = Arc::clone(shared);
    let builder = thread::Builder::new().name(format!("{name}-watch"));
    builder.spawn(move || watch(&shared, limit)).map(Some)
}

fn watch(shared: &Shared, limit: Duration) {
    let pause = (limit / LOOKS).max(LOOK_LEAST);
    let now = Instant::now();
    let mut seen: Vec<Seen> = shared.blocks.iter().map(|block| Seen::new(block, now)).collect();
    while shared.watch.wait(pause) {
        for (seen, block) in seen.iter_mut().zip(&shared.blocks) {
            if let Some(stall) = seen.look(block, shared, limit) {
                tell(shared, &stall, limit);
            }
        }
    }
}

fn tell(shared: &Shared, stall: &Stall, limit: Duration) {
    // Relaxed: as in `stalls`.
    shared.watch.stalls.fetch_add(1, Ordering::Relaxed);
    match &shared.config.watch.hook {
        None => say(format_args!("{stall}, longer than the limit of {limit:?}")),
        Some(hook) => {
            if let Err(error) = guarded("the hook for stalls", || hook(stall)) {
                say(format_args!("{error} at this: {stall}"));
            }
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
        Seen { number: block.run.look().1, since: now, told: false }
    }

    fn look(&mut self, block: &Block, shared: &Shared, limit: Duration) -> Option<Stall> {
        let now = Instant::now();
        let (address, number) = block.run.look();
        if address.is_null() || number != self.number {
            *self = Seen { number, since: now, told: false };
            return None;
        }
        let held = now - self.since;
        if self.told || held <= limit {
            return None;
        }
        // A migratable task is at home where it started.
        let task = shared.blocks.iter().find_map(|block| block.registry.find(address))?;
        // Acquire, by the registry's lock: the number is looked at after the task was found.
        if block.run.look() != (address, number) {
            return None;
        }
        self.told = true;
        Some(Stall { task, worker: block.index, held })
    }
}
