//! The state that the workers of one runtime share.

#![forbid(unsafe_code)]

use std::any::Any;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::base::sys::Processors;
use crate::scheduler::block::Block;
use crate::scheduler::driver::Factory;
use crate::scheduler::ending::Ending;
use crate::scheduler::idle::Idle;
use crate::scheduler::oracle::Oracle;
use crate::scheduler::queue;
use crate::scheduler::stack_queue::StackQueue;
use crate::scheduler::task_counts::{Counts, alive};
use crate::scheduler::task_panic::TaskPanicHook;
use crate::scheduler::virtual_time::VirtualTime;
use crate::stack::stacks::Stacks;
use crate::tasks::header::TaskRef;
use crate::tasks::hook_maker::HookMaker;
use crate::tasks::live_tasks::LiveTasks;
use crate::tasks::panic_log::PanicLog;
use crate::tasks::task::Task;

/// Holds what workers need of the description of their runtime.
pub(crate) struct Config {
    pub(crate) driver: Arc<dyn Factory>,
    /// The seed of the workers' random numbers.
    pub(crate) seed: u64,
    /// Whether workers may poll before they park.
    pub(crate) polling: bool,
    pub(crate) max_tasks: Option<usize>,
    /// How long a task without a stack waits for one to come back, before it ends without running.
    pub(crate) stack_patience: Duration,
    pub(crate) pin: bool,
    /// The affinity of the thread that makes the runtime, or of that thread's own runtime, since
    /// its worker may be pinned.
    pub(crate) processors: Processors,
    /// Makes a hook around the switches of each task.
    pub(crate) on_switch: Option<HookMaker>,
    pub(crate) on_task_panic: Option<Arc<TaskPanicHook>>,
    /// Collects the panics that no caller observes, for tests.
    pub(crate) panic_log: Option<PanicLog>,
    /// The stack of the main task of a `run`, in bytes.
    pub(crate) main_stack_size: usize,
    /// How long the end may take, if the program sets it.
    pub(crate) end_within: Option<Duration>,
    /// A thread watches how long tasks run.
    pub(crate) watched: bool,
    /// Of so many runs and wakes one is measured.
    pub(crate) histograms: Option<NonZeroU32>,
    /// The clock of the worker is paused from the start.
    pub(crate) starts_paused: bool,
    /// Decides on the next task, in a simulation.
    pub(crate) oracle: Option<Arc<dyn Oracle>>,
}

/// What this floor asks of the blocking pool.
pub(crate) trait PoolThreads: Any + Send + Sync {
    /// Returns the tasks and the calls that run on the pool now, with the system's numbers of their threads.
    fn on_threads(&self) -> Vec<OnThread>;
}

/// A task that runs on a pool, and the system's number of its thread.
pub(crate) type OnThread = (Task, Option<i32>);

/// Takes a task, the index of its worker, and for how long the task has held that.
pub(crate) type StallHook = dyn Fn(&Task, usize, Duration) + Send + Sync;

/// Holds what all workers of one runtime share.
///
/// Fields that change while they run have cache lines of their own, apart from the read-only ones.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) blocks: Box<[Arc<Block>]>,
    /// Tasks that were spawned from outside the workers.
    pub(crate) injector: queue::Shared,
    pub(crate) idle: Idle,
    pub(crate) stacks: Arc<Stacks>,
    pub(crate) stack_queue: CachePadded<StackQueue>,
    /// Stacks beyond all limits, for the destructors of tasks that found none.
    pub(crate) reserve: Arc<Stacks>,
    /// The blocking pool, which stands on a higher floor.
    pub(crate) pool: Arc<dyn PoolThreads>,
    /// Tasks that were spawned and ended off the workers.
    pub(crate) outside: CachePadded<Counts>,
    pub(crate) live: Arc<LiveTasks>,
    /// When the runtime was made.
    pub(crate) started: Instant,
    /// How often a task held its worker for too long.
    pub(crate) stalls: AtomicU64,
    /// Is told of stalls. Set while there is a recorder.
    pub(crate) recorder: Mutex<Option<Arc<StallHook>>>,
    pub(crate) ending: Ending,
    pub(crate) virtual_time: VirtualTime,
}

