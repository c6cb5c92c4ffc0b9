//! Runtimes: what the workers of one share, how it is built, entered, run and ended.
//!
//! | file | holds |
//! | --- | --- |
//! | `builder.rs` | `Builder` |
//! | `census.rs` | how many tasks are alive |
//! | `ending.rs` | whether a runtime is at its end, and who waits for that |
//! | `handle.rs` | `Handle`: a runtime from elsewhere |
//! | `run.rs` | `Runtime::run` and the run on the calling thread |
//! | `shutdown.rs` | the end |

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::api::join_handle::JoinHandle;
use crate::blocking::pool::Pool;
use crate::runtime::builder::{Builder, Config};
use crate::runtime::ending::Ending;
use crate::runtime::handle::Handle;
use crate::runtime::run;
use crate::runtime::watchdog::Watch;
use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::idle::Idle;
use crate::scheduler::queue;
use crate::scheduler::task_counts::Counts;
use crate::stack::stacks::Stacks;
use crate::tasks::header::TaskRef;
use crate::tasks::live_tasks::LiveTasks;
use crate::tasks::task::Task;

/// What all workers of one runtime share.
///
/// What changes while they run has cache lines of its own, apart from what all of them only read.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) blocks: Box<[Arc<Block>]>,
    /// Tasks that were spawned from outside the workers.
    pub(crate) injector: queue::Shared,
    pub(crate) idle: Idle,
    pub(crate) stacks: Arc<Stacks>,
    /// Stacks beyond all limits, for the destructors of tasks that found none.
    pub(crate) reserve: Arc<Stacks>,
    pub(crate) blocking: Arc<Pool>,
    /// Tasks that were spawned and ended off the workers.
    pub(super) outside: CachePadded<Counts>,
    pub(crate) live: Arc<LiveTasks>,
    pub(crate) watch: Watch,
    pub(super) ending: Ending,
}

/// Reserves `count` ids of tasks and returns the first.
pub(crate) fn reserve_ids(count: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: the numbers only have to differ.
    NEXT.fetch_add(count, Ordering::Relaxed)
}

impl Shared {
    /// Queues a task that was spawned off the workers, or hands it back where the runtime is ending.
    ///
    /// # Errors
    /// The task, un-run and uncounted.
    pub(crate) fn inject(&self, task: TaskRef) -> Result<(), TaskRef> {
        self.admit_from_outside(task).map_err(|Ended| task)?;
        self.injector.push(task);
        if let Some(index) = self.idle.after_global() {
            self.blocks[index].unpark();
        }
        Ok(())
    }

    /// The same for a task that is to run on one worker.
    ///
    /// # Errors
    /// The task, un-run and uncounted.
    pub(crate) fn inject_at(&self, index: usize, task: TaskRef) -> Result<(), TaskRef> {
        self.admit_from_outside(task).map_err(|Ended| task)?;
        let block = &self.blocks[index];
        task.header().set_home(block.as_home());
        block.inbox.push(task);
        block.unpark_if_parked();
        Ok(())
    }

    /// Counts a new task that does not come from a worker's own queues. One that is sheltered is to run in any case: who spawns
    /// it is a task of this runtime or a closure on its pool, waits for it, and is waited for by the end.
    ///
    /// # Errors
    /// As for [`admit_outside`](Shared::admit_outside).
    pub(crate) fn admit_from_outside(&self, task: TaskRef) -> Result<(), Ended> {
        match task.header().is_sheltered() {
            true => {
                self.outside.spawn_outside();
                Ok(())
            }
            false => self.admit_outside(),
        }
    }

    /// Counts one more task or closure from outside the workers.
    ///
    /// # Errors
    /// When the runtime is ending, and perhaps nobody is left to run it.
    pub(crate) fn admit_outside(&self) -> Result<(), Ended> {
        if self.ending.admit(&self.outside) {
            return Ok(());
        }
        self.outside_ended();
        Err(Ended)
    }

    /// Counts the end of one from outside, or of one that ends off the workers.
    pub(crate) fn outside_ended(&self) {
        self.outside.finish_outside();
        if self.is_ending() {
            self.end_if_quiescent();
        }
    }

