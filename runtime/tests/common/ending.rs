//! A detached task that ends by and by.

use fibra_runtime::{Task, spawn, task};

/// Spawns a task without a handle. Its last act is to make its result, which it drops itself, since it is unclaimed.
pub(crate) fn ending<T: Send + 'static>(result: impl FnOnce() -> T + Send + 'static) -> Task {
    let task = spawn(move || {
        task::park();
        result()
    });
    let name = task.task().clone();
    // Dropped after its end, the handle would drop the result.
    drop(task);
    name.unpark();
    name
}
