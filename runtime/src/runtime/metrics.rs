//! What a runtime counts, as its users see it.

#![forbid(unsafe_code)]

use std::iter::Sum;
use std::time::Duration;

use crate::base::clock;
use crate::blocking::pool::Pool;
use crate::blocking::pool_metrics::PoolMetrics;
use crate::runtime::handle::Handle;
use crate::runtime::worker_metrics::WorkerMetrics;
use crate::scheduler::histogram::Histogram;
use crate::scheduler::shared::Shared;
use crate::scheduler::task_counts;
use crate::tasks::sleeper::TaskState;

impl Handle {
    /// Returns what the runtime has counted so far, and what there is at this moment.
    ///
    /// Callable from any thread, also while workers are stuck in tasks. It takes as long as there are started tasks,
    /// since it looks at the state of each, some 10 ns or a cache miss. The numbers are of slightly different moments
    /// while workers run. Those of a worker that are told to be *noted* are as they were at its last tick, which comes
    /// every 128 runs, or at the start of its last idle period.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(2).build()?;
    /// runtime.run(|| fibra::spawn(|| ()).join().unwrap());
    /// let metrics = runtime.metrics();
    /// assert_eq!(metrics.workers.len(), 2);
    /// assert_eq!(metrics.tasks.spawned, metrics.tasks.ended + metrics.tasks.alive);
    /// assert!(metrics.sum(|worker| worker.spawned) >= 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        let shared = self.shared();
        let workers: Vec<_> = shared.blocks.iter().map(|block| WorkerMetrics::of(shared, block)).collect();
        let [blocking, calls] = Pool::of(shared).metrics();
        RuntimeMetrics {
            uptime: clock::machine().saturating_duration_since(shared.started),
            tasks: TaskMetrics::of(shared),
            stacks: StackMetrics::of(shared),
            blocking,
            calls,
            global_queue_depth: shared.injector.len() as u64,
            outside_spawned: shared.outside.spawned(),
            stalls: shared.stalls(),
            workers,
        }
    }
}

/// The numbers of a runtime; see [`Handle::metrics`].
///
/// Each field tells what tokio's `RuntimeMetrics` or Go's `runtime/metrics` call it, if they have it.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct RuntimeMetrics {
    /// How long ago the runtime was made.
    pub uptime: Duration,
    /// Tasks, by state. tokio: `num_alive_tasks`. Go: `/sched/goroutines:goroutines`.
    pub tasks: TaskMetrics,
    /// Stacks. Go: `/memory/classes/heap/stacks:bytes`.
    pub stacks: StackMetrics,
    /// The blocking pool, where [`unblock`](crate::unblock) and [`spawn_blocking`](crate::spawn_blocking) run.
    pub blocking: PoolMetrics,
    /// The threads of calls, which may never end: [`spawn_call`](crate::task::spawn_call).
    pub calls: PoolMetrics,
    /// Unstarted tasks that were spawned from outside and that no worker has taken. tokio: `global_queue_depth`.
    pub global_queue_depth: u64,
    /// Tasks that were spawned from outside the workers or for the blocking pool. tokio:
    /// `remote_schedule_count` has them, and wakes.
    pub outside_spawned: u64,
    /// How often a task has held its worker for longer than the [`stall_limit`](crate::Builder::stall_limit).
    pub stalls: u64,
    /// The workers, by index. tokio: `num_workers`. Go: `/sched/gomaxprocs:threads`.
    pub workers: Vec<WorkerMetrics>,
}

