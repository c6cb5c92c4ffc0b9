//! The numbers of a runtime in Prometheus' text format.

#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::runtime::histogram::Histogram;
use crate::runtime::metrics::{RuntimeMetrics, WorkerMetrics};

/// A number: its name without `fibra_`, what it is, its label, and how it is read. One that ends in `_total` is
/// a counter.
type Row<T> = (&'static str, &'static str, &'static str, fn(&T) -> f64);

const RUNTIME: &[Row<RuntimeMetrics>] = &[
    ("uptime_seconds", "Time since the runtime was made.", "", |m| m.uptime.as_secs_f64()),
    ("tasks", "Tasks by state.", "state=\"unstarted\"", |m| m.tasks.unstarted as f64),
    ("tasks", "", "state=\"ready\"", |m| m.tasks.ready as f64),
    ("tasks", "", "state=\"running\"", |m| m.tasks.running as f64),
    ("tasks", "", "state=\"suspended\"", |m| m.tasks.suspended as f64),
    ("tasks", "", "state=\"blocking\"", |m| m.tasks.blocking as f64),
    ("tasks_spawned_total", "Tasks that were spawned.", "", |m| m.tasks.spawned as f64),
    ("tasks_ended_total", "Tasks that have ended.", "", |m| m.tasks.ended as f64),
    ("tasks_cancelled_total", "Tasks that have ended by their cancellation.", "", |m| {
        m.tasks.cancelled as f64
    }),
    ("tasks_panicked_total", "Tasks that have ended by a panic.", "", |m| m.tasks.panicked as f64),
    ("tasks_spawned_outside_total", "Tasks that were spawned off the workers.", "", |m| {
        m.outside_spawned as f64
    }),
    ("global_queue_depth", "Unstarted tasks from outside.", "", |m| m.global_queue_depth as f64),
    ("stacks", "Stacks by use.", "use=\"used\"", |m| m.stacks.used as f64),
    ("stacks", "", "use=\"warm\"", |m| m.stacks.warm as f64),
    ("stacks", "", "use=\"cold\"", |m| m.stacks.cold as f64),
    ("stacks_mapped", "Stacks for which there is address space.", "", |m| m.stacks.mapped as f64),
    ("pool_threads", "Threads of the blocking pool.", "lane=\"blocking\"", |m| m.blocking.threads as f64),
    ("pool_threads", "", "lane=\"calls\"", |m| m.calls.threads as f64),
    ("pool_idle_threads", "Threads without a job.", "lane=\"blocking\"", |m| m.blocking.idle as f64),
    ("pool_idle_threads", "", "lane=\"calls\"", |m| m.calls.idle as f64),
    ("pool_queue_depth", "Jobs that wait for a thread.", "lane=\"blocking\"", |m| m.blocking.queued as f64),
    ("pool_queue_depth", "", "lane=\"calls\"", |m| m.calls.queued as f64),
    ("pool_taken_total", "Jobs that a thread has taken.", "lane=\"blocking\"", |m| m.blocking.taken as f64),
    ("pool_taken_total", "", "lane=\"calls\"", |m| m.calls.taken as f64),
    ("pool_waited_seconds_total", "How long the taken jobs had waited.", "lane=\"blocking\"", |m| {
        m.blocking.waited.as_secs_f64()
    }),
    ("pool_waited_seconds_total", "", "lane=\"calls\"", |m| m.calls.waited.as_secs_f64()),
    ("stalls_total", "Tasks that have held their worker for longer than the limit.", "", |m| m.stalls as f64),
];

const WORKER: &[Row<WorkerMetrics>] = &[
    ("worker_spawned_total", "Tasks that were spawned on the worker.", "", |w| w.spawned as f64),
    ("worker_ended_total", "Tasks that have ended on the worker.", "", |w| w.ended as f64),
    ("worker_runs_total", "Runs of tasks.", "", |w| w.runs as f64),
    ("worker_busy_seconds_total", "How long the worker has had something to do.", "", |w| {
        w.busy.as_secs_f64()
    }),
    ("worker_idle_seconds_total", "How long the worker has rested.", "", |w| w.idle.as_secs_f64()),
    ("worker_rests_total", "Times without anything to run.", "", |w| w.rests as f64),
    ("worker_parks_total", "Waits of the thread for the system.", "", |w| w.parks as f64),
    ("worker_idle_parks_total", "Parks after which there was nothing to run.", "", |w| w.idle_parks as f64),
    ("worker_polls_total", "Calls of the driver.", "", |w| w.polls as f64),
    ("worker_events_total", "Tasks that the driver has woken.", "", |w| w.events as f64),
    ("worker_taken_total", "Unstarted tasks taken out of the queue of the worker.", "", |w| w.taken as f64),
    ("worker_thefts_total", "Batches that the worker has stolen.", "", |w| w.thefts as f64),
    ("worker_stolen_total", "Tasks that the worker has stolen.", "", |w| w.stolen as f64),
    ("worker_arrivals_total", "Tasks that other threads woke or placed here.", "", |w| w.arrivals as f64),
    ("worker_budget_yields_total", "Yields of tasks without budget.", "", |w| w.budget_yields as f64),
    ("worker_timers_total", "Timers that have fired.", "", |w| w.timers as f64),
    ("worker_timer_lateness_seconds_total", "How late those timers were.", "", |w| {
        w.timer_lateness.as_secs_f64()
    }),
    ("worker_armed_timers", "Armed timers.", "", |w| w.armed_timers as f64),
    ("worker_lock_waits_total", "Waits for locks.", "", |w| w.lock_waits as f64),
    ("worker_lock_wait_seconds_total", "How long those waits took.", "", |w| w.lock_wait.as_secs_f64()),
    ("worker_ready", "Started tasks that wait for their turn.", "", |w| w.ready as f64),
    ("worker_startable", "Tasks that wait to start.", "", |w| w.startable as f64),
    ("worker_stackless", "Tasks that wait for a stack.", "", |w| w.stackless as f64),
    ("worker_started", "Tasks that have started here and not ended.", "", |w| w.started as f64),
    ("worker_stacks", "Unused stacks of the worker.", "", |w| w.stacks as f64),
];

impl RuntimeMetrics {
    /// Returns the numbers in the text format of Prometheus, version 0.0.4.
    ///
    /// Those of workers have the label `worker`. The histograms are sums over the workers. Times are in seconds.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// let text = runtime.metrics().to_prometheus();
    /// assert!(text.contains("# TYPE fibra_tasks_spawned_total counter\nfibra_tasks_spawned_total 0\n"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut page = String::new();
        for (name, help, label, read) in RUNTIME {
            head(&mut page, name, help);
            sample(&mut page, name, label, read(self));
        }
        for (name, help, _, read) in WORKER {
            head(&mut page, name, help);
            for (index, worker) in self.workers.iter().enumerate() {
                sample(&mut page, name, &format!("worker=\"{index}\""), read(worker));
            }
        }
        histogram(&mut page, "run_seconds", "How long tasks run without a stop.", self.run_time());
        histogram(
            &mut page,
            "schedule_delay_seconds",
            "How long tasks wait for a run.",
            self.schedule_delay(),
        );
        page
    }
}

