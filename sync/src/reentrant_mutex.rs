//! A mutex that its owner may lock again.

#![forbid(unsafe_code)]

use crate::mutex::RawMutex;

pub use crate::mutex::ThreadAndTaskId;

/// Protects a value that one owner at a time uses and may lock again.
///
/// The owner is a task or a thread. It may hold several guards, so they give shared access only: a
/// [`Cell`](std::cell::Cell) or [`RefCell`](std::cell::RefCell) inside takes writes. The interface is that of
/// [`lock_api::ReentrantMutex`]. [`Mutex`](crate::Mutex) is smaller and faster, for a lock that is never taken twice.
///
/// # Fairness
/// That of [`Mutex`](crate::Mutex#fairness).
///
/// # Cancellation
/// Not a cancellation point.
///
/// # Deadlocks
/// It is free again once every guard was dropped; a leaked guard leaves it locked for ever. A task that holds the guard of
/// another task, and locks, waits for itself. In a panic hook the caller counts as its thread and not as its task, which
/// may hold the lock: see [`Mutex`](crate::Mutex#deadlocks).
///
/// # Differences from std
/// No poisoning, and so not `RefUnwindSafe`, as for [`Mutex`](crate::Mutex#differences-from-std). It belongs to a task and
/// not to the thread that runs it, so a guard may be held over a wait. A guard is not `Send`, but another task of the same
/// thread may get it through an `Rc` and drop it, which gives up one lock of the owner. The owner stays the task that locked:
/// the guard does not let the other task lock again.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// use std::cell::Cell;
/// let depth = sync::ReentrantMutex::new(Cell::new(0));
/// let outer = depth.lock();
/// outer.set(1);
/// let inner = depth.lock();
/// inner.set(inner.get() + 1);
/// assert_eq!(outer.get(), 2);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, ThreadAndTaskId, T>;

/// Names [`ReentrantMutex`] as std does.
pub type ReentrantLock<T> = ReentrantMutex<T>;

/// Names [`ReentrantMutexGuard`] as std does.
pub type ReentrantLockGuard<'a, T> = ReentrantMutexGuard<'a, T>;

/// Gives up one lock of a [`ReentrantMutex`] when dropped.
///
/// # Examples
/// ```
/// use fibra_sync::{ArcReentrantMutexGuard, MappedReentrantMutexGuard};
/// use fibra_sync::{RawMutex, ReentrantMutex, ReentrantMutexGuard, ThreadAndTaskId};
/// use std::sync::Arc;
/// let pair = Arc::new(ReentrantMutex::new((1, 2)));
/// let part: MappedReentrantMutexGuard<'_, i32> = ReentrantMutexGuard::map(pair.lock(), |pair| &pair.1);
/// let owned: ArcReentrantMutexGuard<RawMutex, ThreadAndTaskId, (i32, i32)> = pair.lock_arc();
/// assert_eq!((*part, *owned), (2, (1, 2)));
/// ```
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, ThreadAndTaskId, T>;

/// Guards a part of the value of a [`ReentrantMutex`].
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, ThreadAndTaskId, T>;
