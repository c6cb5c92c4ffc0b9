//! Promises of the crate's own interface.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../runtime/tests/common/paused.rs"]
mod paused;

mod attributes;
mod balance;
mod compiler;
mod misuse;
mod readiness;
mod stacks;
mod std_paths;
mod virtual_time;
mod wakers;
