//! Helper tasks: each does one part of an operation, in a scope.

#![forbid(unsafe_code)]

use std::io;
use std::panic::resume_unwind;
use std::time::Duration;

use fibra_runtime::task::{Builder, Scope, ScopedJoinHandle};
use fibra_runtime::{sleep, wait};

use crate::waiting::cancel::{cancelled, check_may_wait};

/// Spawns a helper task, whose value the operation needs.
///
/// The end of the runtime lets it run where the spawner must not be unwound. It may wait where its
/// spawner may.
pub(crate) fn spawn_helper<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    part: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let task = scope.spawn_as(Builder::helper(), part);
    if check_may_wait().is_err() {
        task.cancel();
    }
    task
}

/// Waits for the value of a helper task, and resumes its panic.
///
/// No cancel ends the wait in a task that unwinds from a panic, or runs its last destructors. So it
/// cancels the helper when such a task is cancelled.
pub(crate) fn join_helper<T>(task: ScopedJoinHandle<'_, T>) -> io::Result<T> {
    while wait::fails_if_cancelled() && !task.is_finished() {
        if check_may_wait().is_err() {
            task.cancel();
            break;
        }
        sleep(LOOK);
    }
    task.join().map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(error) if error.is_cancelled() => cancelled(),
        Err(error) => error.into(),
    })
}

/// The pause between two checks for a cancel that no event reports.
const LOOK: Duration = Duration::from_millis(5);
