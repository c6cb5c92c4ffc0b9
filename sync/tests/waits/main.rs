//! The promises that all primitives share: cancellation, timeouts, wakers, the operation budget.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/future.rs"]
mod future;

mod abort;
mod async_budget;
mod cancel_points;
mod cancelled_waits;
mod looks;
mod oracle;
mod shared_task_scenarios;
mod timeouts;
mod waits_for;
mod waker_waits;
mod wakers;
