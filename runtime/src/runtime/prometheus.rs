//! The numbers of a runtime by name, and in Prometheus' text format.

#![forbid(unsafe_code)]

use std::iter;

use crate::blocking::pool_metrics::PoolMetrics;
use crate::runtime::metrics::RuntimeMetrics;
use crate::runtime::worker_metrics::WorkerMetrics;
use crate::scheduler::histogram::Histogram;

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

/// Returns the numbers of one name, which differ by the value of a label.
fn family<T: ToString>(
    name: &'static str,
    help: &'static str,
    label: &'static str,
    values: impl IntoIterator<Item = (T, f64)>,
) -> Vec<Number> {
    let helps = iter::once(help).chain(iter::repeat(""));
    let number = |((text, value), help): ((T, f64), _)| Number {
        name,
        help,
        label: Some((label, text.to_string())),
        value,
    };
    values.into_iter().zip(helps).map(number).collect()
}

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
        let RuntimeMetrics { tasks, stacks, .. } = self;
        let one = |name, help, value| vec![Number { name, help, label: None, value }];
        let count = |name, help, value: u64| one(name, help, value as f64);
        let by_state = [
            ("unstarted", tasks.unstarted),
            ("ready", tasks.ready),
            ("running", tasks.running),
            ("suspended", tasks.suspended),
            ("blocking", tasks.blocking),
        ];
        let by_use = [("used", stacks.used), ("warm", stacks.warm), ("cold", stacks.cold)];
        let counted = |(text, number)| (text, number as f64);
        let by_pool = |name, help, of: fn(&PoolMetrics) -> f64| {
            family(name, help, "pool", [("blocking", of(&self.blocking)), ("calls", of(&self.calls))])
        };
        let of_runtime = [
            one("fibra_uptime_seconds", "Time since the runtime was made.", self.uptime.as_secs_f64()),
            family("fibra_tasks", "Tasks by state.", "state", by_state.map(counted)),
            count("fibra_tasks_spawned_total", "Tasks that were spawned.", tasks.spawned),
            count("fibra_tasks_ended_total", "Tasks that have ended.", tasks.ended),
            count(
                "fibra_tasks_cancelled_total",
                "Tasks that have ended by their cancellation.",
                tasks.cancelled,
            ),
            count("fibra_tasks_panicked_total", "Tasks that have ended by a panic.", tasks.panicked),
            count(
                "fibra_tasks_spawned_outside_total",
                "Tasks that were spawned off the workers.",
                self.outside_spawned,
            ),
            count("fibra_global_queue_depth", "Unstarted tasks from outside.", self.global_queue_depth),
            family("fibra_stacks", "Stacks by use.", "use", by_use.map(counted)),
            count("fibra_stacks_mapped", "Stacks for which there is address space.", stacks.mapped),
            by_pool("fibra_pool_threads", "Threads of the blocking pool.", |pool| pool.threads as f64),
            by_pool("fibra_pool_idle_threads", "Threads without a job.", |pool| pool.idle as f64),
            by_pool("fibra_pool_queue_depth", "Jobs that wait for a thread.", |pool| pool.queued as f64),
            by_pool("fibra_pool_taken_total", "Jobs that a thread has taken.", |pool| pool.taken as f64),
            by_pool("fibra_pool_waited_seconds_total", "How long the taken jobs had waited.", |pool| {
                pool.waited.as_secs_f64()
            }),
            count(
                "fibra_stalls_total",
                "Tasks that have held their worker for longer than the limit.",
                self.stalls,
            ),
        ];
        let of_workers = WorkerMetrics::ROWS.iter().flat_map(|&(name, help, read)| {
            family(name, help, "worker", self.workers.iter().map(read).enumerate())
        });
        of_runtime.into_iter().flatten().chain(of_workers)
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
        let of_number = |number: Number| {
            let kind = if number.is_counter() { "counter" } else { "gauge" };
            let Number { name, help, label, value } = number;
            let head = if help.is_empty() { String::new() } else { head(name, help, kind) };
            let label = label.map(|(label, text)| format!("{{{label}=\"{text}\"}}")).unwrap_or_default();
            format!("{head}{name}{label} {value}\n")
        };
        let histograms = [
            histogram("fibra_run_seconds", "How long tasks run without a stop.", self.run_time()),
            histogram(
                "fibra_schedule_delay_seconds",
                "How long tasks wait for a run.",
                self.schedule_delay(),
            ),
        ];
        self.numbers().map(of_number).chain(histograms).collect()
    }
}

/// Begins the numbers of a name.
fn head(name: &str, help: &str, kind: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

fn histogram(name: &str, help: &str, histogram: Option<Histogram>) -> String {
    let Some(histogram) = histogram else { return String::new() };
    let mut page = head(name, help, "histogram");
    let mut below = 0;
    for (end, count) in histogram.buckets() {
        below += count;
        let end = end.map_or("+Inf".to_owned(), |end| end.as_secs_f64().to_string());
        page += &format!("{name}_bucket{{le=\"{end}\"}} {below}\n");
    }
    page + &format!("{name}_sum {}\n{name}_count {below}\n", histogram.sum().as_secs_f64())
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
