//! Floor 9: runtimes: how one is built, entered, run, watched and ended.

pub(crate) mod builder;
pub(crate) mod deadlock;
pub(crate) mod deadlock_check;
pub(crate) mod dump;
pub(crate) mod dump_json;
pub(crate) mod dump_signal;
pub(crate) mod handle;
pub(crate) mod inspect;
pub(crate) mod metrics;
pub(crate) mod owner;
pub(crate) mod prometheus;
pub(crate) mod recording;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod shutdown;
pub(crate) mod spawn_on;
pub(crate) mod start;
pub(crate) mod wait_cycles;
pub(crate) mod wait_graph;
pub(crate) mod watchdog;
pub(crate) mod worker_metrics;
