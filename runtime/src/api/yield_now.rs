//! Letting other tasks run.

#![forbid(unsafe_code)]

use crate::coroutine::stop::Stop;
use crate::sleep::cancel_points;
use crate::tasks::context;
use crate::tasks::forbid;
use crate::tasks::task::{self, Task};

/// Lets all other tasks run that are ready, then goes on. On a plain thread it is [`std::thread::yield_now`].
///
/// # Cancellation
/// A cancellation point, so that a loop over it can be ended.
#[inline(always)]
pub fn yield_now() {
    let Some(task) = context::task() else { return std::thread::yield_now() };
    let header = task.header();
    if header.marks.any() || !header.bounds.get().is_null() {
        cancel_points::cancellation_point();
    }
    forbid::check(header);
    task.suspend(Stop::Yielded);
}

/// Runs `f` without the operation budget: it may go on over things that are ready for as long as it likes, and starves
/// the tasks beside it while it does.
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
