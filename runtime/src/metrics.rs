//! What a runtime counts and measures: see [`Handle::metrics`](crate::Handle::metrics).

#![forbid(unsafe_code)]

pub use crate::blocking::pool_metrics::PoolMetrics;
pub use crate::runtime::metrics::{RuntimeMetrics, StackMetrics, TaskMetrics};
pub use crate::runtime::prometheus::Number;
pub use crate::runtime::worker_metrics::WorkerMetrics;
pub use crate::scheduler::histogram::Histogram;
