//! Promises of spans: they follow the tasks that enter them.

#[path = "../common/mod.rs"]
mod common;
mod recorder;

mod children;
mod held;
mod subscribers;
