//! The numbers of a blocking pool.

#![forbid(unsafe_code)]

use std::time::Duration;

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
