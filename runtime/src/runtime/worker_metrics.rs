//! The numbers of a worker.

#![forbid(unsafe_code)]

use std::time::Duration;

use crate::base::clock;
use crate::scheduler::block::Block;
use crate::scheduler::counters::LOCK_WAITS_PER_TIMING;
use crate::scheduler::histogram::Histogram;
use crate::scheduler::shared::Shared;

/// A number by its name in Prometheus' text: what it is, and how it is read.
pub(super) type Row = (&'static str, &'static str, fn(&WorkerMetrics) -> f64);

/// Makes the numbers of a worker, and their rows for Prometheus' text, of one table.
///
/// A number has its doc, whose first line is its help in that text, its kind, its name, its type, and how it is counted. A `total`
/// only grows, `seconds` is the total of times, and `now` is what there is at the moment.
macro_rules! worker_metrics {
    (@suffix total) => { "_total" };
    (@suffix seconds) => { "_seconds_total" };
    (@suffix now) => { "" };
    (@value seconds $value:expr) => { $value.as_secs_f64() };
    (@value $kind:ident $value:expr) => { $value as f64 };
    (
        $(#[$doc:meta])+
        pub struct WorkerMetrics of ($shared:ident, $block:ident) { $($before:tt)* }
        $($(#[doc = $help:literal])+ $kind:ident $name:ident: $type:ty = $count:expr;)+
        without a row $($(#[$other_doc:meta])+ $other:ident: $other_type:ty = $other_count:expr;)+
    ) => {
        $(#[$doc])+
        #[derive(Clone, Default, Debug)]
        #[non_exhaustive]
        pub struct WorkerMetrics {
            $($(#[doc = $help])+ pub $name: $type,)+
            $($(#[$other_doc])+ pub $other: $other_type,)+
        }

        impl WorkerMetrics {
            pub(super) const ROWS: &[Row] = &[$((
                concat!("fibra_worker_", stringify!($name), worker_metrics!(@suffix $kind)),
                [$($help),+][0].trim_ascii(),
                |worker| worker_metrics!(@value $kind worker.$name),
            )),+];

            pub(super) fn of($shared: &Shared, $block: &Block) -> Self {
                $($before)*
                WorkerMetrics { $($name: $count,)+ $($other: $other_count,)+ }
            }
        }
    };
}

worker_metrics! {
    /// The numbers of a worker. It alone writes them, without locked instructions.
    pub struct WorkerMetrics of (shared, block) {
        let counters = &block.counters;
        // In this order: an idle period comes after the pick.
        let (idle_periods, unrun) = (counters.idle_periods.get(), counters.unrun.get());
        let picks = counters.picks.get();
        // An idle period that ends meanwhile is missing for a moment.
        let (since, rested) = (counters.idle_since.get(), counters.idle_nanos.get());
        let uptime = clock::machine().saturating_duration_since(shared.started);
        let begin = if since == 0 { uptime } else { Duration::from_nanos(since) };
        let idle = Duration::from_nanos(rested) + uptime.saturating_sub(begin);
        let lock_waits = counters.lock_waits.get();
        let timed = lock_waits.div_ceil(LOCK_WAITS_PER_TIMING).max(1);
        let lock_wait = u128::from(counters.lock_wait_nanos.get()) * u128::from(lock_waits) / u128::from(timed);
        let gauges = &counters.gauges;
        let histograms = block.histograms.as_deref();
    }

    /// Tasks that were spawned on the worker.
    total spawned: u64 = counters.tasks.spawned();
    /// Tasks that have ended on the worker.
    total ended: u64 = counters.tasks.finished();
    /// Runs of tasks.
    ///
    /// Each is up to a wait, a yield or the end; noted. tokio: `worker_poll_count`.
    total runs: u64 = picks.saturating_sub(idle_periods + unrun);
    /// How long the worker has had something to do.
    ///
    /// tokio: `worker_total_busy_duration`. Two readings of the clock an idle period.
    seconds busy: Duration = uptime.saturating_sub(idle);
    /// How long the worker has been idle.
    ///
    /// It searched, polled or parked. Go: `/cpu/classes/idle:cpu-seconds`.
    seconds idle: Duration = idle;
    /// Times the worker has run out of tasks.
    total idle_periods: u64 = idle_periods;
    /// Waits of the thread for the system.
    ///
    /// tokio: `worker_park_count`; twice this is `worker_park_unpark_count`.
    total parks: u64 = counters.parks.get();
    /// Parks after which there was nothing to run.
    ///
    /// tokio: `worker_noop_count`.
    total idle_parks: u64 = counters.idle_parks.get();
    /// Calls of the driver.
    ///
    /// The parks are among them.
    total polls: u64 = counters.polls.get();
    /// Tasks that the driver has woken.
    ///
    /// tokio: `io_driver_ready_count`.
    total events: u64 = counters.events.get();
    /// Unstarted tasks taken out of the queue of the worker.
    ///
    /// Others may steal from that queue.
    total taken: u64 = counters.taken.get();
    /// Batches that the worker has stolen.
    ///
    /// tokio: `worker_steal_operations`.
    total steals: u64 = counters.steals.get();
    /// Tasks that the worker has stolen.
    ///
    /// tokio: `worker_steal_count`.
    total stolen: u64 = counters.stolen.get();
    /// Tasks that other threads woke or placed here.
    ///
    /// tokio: a part of `remote_schedule_count`.
    total arrivals: u64 = counters.arrivals.get();
    /// Yields of tasks without budget.
    ///
    /// They had used up the 128 operations of it. tokio: `budget_forced_yield_count`.
    total budget_yields: u64 = counters.budget_yields.get();
    /// Timers that have fired.
    total timers: u64 = counters.timers.get();
    /// How late the fired timers were, in all.
    ///
    /// It is the sum, in steps of 16 µs; noted. By the clock of the runtime, so virtual where that is.
    seconds timer_lateness: Duration = Duration::from_nanos(gauges.timer_lateness.get());
    /// Armed timers.
    ///
    /// Noted.
    now armed_timers: u64 = gauges.timers.get();
    /// Waits for locks.
    ///
    /// Waits of tasks for mutexes and read-write locks that went to sleep, also those that have not ended.
    total lock_waits: u64 = lock_waits;
    /// How long waits for locks took, in all.
    ///
    /// It is the sum, of which one in eight is timed. Go: `/sync/mutex/wait/total:seconds`.
    seconds lock_wait: Duration = Duration::from_nanos_u128(lock_wait);
    /// Started tasks that wait for their turn.
    ///
    /// Noted. tokio: `worker_local_queue_depth`.
    now ready: u64 = gauges.ready.get();
    /// Tasks that wait to start, or to go on if they may migrate.
    ///
    /// tokio: a part of `worker_local_queue_depth`.
    now queued: u64 = block.waiting() as u64;
    /// Tasks that wait for a stack.
    ///
    /// Noted.
    now awaiting_stack: u64 = gauges.awaiting_stack.get();
    /// Tasks that have started here and not ended.
    now started: u64 = block.registry.load() as u64;
    /// Unused stacks of the worker.
    ///
    /// Noted.
    now stacks: u64 = gauges.stacks.get();

    without a row

    /// How long tasks run without a stop, where the builder has [`histograms`](crate::Builder::histograms).
    ///
    /// tokio: `poll_time_histogram_bucket_count`.
    run_time: Option<Histogram> = histograms.map(|of| of.runs.read());
    /// How long tasks wait from their spawn, wake or yield to their run, where the builder has
    /// [`histograms`](crate::Builder::histograms).
    ///
    /// A task that another thread has woken waits from the first wake of its batch on. tokio:
    /// `schedule_latency_histogram_bucket_count`. Go: `/sched/latencies:seconds`.
    schedule_delay: Option<Histogram> = histograms.map(|of| of.delays.read());
}
