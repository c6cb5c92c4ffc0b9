#![doc = include_str!("../README.md")]

mod api;
mod base;
mod blocking;
#[doc(hidden)]
pub mod clock;
mod compile_fail;
mod coroutine;
pub mod driver;
#[doc(hidden)]
pub mod limit;
pub mod metrics;
#[doc(hidden)]
pub mod random;
mod runtime;
mod scheduler;
mod sleep;
mod stack;
#[doc(hidden)]
pub mod stacks;
pub mod structured;
pub mod task;
mod tasks;
pub mod time;
mod timer;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod wait;
mod waiter;

pub use api::block_on::block_on;
pub use api::cancel_token::CancelToken;
pub use api::for_each::parallel_for_each;
pub use api::group::TaskGroup;
pub use api::join::join;
pub use api::join_handle::JoinHandle;
pub use api::parallel_map::parallel_map;
pub use api::race::{race, race_local};
pub use api::range::parallel_for;
pub use api::scope::scope;
pub use api::sleep::{sleep, sleep_until};
pub use api::spawn::{spawn, spawn_blocking, spawn_local};
pub use api::timeout::{Elapsed, timeout, timeout_at};
pub use api::yield_now::yield_now;
pub use blocking::unblock::unblock;
pub use runtime::builder::Builder;
pub use runtime::handle::Handle;
pub use runtime::owner::Runtime;
pub use runtime::watchdog::Stall;
pub use scheduler::task_panic::TaskPanic;
pub use stack::guard::StackGuards;
pub use tasks::join_error::JoinError;
#[doc(hidden)]
pub use tasks::panic_log::PanicLog;
pub use tasks::task::Task;
