//! Helper tasks: each does one part of an operation, in a scope.

#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use fibra_runtime::task::{Builder, JoinError, Scope, ScopedJoinHandle};
use fibra_runtime::wait;

use crate::waiting::cancel::{cancelled, check_may_wait, pause};

/// Spawns one, of which the operation needs the value: where its own task must not be unwound, the end of the runtime lets it run.
/// It waits where its spawner may.
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

/// Waits for its value, which the operation needs. In a task that unwinds from a panic, or ends, and is cancelled meanwhile, the task
/// beside is cancelled as well, and ends: the wait itself hears of no cancel there.
pub(crate) fn join_helper<T>(task: ScopedJoinHandle<'_, T>) -> Result<T, JoinError> {
    while wait::fails_if_cancelled() && !task.is_finished() {
        if check_may_wait().is_err() {
            task.cancel();
            break;
        }
        pause(LOOK);
    }
    task.join()
}

/// Between two looks whether a task that panicked, or ends, was cancelled.
const LOOK: Duration = Duration::from_millis(5);

/// What the operation fails with if there is no value.
pub(crate) fn failure_of(error: JoinError) -> io::Error {
    match error.is_cancelled() {
        true => cancelled(),
        false => error.into(),
    }
}
