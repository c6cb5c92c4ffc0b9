//! Letting other tasks run.

#![forbid(unsafe_code)]

use crate::coroutine::stop::Stop;
use crate::sleep::cancel_points;
use crate::tasks::context;
use crate::tasks::forbid;
use crate::tasks::task::{self, Task};

/// Lets all other ready tasks run, then continues.
///
/// On a plain thread it is [`std::thread::yield_now`].
///
/// # Cancellation
/// A cancellation point, so that a loop over it can be ended.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let task = fibra::spawn(|| 1);
/// fibra::yield_now();
/// assert!(task.is_finished());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline(always)]
pub fn yield_now() {
    let Some(task) = context::task() else {
        cancel_points::cancellation_point();
        return std::thread::yield_now();
    };
    let header = task.header();
    if header.cancel_flags.any() || !header.bounds.get().is_null() {
        cancel_points::cancellation_point();
    }
    forbid::check(header);
    task.suspend(Stop::Yielded);
}

/// Runs `f` without the operation budget.
///
/// `f` may handle what is ready for as long as it likes, and starves the tasks beside it meanwhile.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let total = fibra::task::unconstrained(|| (0..1_000).map(|n| n % 2).sum::<u32>());
/// assert_eq!(total, 500);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn unconstrained<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(Option<(Task, bool)>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some((task, before)) = &self.0 {
                task.header().unconstrained.set(*before);
            }
        }
    }
    let task = task::try_current();
    let _restore = Restore(task.map(|task| {
        let before = task.header().unconstrained.replace(true);
        (task, before)
    }));
    f()
}
