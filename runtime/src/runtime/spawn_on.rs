//! Spawning on a runtime from elsewhere, by its handle.

#![forbid(unsafe_code)]

use crate::api::builder::Builder;
use crate::api::join_handle::JoinHandle;
use crate::runtime::handle::Handle;
use crate::tasks::header::Nature;

impl Builder {
    /// Spawns the task on the runtime of `handle`.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// let named = |name| fibra::task::Builder::new().name(name);
    /// assert_eq!(named("a").spawn_on(&runtime.handle(), || 1).join().unwrap(), 1);
    /// assert_eq!(named("b").spawn_blocking_on(&runtime.handle(), || 2).join().unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F, T>(self, handle: &Handle, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_on_runtime(handle.shared(), f)
    }

    /// Describes a main task of the runtime of `handle`, which a deadlock in virtual time cancels.
    #[doc(hidden)]
    pub fn main_of(handle: &Handle) -> Self {
        Builder::main(handle.shared().config.main_stack_size)
    }

    /// Runs `f` on the blocking pool of the runtime of `handle`.
    #[track_caller]
    pub fn spawn_blocking_on<F, T>(mut self, handle: &Handle, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.inherit();
        self.spawn_on_pool(handle.shared(), Nature::Blocking, f)
    }
}

/// Spawns an internal task on the runtime of `handle`.
///
/// It inherits nothing, so no code of users runs here. For this library alone: for tasks that serve
/// more than their spawner. The limit of tasks does not count it: its waiters may be all that the
/// limit allows.
#[doc(hidden)]
pub fn spawn_internal<F, T>(handle: &Handle, f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn_internal(handle.shared(), f)
}
