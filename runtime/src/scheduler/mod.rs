//! Floor 5: the workers: their loop, queues, stealing, idle protocol, polling and the driver seam.

pub(crate) mod biased;
pub(crate) mod block;
pub(crate) mod budget;
pub(crate) mod cancelled;
pub(crate) mod current;
pub(crate) mod driver;
pub(crate) mod driver_here;
pub(crate) mod ending;
pub(crate) mod idle;
pub(crate) mod inbox;
pub(crate) mod looks;
pub(crate) mod panics;
pub(crate) mod park_state;
pub(crate) mod polling;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod rest;
pub(crate) mod run;
pub(crate) mod run_watch;
pub(crate) mod shared;
pub(crate) mod start;
pub(crate) mod task_counts;
pub(crate) mod task_panic;
pub(crate) mod tuning;
pub(crate) mod wake;
pub(crate) mod worker;
