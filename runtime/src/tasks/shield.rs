//! Shields: code that no cancellation from outside ends.

#![forbid(unsafe_code)]

use crate::tasks::bounds::Bound;
use crate::tasks::context;
use crate::tasks::thread_deadlines;

/// Runs `f` so that no cancellation and no deadline from outside ends it.
///
/// Outside are a cancel of the task and those of an enclosing [`timeout`](crate::timeout) or
/// [`CancelToken::scope`](crate::api::cancel_token::CancelToken::scope). Those that are set up
/// inside work.
///
/// A cancel that came meanwhile is noticed at the first cancellation point after `f`.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # use std::time::Duration;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut committed = false;
/// let late = fibra::timeout(Duration::from_millis(1), || {
///     task::shield(|| {
///         fibra::sleep(Duration::from_millis(3));
///         committed = true;
///     });
///     fibra::sleep(Duration::from_secs(60));
/// });
/// assert!(late.is_err() && committed);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn shield<T>(f: impl FnOnce() -> T) -> T {
    match context::task() {
        Some(task) => Bound::shield().run(task.header(), f).expect("nothing is raised for a shield"),
        None => thread_deadlines::shield(f),
    }
}