/// Counts the tasks of a runtime.
///
/// The states are [`unstarted`](Self::unstarted), [`ready`](Self::ready), [`running`](Self::running),
/// [`suspended`](Self::suspended) and [`blocking`](Self::blocking). Their sum is [`alive`](Self::alive), unless tasks
/// change while they are counted. A call counts as ended when it begins.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct TaskMetrics {
    /// Tasks that were spawned, those for the blocking pool included. tokio: `spawned_tasks_count`. Go:
    /// `/sched/goroutines-created:goroutines`.
    pub spawned: u64,
    /// Tasks that have ended, for whatever reason.
    pub ended: u64,
    /// Tasks that were spawned and have not ended. tokio: `num_alive_tasks`. Go: `/sched/goroutines:goroutines`.
    pub alive: u64,
    /// Tasks that have ended by their cancellation, calls included.
    pub cancelled: u64,
    /// Tasks that have ended by a panic, calls included.
    pub panicked: u64,
    /// Tasks that have not started: they wait for a worker, for a stack, or for a thread of the pool.
    pub unstarted: u64,
    /// Started tasks that wait for their turn. Go: `/sched/goroutines/runnable:goroutines`, which has the
    /// unstarted ones too.
    pub ready: u64,
    /// Tasks that workers run. Go: `/sched/goroutines/running:goroutines`.
    pub running: u64,
    /// Tasks that sleep. Go: `/sched/goroutines/waiting:goroutines`.
    pub suspended: u64,
    /// Tasks that run on the blocking pool, or sleep for a closure there. Go: `/sched/goroutines/not-in-go:goroutines`.
    pub blocking: u64,
}

/// Counts the stacks of a runtime.
///
/// Those of the workers are noted, so up to 128 starts of a busy worker may be missing.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct StackMetrics {
    /// Stacks that tasks have.
    pub used: u64,
    /// Unused stacks that hold memory, or that a worker may take at once.
    pub warm: u64,
    /// Unused stacks whose memory the system has back.
    pub cold: u64,
    /// Stacks for which there is address space.
    pub mapped: u64,
}

impl RuntimeMetrics {
    /// Adds a number up over the workers.
    pub fn sum<T: Sum>(&self, number: impl Fn(&WorkerMetrics) -> T) -> T {
        self.workers.iter().map(number).sum()
    }

    /// Returns how long tasks run without a stop, on all workers.
    pub fn run_time(&self) -> Option<Histogram> {
        self.merged(|worker| worker.run_time.as_ref())
    }

    /// Returns how long tasks wait for a run, on all workers.
    pub fn schedule_delay(&self) -> Option<Histogram> {
        self.merged(|worker| worker.schedule_delay.as_ref())
    }

    fn merged(&self, of: impl Fn(&WorkerMetrics) -> Option<&Histogram>) -> Option<Histogram> {
        self.workers.iter().filter_map(of).cloned().reduce(Histogram::merged)
    }
}

impl TaskMetrics {
    fn of(shared: &Shared) -> Self {
        let places = || shared.blocks.iter().map(|block| &block.counters.tasks).chain([&*shared.outside]);
        let (mut suspended, mut ready, mut running, mut blocking) = (0, 0, 0, 0);
        let ended = task_counts::finished(places());
        for block in &shared.blocks {
            block.registry.walk(|task| match task.state() {
                TaskState::Suspended => suspended += 1,
                TaskState::Ready => ready += 1,
                TaskState::Blocking => blocking += 1,
                _ => running += 1,
            });
        }
        blocking += Pool::of(shared).running().len() as u64;
        let spawned = task_counts::spawned(places());
        let alive = spawned - ended;
        TaskMetrics {
            spawned,
            ended,
            alive,
            cancelled: shared.live.cancelled(),
            panicked: shared.live.panicked(),
            unstarted: alive.saturating_sub(suspended + ready + running + blocking),
            ready,
            running,
            suspended,
            blocking,
        }
    }
}

impl StackMetrics {
    fn of(shared: &Shared) -> Self {
        let counts = shared.stacks.counts();
        let at_workers: u64 = shared.blocks.iter().map(|block| block.counters.gauges.stacks.get()).sum();
        StackMetrics {
            used: (counts.outside as u64).saturating_sub(at_workers),
            warm: counts.warm as u64 + at_workers,
            cold: counts.cold as u64,
            mapped: counts.mapped as u64,
        }
    }
}
