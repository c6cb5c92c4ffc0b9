//! What a runtime counts, as its users see it.

#![forbid(unsafe_code)]

use std::iter::Sum;
use std::time::Duration;

use crate::base::clock;
use crate::blocking::pool::{self, Pool};
use crate::runtime::handle::Handle;
use crate::runtime::histogram::Histogram;
use crate::scheduler::block::Block;
use crate::scheduler::counters::LOCK_WAITS_PER_TIMING;
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
        let [blocking, calls] = Pool::of(shared).counts().map(PoolMetrics::of);
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

/// Counts the jobs and threads of one half of the blocking pool, under its lock.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// Threads. tokio: `num_blocking_threads`. Go: `/sched/threads/total:threads` has them, and the workers.
    pub threads: u64,
    /// Threads without a job. tokio: `num_idle_blocking_threads`.
    pub idle: u64,
    /// Jobs that wait for a thread. tokio: `blocking_queue_depth`.
    pub queued: u64,
    /// Jobs that a thread has taken.
    pub taken: u64,
    /// How long the taken jobs had waited, in all. Divided by [`taken`](Self::taken) it is the latency of the queue.
    pub waited: Duration,
}

/// The numbers of a worker. It alone writes them, without locked instructions.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Tasks that were spawned on this worker.
    pub spawned: u64,
    /// Tasks that have ended on this worker.
    pub ended: u64,
    /// Runs of tasks, each up to a wait, a yield or the end; noted. tokio: `worker_poll_count`.
    pub runs: u64,
    /// How long the worker has had something to do. tokio: `worker_total_busy_duration`. Two readings of the
    /// clock an idle period.
    pub busy: Duration,
    /// How long the worker has been idle: searched, polled or parked. Go: `/cpu/classes/idle:cpu-seconds`.
    pub idle: Duration,
    /// How often the worker has run out of tasks.
    pub idle_periods: u64,
    /// Parks: waits of the thread for the system. tokio: `worker_park_count`; twice this is
    /// `worker_park_unpark_count`.
    pub parks: u64,
    /// Parks after which there was nothing to run. tokio: `worker_noop_count`.
    pub idle_parks: u64,
    /// Calls of the driver, the parks among them.
    pub polls: u64,
    /// Tasks that the driver has woken. tokio: `io_driver_ready_count`.
    pub events: u64,
    /// Unstarted tasks that the worker has taken out of the queue that others may steal from.
    pub taken: u64,
    /// Batches that the worker has stolen. tokio: `worker_steal_operations`.
    pub steals: u64,
    /// Tasks in those batches. tokio: `worker_steal_count`.
    pub stolen: u64,
    /// Tasks that other threads woke or placed here. tokio: a part of `remote_schedule_count`.
    pub arrivals: u64,
    /// Yields of tasks that had used up their budget of 128 operations. tokio: `budget_forced_yield_count`.
    pub budget_yields: u64,
    /// Timers that have fired.
    pub timers: u64,
    /// How late the fired timers were, in all, in steps of 16 µs; noted. It is the clock's time, so virtual
    /// where that is.
    pub timer_lateness: Duration,
    /// Armed timers; noted.
    pub armed_timers: u64,
    /// Waits of tasks for mutexes and read-write locks that went to sleep, also those that have not ended.
    pub lock_waits: u64,
    /// How long those waits took, in all, of which one in eight is timed. Go: `/sync/mutex/wait/total:seconds`.
    pub lock_wait: Duration,
    /// Started tasks that wait for their turn here; noted. tokio: `worker_local_queue_depth`.
    pub ready: u64,
    /// Tasks that wait to start here, or to go on if they may migrate. tokio: a part of `worker_local_queue_depth`.
    pub queued: u64,
    /// Tasks that wait for a stack; noted.
    pub awaiting_stack: u64,
    /// Tasks that have started here and not ended.
    pub started: u64,
    /// Unused stacks of the worker; noted.
    pub stacks: u64,
    /// How long tasks run without a stop, where the builder has [`histograms`](crate::Builder::histograms). tokio:
    /// `poll_time_histogram_bucket_count`.
    pub run_time: Option<Histogram>,
    /// How long tasks wait from their spawn, wake or yield to their run. A task that another thread has woken
    /// waits from
    /// the first wake of its batch on. tokio: `schedule_latency_histogram_bucket_count`. Go:
    /// `/sched/latencies:seconds`.
    pub schedule_delay: Option<Histogram>,
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

impl PoolMetrics {
    fn of(counts: pool::Counts) -> Self {
        PoolMetrics {
            threads: counts.threads as u64,
            idle: (counts.threads - counts.busy) as u64,
            queued: counts.queued as u64,
            taken: counts.taken,
            waited: counts.waited,
        }
    }
}

impl WorkerMetrics {
    fn of(shared: &Shared, block: &Block) -> Self {
        let counters = &block.counters;
        // In this order: an idle period comes after the pick.
        let (idle_periods, unrun) = (counters.idle_periods.get(), counters.unrun.get());
        let picks = counters.picks.get();
        // An idle period that ends meanwhile is missing for a moment.
        let (since, rested) = (counters.idle_since.get(), counters.idle_nanos.get());
        let uptime = clock::machine().saturating_duration_since(shared.started);
        let present =
            if since == 0 { Duration::ZERO } else { uptime.saturating_sub(Duration::from_nanos(since)) };
        let idle = Duration::from_nanos(rested) + present;
        let lock_waits = counters.lock_waits.get();
        let timed = lock_waits.div_ceil(LOCK_WAITS_PER_TIMING).max(1);
        let lock_wait =
            u128::from(counters.lock_wait_nanos.get()) * u128::from(lock_waits) / u128::from(timed);
        WorkerMetrics {
            spawned: counters.tasks.spawned(),
            ended: counters.tasks.finished(),
            runs: picks.saturating_sub(idle_periods + unrun),
            busy: uptime.saturating_sub(idle),
            idle,
            idle_periods,
            parks: counters.parks.get(),
            idle_parks: counters.idle_parks.get(),
            polls: counters.polls.get(),
            events: counters.events.get(),
            taken: counters.taken.get(),
            steals: counters.steals.get(),
            stolen: counters.stolen.get(),
            arrivals: counters.arrivals.get(),
            budget_yields: counters.budget_yields.get(),
            timers: counters.timers.get(),
            timer_lateness: Duration::from_nanos(counters.gauges.timer_lateness.get()),
            armed_timers: counters.gauges.timers.get(),
            lock_waits,
            lock_wait: Duration::from_nanos_u128(lock_wait),
            ready: counters.gauges.ready.get(),
            queued: block.waiting() as u64,
            awaiting_stack: counters.gauges.awaiting_stack.get(),
            started: block.registry.load() as u64,
            stacks: counters.gauges.stacks.get(),
            run_time: block.histograms.as_ref().map(|of| Histogram::of(&of.runs)),
            schedule_delay: block.histograms.as_ref().map(|of| Histogram::of(&of.delays)),
        }
    }
}