    /// All tasks that have started and not ended.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.blocks.iter().flat_map(|block| block.registry.tasks()).collect();
        tasks.extend(self.blocking.running());
        tasks
    }

    pub(super) fn unpark_all(&self) {
        self.blocks.iter().for_each(|block| block.unpark());
    }
}

/// The runtime is ending.
pub(crate) struct Ended;

/// A runtime: workers, their tasks, and a pool of threads for what blocks.
///
/// Runtimes are values, and several live in one process. What belongs to the process by its nature is shared: the panic
/// hook that names the task, and the signal handler that reports stack overflows; both are installed by the first runtime
/// and stay.
///
/// Dropping a runtime ends it as [`shutdown`](Runtime::shutdown) does, and after five seconds says on standard error who
/// is still there. A runtime that is dropped on a thread of its own, by a task or in a closure of its blocking pool, starts to
/// end and the drop returns at once.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// let runtime = fibra::Runtime::builder().workers(2).build()?;
/// let words = ["blocking", "code"];
/// assert_eq!(runtime.run(|| words.len()), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Runtime {
    pub(super) shared: Arc<Shared>,
    pub(super) threads: Vec<thread::JoinHandle<()>>,
}

impl Runtime {
    /// Starts to describe a runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A handle that can be sent elsewhere.
    pub fn handle(&self) -> Handle {
        Handle::new(&self.shared)
    }

    /// Spawns a task from outside; [`spawn`](crate::spawn) is for the inside.
    ///
    /// On a runtime that is ending the handle answers `is_cancelled`, and the closure is dropped here.
    pub fn spawn<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle().spawn(f)
    }

    /// Runs `f` on the blocking pool of this runtime; see [`spawn_blocking`](crate::spawn_blocking).
    pub fn spawn_blocking<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle().spawn_blocking(f)
    }

    /// Runs `f` as a task of this runtime and waits for its value on the calling thread.
    ///
    /// # Panics
    /// With the panic of `f`; when called from a task, which must not block its worker; and when the runtime is shut
    /// down meanwhile, so that there is no value.
    #[track_caller]
    pub fn run<F, T>(&self, f: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        run::run_on(&self.shared, f)
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.shared.blocks.len()
    }

    /// How often a task has held its worker for longer than the [`stall_limit`](Builder::stall_limit); 0 without one.
    pub fn stalls(&self) -> u64 {
        self.shared.watch.stalls()
    }

    /// Cancels all tasks, unwinds each on its own worker, and waits until all of them and all closures on the blocking
    /// pool have ended; not for calls of the library's own that may never end, such as a lookup of a name or the opening of a
    /// file: their threads are left behind.
    pub fn shutdown(self) {
        drop(self);
    }

    /// As [`shutdown`](Runtime::shutdown), but waits no longer than `timeout`. Returns the tasks that have started and not
    /// ended; their workers stay until they do. Tasks that wait behind them to start are cancelled, and are not named.
    ///
    /// Does not wait at all where a task of its own calls it, which would be waited for itself, or a closure on its blocking pool:
    /// the end begins, and those are returned that it will wait for.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Vec<Task> {
        self.shared.begin_ending();
        if !self.is_entered() && self.shared.wait_for_end(Some(timeout)) {
            self.join_threads();
            return Vec::new();
        }
        self.threads.clear();
        self.shared.tasks().into_iter().filter(|task| !task.is_finished()).collect()
    }

    fn join_threads(&mut self) {
        let own = thread::current().id();
        // The watching thread is among them, and may be the one that ends the runtime, in a hook.
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            // A worker ends its process rather than panic.
            _ = thread.join();
        }
        self.shared.blocking.wait_until_let_go();
    }

    fn is_entered(&self) -> bool {
        current::is_inside(&self.shared)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.begin_ending();
        if self.is_entered() || self.threads.is_empty() {
            return;
        }
        self.shared.wait_for_end_reporting();
        self.join_threads();
    }
}

// As a handle is.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("workers", &self.workers()).finish_non_exhaustive()
    }
}
