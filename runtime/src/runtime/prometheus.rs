//! The numbers of a runtime by name, and in Prometheus' text format.

#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::runtime::histogram::Histogram;
use crate::runtime::metrics::{RuntimeMetrics, WorkerMetrics};

/// A number by its name; see [`RuntimeMetrics::numbers`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Number {
    /// The name, as in `fibra_tasks_spawned_total`.
    pub name: &'static str,
    /// What it is. Empty where the number before has the same name.
    pub help: &'static str,
    /// The name of a label and its value.
    pub label: Option<(&'static str, String)>,
    /// The number. Times are in seconds.
    pub value: f64,
}

impl Number {
    /// Returns true for a number that only grows.
    pub fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }
}

/// A number: its name, what it is, its label, and how it is read. One that ends in `_total` is a counter.
type Row<T> = (&'static str, &'static str, (&'static str, &'static str), fn(&T) -> f64);

/// The label of a number without one.
const NONE: (&str, &str) = ("", "");

const RUNTIME: &[Row<RuntimeMetrics>] = &[
    ("fibra_uptime_seconds", "Time since the runtime was made.", NONE, |m| m.uptime.as_secs_f64()),
    ("fibra_tasks", "Tasks by state.", ("state", "unstarted"), |m| m.tasks.unstarted as f64),
    ("fibra_tasks", "", ("state", "ready"), |m| m.tasks.ready as f64),
    ("fibra_tasks", "", ("state", "running"), |m| m.tasks.running as f64),
    ("fibra_tasks", "", ("state", "suspended"), |m| m.tasks.suspended as f64),
    ("fibra_tasks", "", ("state", "blocking"), |m| m.tasks.blocking as f64),
    ("fibra_tasks_spawned_total", "Tasks that were spawned.", NONE, |m| m.tasks.spawned as f64),
    ("fibra_tasks_ended_total", "Tasks that have ended.", NONE, |m| m.tasks.ended as f64),
    ("fibra_tasks_cancelled_total", "Tasks that have ended by their cancellation.", NONE, |m| {
        m.tasks.cancelled as f64
    }),
    ("fibra_tasks_panicked_total", "Tasks that have ended by a panic.", NONE, |m| m.tasks.panicked as f64),
    ("fibra_tasks_spawned_outside_total", "Tasks that were spawned off the workers.", NONE, |m| {
        m.outside_spawned as f64
    }),
    ("fibra_global_queue_depth", "Unstarted tasks from outside.", NONE, |m| m.global_queue_depth as f64),
    ("fibra_stacks", "Stacks by use.", ("use", "used"), |m| m.stacks.used as f64),
    ("fibra_stacks", "", ("use", "warm"), |m| m.stacks.warm as f64),
    ("fibra_stacks", "", ("use", "cold"), |m| m.stacks.cold as f64),
    ("fibra_stacks_mapped", "Stacks for which there is address space.", NONE, |m| m.stacks.mapped as f64),
    ("fibra_pool_threads", "Threads of the blocking pool.", ("pool", "blocking"), |m| {
        m.blocking.threads as f64
    }),
    ("fibra_pool_threads", "", ("pool", "calls"), |m| m.calls.threads as f64),
    ("fibra_pool_idle_threads", "Threads without a job.", ("pool", "blocking"), |m| m.blocking.idle as f64),
    ("fibra_pool_idle_threads", "", ("pool", "calls"), |m| m.calls.idle as f64),
    ("fibra_pool_queue_depth", "Jobs that wait for a thread.", ("pool", "blocking"), |m| {
        m.blocking.queued as f64
    }),
    ("fibra_pool_queue_depth", "", ("pool", "calls"), |m| m.calls.queued as f64),
    ("fibra_pool_taken_total", "Jobs that a thread has taken.", ("pool", "blocking"), |m| {
        m.blocking.taken as f64
    }),
    ("fibra_pool_taken_total", "", ("pool", "calls"), |m| m.calls.taken as f64),
    ("fibra_pool_waited_seconds_total", "How long the taken jobs had waited.", ("pool", "blocking"), |m| {
        m.blocking.waited.as_secs_f64()
    }),
    ("fibra_pool_waited_seconds_total", "", ("pool", "calls"), |m| m.calls.waited.as_secs_f64()),
    ("fibra_stalls_total", "Tasks that have held their worker for longer than the limit.", NONE, |m| {
        m.stalls as f64
    }),
];

