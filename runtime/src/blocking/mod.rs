//! Floor 7: the thread pools for calls that block.

mod job;
pub(crate) mod pool;
pub(crate) mod pool_metrics;
pub(crate) mod unblock;
