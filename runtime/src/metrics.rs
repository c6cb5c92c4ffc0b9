//! What a runtime counts and measures: see [`Handle::metrics`](crate::Handle::metrics).

#![forbid(unsafe_code)]

pub use crate::runtime::histogram::Histogram;
pub use crate::runtime::metrics::{PoolMetrics, RuntimeMetrics, StackMetrics, TaskMetrics, WorkerMetrics};
pub use crate::runtime::prometheus::Number;
