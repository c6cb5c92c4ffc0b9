#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod readiness;
mod runtime;
pub mod signal;

#[doc = include_str!("../DIFFERENCES.md")]
pub mod differences {}
#[doc = include_str!("half_done.md")]
pub mod half_done {}

#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio", feature = "tokio-io"))]
pub use fibra_io::compat;
pub use fibra_io::{Pollable, fs, io, net, os, process};
pub use fibra_runtime::{
    CancelToken, Elapsed, Handle, JoinError, JoinHandle, StackGuards, Stall, Task, TaskGroup, TaskPanic,
    block_on, join, parallel_for, parallel_for_each, parallel_map, race, race_local, scope, sleep,
    sleep_until, spawn, spawn_blocking, spawn_local, structured, task, task_local, time, timeout, timeout_at,
    unblock, yield_now,
};
#[doc(hidden)]
pub use fibra_runtime::{driver, wait};
pub use fibra_sync as sync;
pub use fibra_sync::{select, select_biased};
pub use readiness::Readiness;
pub use runtime::{Builder, Runtime, run};
