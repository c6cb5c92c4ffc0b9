//! Spawning on the runtime of the caller.

#![forbid(unsafe_code)]

use crate::api::builder::Builder;
use crate::api::builder::off_the_runtime;
use crate::api::join_handle::JoinHandle;
use crate::scheduler::current;
use crate::tasks::header::Nature;

/// Spawns a task on the current runtime.
///
/// `f` runs concurrently on any worker, and stays on the worker that started it.
///
/// Dropping the handle detaches the task.
///
/// # Panics
/// Panics off a runtime.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let sum = fibra::spawn(|| (1..=10).sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 55);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f)
}

/// Spawns a task on the current worker, where it stays.
///
/// `f` and its value need not be `Send`.
///
/// # Panics
/// Panics off a worker.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::{cell::Cell, rc::Rc};
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// let count = Rc::new(Cell::new(0));
/// let shared = Rc::clone(&count);
/// fibra::spawn_local(move || shared.set(1)).join().unwrap();
/// assert_eq!(count.get(), 1);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_local<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    Builder::new().spawn_local(f)
}

/// Runs `f` on a thread of the blocking pool, for calls that block a thread.
///
/// The handle may be dropped. To wait in place and to borrow, use [`unblock`](crate::unblock).
///
/// A closure that has started runs to its end, and the end of the runtime waits for it. The end of
/// the runtime drops a closure that has not started.
///
/// # Panics
/// Panics off a runtime.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let read = fibra::spawn_blocking(|| std::fs::read_to_string("/dev/null"));
/// assert_eq!(read.join().unwrap().unwrap(), "");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_blocking<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn_blocking(f)
}

/// Runs a system call that may never end, on threads of a second pool.
///
/// That pool has at most as many threads as [`spawn_blocking`] uses; further calls begin in order
/// of arrival. The end of the runtime does not wait for a call. For this library alone: a call runs
/// no code of users, which might count on being waited for, and inherits nothing of theirs.
/// Dropping the handle cancels a call that has not begun.
///
/// A task that must not be unwound gets its value at the end of the runtime, too; it must wait for
/// it.
///
/// # Panics
/// Panics off a runtime.
#[doc(hidden)]
#[track_caller]
pub fn spawn_call<F, T>(call: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let shared = current::runtime().unwrap_or_else(|| off_the_runtime("spawn_call"));
    Builder::helper().spawn_on_pool(&shared, Nature::Call, call)
}
