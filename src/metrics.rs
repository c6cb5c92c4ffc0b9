#![forbid(unsafe_code)]

pub use fibra_runtime::metrics::*;

/// Sets the gauges and counters of the recorder that the crate `metrics` has, and describes them.
///
/// Their names and labels are those of [`RuntimeMetrics::to_prometheus`]. Totals in seconds are gauges, since counters of that crate
/// are whole numbers. Histograms are left out: that crate has no way to hand buckets on. Call it every few seconds, from a thread
/// or a task.
///
/// With the feature `metrics`.
///
/// # Examples
/// ```
/// let runtime = fibra::Runtime::builder().workers(1).build()?;
/// // Without a recorder it does nothing.
/// fibra::metrics::record(&runtime.metrics());
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(feature = "metrics")]
pub fn record(metrics: &RuntimeMetrics) {
    for number in metrics.numbers() {
        let is_counter = number.is_counter() && !number.name.ends_with("_seconds_total");
        let Number { name, help, label, value, .. } = number;
        let labels: Vec<_> = label.into_iter().collect();
        match is_counter {
            true => ::metrics::counter!(name, &labels).absolute(value as u64),
            false => ::metrics::gauge!(name, &labels).set(value),
        }
        match is_counter {
            _ if help.is_empty() => {}
            true => ::metrics::describe_counter!(name, help),
            false => ::metrics::describe_gauge!(name, help),
        }
    }
}
