//! Promises of whole processes. Most tests run again in a child.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/rerun.rs"]
mod rerun;
#[path = "../common/rest.rs"]
mod rest;
#[path = "../common/said.rs"]
mod said;

mod abort;
mod end_within;
mod forgotten;
mod generators;
mod no_threads;
mod processes;
mod reports;
mod runtime_hooks;
mod stalls;
mod switch_hooks;
mod task_panic;