const WORKER: &[Row<WorkerMetrics>] = &[
    ("fibra_worker_spawned_total", "Tasks that were spawned on the worker.", NONE, |w| w.spawned as f64),
    ("fibra_worker_ended_total", "Tasks that have ended on the worker.", NONE, |w| w.ended as f64),
    ("fibra_worker_runs_total", "Runs of tasks.", NONE, |w| w.runs as f64),
    ("fibra_worker_busy_seconds_total", "How long the worker has had something to do.", NONE, |w| {
        w.busy.as_secs_f64()
    }),
    ("fibra_worker_idle_seconds_total", "How long the worker has been idle.", NONE, |w| w.idle.as_secs_f64()),
    ("fibra_worker_idle_periods_total", "Times the worker has run out of tasks.", NONE, |w| {
        w.idle_periods as f64
    }),
    ("fibra_worker_parks_total", "Waits of the thread for the system.", NONE, |w| w.parks as f64),
    ("fibra_worker_idle_parks_total", "Parks after which there was nothing to run.", NONE, |w| {
        w.idle_parks as f64
    }),
    ("fibra_worker_polls_total", "Calls of the driver.", NONE, |w| w.polls as f64),
    ("fibra_worker_events_total", "Tasks that the driver has woken.", NONE, |w| w.events as f64),
    ("fibra_worker_taken_total", "Unstarted tasks taken out of the queue of the worker.", NONE, |w| {
        w.taken as f64
    }),
    ("fibra_worker_steals_total", "Batches that the worker has stolen.", NONE, |w| w.steals as f64),
    ("fibra_worker_stolen_total", "Tasks that the worker has stolen.", NONE, |w| w.stolen as f64),
    ("fibra_worker_arrivals_total", "Tasks that other threads woke or placed here.", NONE, |w| {
        w.arrivals as f64
    }),
    ("fibra_worker_budget_yields_total", "Yields of tasks without budget.", NONE, |w| w.budget_yields as f64),
    ("fibra_worker_timers_total", "Timers that have fired.", NONE, |w| w.timers as f64),
    ("fibra_worker_timer_lateness_seconds_total", "How late those timers were.", NONE, |w| {
        w.timer_lateness.as_secs_f64()
    }),
    ("fibra_worker_armed_timers", "Armed timers.", NONE, |w| w.armed_timers as f64),
    ("fibra_worker_lock_waits_total", "Waits for locks.", NONE, |w| w.lock_waits as f64),
    ("fibra_worker_lock_wait_seconds_total", "How long those waits took.", NONE, |w| {
        w.lock_wait.as_secs_f64()
    }),
    ("fibra_worker_ready", "Started tasks that wait for their turn.", NONE, |w| w.ready as f64),
    ("fibra_worker_queued", "Tasks that wait to start, or to go on if they may migrate.", NONE, |w| {
        w.queued as f64
    }),
    ("fibra_worker_awaiting_stack", "Tasks that wait for a stack.", NONE, |w| w.awaiting_stack as f64),
    ("fibra_worker_started", "Tasks that have started here and not ended.", NONE, |w| w.started as f64),
    ("fibra_worker_stacks", "Unused stacks of the worker.", NONE, |w| w.stacks as f64),
];

impl RuntimeMetrics {
    /// Returns all numbers by their names, which are those of [`to_prometheus`](RuntimeMetrics::to_prometheus), without the
    /// histograms. Numbers of one name follow each other.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let metrics = fibra::Runtime::builder().workers(2).build()?.metrics();
    /// let runs: Vec<_> = metrics.numbers().filter(|number| number.name == "fibra_worker_runs_total").collect();
    /// assert_eq!(runs[1].label, Some(("worker", "1".to_owned())));
    /// assert!(runs.len() == 2 && runs[1].is_counter());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        let of_runtime = RUNTIME.iter().map(|&(name, help, (label, text), read)| {
            let label = (!label.is_empty()).then(|| (label, text.to_owned()));
            Number { name, help, label, value: read(self) }
        });
        let of_workers = WORKER.iter().flat_map(|&(name, help, _, read)| {
            self.workers.iter().enumerate().map(move |(index, worker)| {
                let help = if index == 0 { help } else { "" };
                Number { name, help, label: Some(("worker", index.to_string())), value: read(worker) }
            })
        });
        of_runtime.chain(of_workers)
    }

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
        for number in self.numbers() {
            let kind = if number.is_counter() { "counter" } else { "gauge" };
            head(&mut page, number.name, number.help, kind);
            let label = number.label.map(|(label, text)| format!("{label}=\"{text}\""));
            sample(&mut page, number.name, &label.unwrap_or_default(), number.value);
        }
        histogram(&mut page, "fibra_run_seconds", "How long tasks run without a stop.", self.run_time());
        histogram(
            &mut page,
            "fibra_schedule_delay_seconds",
            "How long tasks wait for a run.",
            self.schedule_delay(),
        );
        page
    }
}

/// Begins a number, unless it has the name of the one before.
fn head(page: &mut String, name: &str, help: &str, kind: &str) {
    if !help.is_empty() {
        // Writing to a string does not fail, here and below.
        _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

fn sample(page: &mut String, name: &str, label: &str, value: f64) {
    let label = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    _ = writeln!(page, "{name}{label} {value}");
}

fn histogram(page: &mut String, name: &str, help: &str, histogram: Option<Histogram>) {
    let Some(histogram) = histogram else { return };
    head(page, name, help, "histogram");
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
