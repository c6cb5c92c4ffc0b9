//! Tasks of a scope that do a part of an operation.

#![forbid(unsafe_code)]

use std::io;

use fibra_runtime::task::{Builder, JoinError, Scope, ScopedJoinHandle};

use crate::op::{cancelled, check_may_wait};

/// Spawns one, of which the operation needs the value: where its own task must not be unwound, the end of the runtime lets it run.
/// It waits where its spawner may.
pub(crate) fn spawn_beside<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    part: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let task = scope.spawn_as(Builder::helper(), part);
    if check_may_wait().is_err() {
        task.cancel();
    }
    task
}

/// What the operation fails with if there is no value.
pub(crate) fn failure_of(error: JoinError) -> io::Error {
    match error.is_cancelled() {
        true => cancelled(),
        false => error.into(),
    }
}
