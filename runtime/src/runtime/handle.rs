//! Handles of a runtime, for any thread.

#![forbid(unsafe_code)]

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::api::builder::Builder;
use crate::api::join_handle::JoinHandle;
use crate::runtime::run;
use crate::scheduler::current;
use crate::scheduler::shared::Shared;

/// Spawns and runs tasks of a runtime from any thread.
///
/// A handle does not keep the runtime from ending.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// let runtime = fibra::Runtime::builder().workers(2).build()?;
/// let handle = runtime.handle();
/// let outside = std::thread::spawn(move || {
///     assert_eq!(handle.workers(), 2);
///     handle.spawn(|| 1).join().unwrap() + handle.run(|| 2) + handle.spawn_blocking(|| 3).join().unwrap()
/// });
/// assert_eq!(outside.join().unwrap(), 6);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Handle { shared: Arc::clone(shared) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the runtime of the calling thread: of a worker, or of a blocking pool.
    ///
    /// # Panics
    /// On any other thread; [`try_current`](Handle::try_current) answers `None` there.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// assert_eq!(fibra::Handle::current().workers(), 1);
    /// assert_eq!(fibra::Handle::current().stalls(), 0);
    /// assert!(std::thread::spawn(|| fibra::Handle::try_current().is_none()).join().unwrap());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn current() -> Handle {
        Self::try_current()
            .expect("this thread belongs to no runtime: start one with `fibra::run` or `Runtime::builder`")
    }

    /// Returns the runtime of the calling thread, if it belongs to one.
    pub fn try_current() -> Option<Handle> {
        current::runtime().map(|shared| Handle { shared })
    }

    /// Counts the stalls of that runtime.
    ///
    /// A stall is a task that holds its worker for longer than the
    /// [`stall_limit`](crate::runtime::builder::Builder::stall_limit); 0 without one.
    pub fn stalls(&self) -> u64 {
        self.shared.stalls()
    }

    /// Spawns a task on that runtime from outside; inside a task use [`spawn`](crate::spawn).
    ///
    /// On a runtime that is ending the handle answers `is_cancelled`, and the closure is dropped here.
    #[track_caller]
    pub fn spawn<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Builder::new().spawn_on(self, f)
    }

    /// Spawns a task on the worker with this number, where it starts and stays.
    ///
    /// It is for tasks that each worker needs one of; leave the placement of all others to the
    /// runtime.
    ///
    /// On a runtime that is ending the handle answers `is_cancelled`, and the closure is dropped here.
    ///
    /// # Panics
    /// If there is no worker of that number; they count from 0 to less than [`workers`](Handle::workers).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::thread;
    ///
    /// let runtime = fibra::Runtime::builder().workers(2).build()?;
    /// let thread = |worker| runtime.handle().spawn_on_worker(worker, || thread::current().id()).join().unwrap();
    /// assert_eq!(thread(1), thread(1));
    /// assert_ne!(thread(0), thread(1));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on_worker<F, T>(&self, worker: usize, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let workers = self.workers();
        assert!(worker < workers, "there is no worker {worker}: this runtime has {workers}, from 0 on");
        Builder::new().spawn_on_worker(&self.shared, worker, f)
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.shared.blocks.len()
    }

    /// Runs `f` on the blocking pool of that runtime.
    ///
    /// See [`spawn_blocking`](crate::spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Builder::new().spawn_blocking_on(self, f)
    }

    /// Runs `f` as a task of that runtime, and blocks the calling thread for its value.
    ///
    /// # Panics
    /// Resumes a panic of `f`. Panics when called from a task, which must not block its worker, and
    /// when the runtime is shut down meanwhile, so that there is no value.
    #[track_caller]
    pub fn run<F, T>(&self, f: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        run::run_on(&self.shared, f)
    }
}

// Its state changes under locks and by atomics, so a panic between two uses leaves it whole.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("workers", &self.workers()).finish_non_exhaustive()
    }
}
