//! The driver of the worker that the caller runs on.

use std::any::Any;
use std::sync::Arc;

use crate::scheduler::current::with_worker;
use crate::scheduler::driver::Id;
use crate::scheduler::worker::Worker;

/// The handle of the current worker's driver; `None` off the workers, or when the driver has another one.
pub fn current<H: Any + Send + Sync>() -> Option<Arc<H>> {
    with_worker(|worker| Arc::clone(worker.driver_handle()))?.downcast().ok()
}

/// Which driver the current worker has; `None` off the workers.
#[inline]
pub fn current_id() -> Option<Id> {
    with_worker(Worker::driver_id)
}

/// Runs `start` where what it starts, a thread or a process, may use the processors of the runtime: on a pinned worker that would
/// be pinned as well. It must not wait.
pub fn unpinned<R>(start: impl FnOnce() -> R) -> R {
    let _moved = with_worker(|worker| {
        let config = &worker.shared().config;
        config.pin.then(|| config.processors.lend())
    });
    start()
}