/// Begins a number, unless the row only adds a label.
fn head(page: &mut String, name: &str, help: &str) {
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    if !help.is_empty() {
        // Writing to a string does not fail, here and below.
        _ = writeln!(page, "# HELP fibra_{name} {help}\n# TYPE fibra_{name} {kind}");
    }
}

fn sample(page: &mut String, name: &str, label: &str, value: f64) {
    let label = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    _ = writeln!(page, "fibra_{name}{label} {value}");
}

fn histogram(page: &mut String, name: &str, help: &str, histogram: Option<Histogram>) {
    let Some(histogram) = histogram else { return };
    _ = writeln!(page, "# HELP fibra_{name} {help}\n# TYPE fibra_{name} histogram");
    let mut below = 0;
    for (end, count) in histogram.buckets() {
        below += count;
        let end = end.map_or("+Inf".to_owned(), |end| end.as_secs_f64().to_string());
        sample(page, &format!("{name}_bucket"), &format!("le=\"{end}\""), below as f64);
    }
    sample(page, &format!("{name}_sum"), "", histogram.sum().as_secs_f64());
    sample(page, &format!("{name}_count"), "", below as f64);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_text_is_as_filed() {
        let mut worker =
            WorkerMetrics { runs: 7, lock_wait: Duration::from_micros(1500), ..Default::default() };
        worker.run_time = Some(Histogram::default());
        let other = WorkerMetrics { runs: 1 << 40, ..Default::default() };
        let mut metrics = RuntimeMetrics { uptime: Duration::from_millis(2500), ..Default::default() };
        (metrics.tasks.spawned, metrics.tasks.suspended) = (12, 5);
        metrics.workers = vec![worker, other];
        assert_eq!(metrics.to_prometheus(), include_str!("prometheus/golden.txt"));
    }
}