/// Reserves `count` task ids and returns the first.
pub(crate) fn reserve_ids(count: u64) -> NonZeroU64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: the numbers only have to differ.
    NonZeroU64::new(NEXT.fetch_add(count, Ordering::Relaxed)).expect("ids begin with 1")
}

impl Shared {
    /// Queues a task that was spawned off the workers, or hands it back if the runtime is ending.
    ///
    /// # Errors
    /// Returns the task, not run and not counted.
    pub(crate) fn inject(&self, task: TaskRef) -> Result<(), TaskRef> {
        self.admit_from_outside(task).map_err(|Ended| task)?;
        if let Some(histograms) = &self.blocks[0].histograms {
            histograms.note_spawned_outside(task);
        }
        self.injector.push(task);
        if let Some(index) = self.idle.after_global() {
            self.blocks[index].unpark();
        }
        Ok(())
    }

    /// Queues a task that is to run on one worker, or hands it back if the runtime is ending.
    ///
    /// # Errors
    /// Returns the task, not run and not counted.
    pub(crate) fn inject_at(&self, index: usize, task: TaskRef) -> Result<(), TaskRef> {
        self.admit_from_outside(task).map_err(|Ended| task)?;
        let block = &self.blocks[index];
        task.header().set_home(block.as_home());
        block.push_to_inbox(task);
        block.unpark_if_parked();
        Ok(())
    }

    /// Counts a new task that does not come from a worker's own queues.
    ///
    /// A sheltered task is to run in any case. Its spawner is a task of this runtime or a closure
    /// on its pool, which waits for it, and the end waits for the spawner.
    ///
    /// # Errors
    /// When the runtime is ending: perhaps no worker is left to run it.
    pub(crate) fn admit_from_outside(&self, task: TaskRef) -> Result<(), Ended> {
        if self.ending.admit(&self.outside) || task.header().is_sheltered() {
            return Ok(());
        }
        self.outside_ended();
        Err(Ended)
    }

    /// Counts the end of a task from outside, or of a task that ends off the workers.
    pub(crate) fn outside_ended(&self) {
        self.outside.finish_outside();
        if self.is_ending() {
            self.end_if_quiescent();
        }
    }

    /// Returns all tasks that have started and not ended.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        self.blocks.iter().flat_map(|block| block.registry.tasks()).collect()
    }

    pub(crate) fn unpark_all(&self) {
        self.blocks.iter().for_each(|block| block.unpark());
    }

    /// Returns true in a simulation, which has no threads beside its worker.
    pub(crate) fn is_simulated(&self) -> bool {
        self.config.oracle.is_some()
    }

    /// Returns true once the end has begun.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.has_begun()
    }

    /// Ends the runtime if no task is alive. Returns true when it has ended.
    pub(crate) fn end_if_quiescent(&self) -> bool {
        if self.ending.has_ended() {
            return true;
        }
        if self.alive() > 0 {
            return false;
        }
        if self.ending.end() {
            self.unpark_all();
            // Taken one by one: a wake is never made under the lock.
            while let Some(wake) = self.ending.next_waiter() {
                wake.wake();
            }
        }
        true
    }

    /// Returns how many tasks are alive: maybe too many while some end, never too few.
    pub(crate) fn alive(&self) -> u64 {
        alive(self.blocks.iter().map(|block| &block.counters.tasks).chain([&*self.outside]))
    }

    /// Returns how often a task has held its worker for longer than the limit.
    pub(crate) fn stalls(&self) -> u64 {
        // Relaxed: a count that publishes nothing.
        self.stalls.load(Ordering::Relaxed)
    }
}

/// The runtime is ending.
pub(crate) struct Ended;
