#![doc = include_str!("../README.md")]

mod blocking;
mod cache;
mod compile_fail;
mod coroutine;
mod current;
pub mod driver;
mod fences;
mod idle;
#[doc(hidden)]
pub mod limit;
mod panics;
mod primitive;
mod queue;
mod report;
mod ring;
mod runtime;
mod stack;
pub mod structured;
mod sys;
pub mod task;
pub mod time;
mod timer;
#[doc(hidden)]
pub mod wait;
mod watch;
mod worker;

pub use blocking::unblock;
pub use panics::TaskPanic;
pub use runtime::{Builder, Handle, Runtime};
pub use stack::Guards;
pub use structured::{TaskGroup, join, parallel_for, parallel_for_each, race};
pub use task::{
    CancelToken, Elapsed, JoinError, JoinHandle, Task, block_on, scope, spawn, spawn_blocking, spawn_local,
    timeout, timeout_at, yield_now,
};
pub use time::{sleep, sleep_until};
pub use watch::Stall;
