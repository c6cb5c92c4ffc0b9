//! The driver of the worker that the caller runs on.

#![forbid(unsafe_code)]

use std::any::Any;
use std::sync::Arc;

use crate::scheduler::current::with_worker;
use crate::scheduler::driver::Id;
use crate::scheduler::worker::Worker;

/// Returns the handle of the current worker's driver.
///
/// `None` off the workers, or when the driver has another type of handle.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// assert!(fibra::driver::current::<u32>().is_none(), "this runtime has no driver");
/// assert!(fibra::driver::current_id().is_none() || fibra::driver::current_id().unwrap().number() > 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn current<H: Any + Send + Sync>() -> Option<Arc<H>> {
    with_worker(|worker| Arc::clone(worker.driver_handle()))?.downcast().ok()
}

/// Returns the id of the current worker's driver; `None` off the workers.
#[inline]
pub fn current_id() -> Option<Id> {
    with_worker(Worker::driver_id)
}

/// Runs `start` so that the thread or process that it starts is not pinned.
///
/// On a pinned worker it would be pinned as well otherwise. `start` must not wait.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let thread = fibra::driver::unpinned(|| std::thread::spawn(|| 1));
/// assert_eq!(thread.join().unwrap(), 1);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn unpinned<R>(start: impl FnOnce() -> R) -> R {
    let _moved = with_worker(|worker| {
        let config = &worker.shared().config;
        config.pin.then(|| config.processors.lend())
    });
    start()
}
