//! The mutex that its owner may lock again.

use std::num::NonZeroUsize;

use crate::mutex::RawMutex;
use crate::wait;

/// Tells the tasks and threads apart that lock a [`ReentrantMutex`].
pub struct ThreadAndTaskId(());

// SAFETY: the number of a task or thread differs from those of all others, also of those that have ended.
unsafe impl lock_api::GetThreadId for ThreadAndTaskId {
    const INIT: Self = ThreadAndTaskId(());

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        // A pointer of 32 bits does not hold all numbers; one that is cut off may be another's.
        wait::owner().try_into().expect("numbers fit into a usize")
    }
}

/// Protects a value that one task or thread at a time uses, which may lock it again while it has it.
///
/// Since the owner may have several guards they give shared access only; a [`Cell`](std::cell::Cell) or
/// [`RefCell`](std::cell::RefCell) inside takes writes. The interface is that of [`lock_api::ReentrantMutex`]. Where a lock is
/// never taken twice [`Mutex`](crate::Mutex) is smaller and faster.
///
/// # Fairness
/// As of [`Mutex`](crate::Mutex).
///
/// # Cancellation
/// Not a cancellation point.
///
/// # Deadlocks
/// It is free again when as many guards were dropped as were given; a forgotten one leaves it locked for ever. A task that has
/// the guard of another one, and locks, waits for itself. In a panic hook the
/// caller counts as its thread and not as its task, which may hold the lock: see [`Mutex`](crate::Mutex#deadlocks).
///
/// # Differences from std
/// No poisoning, and so not `RefUnwindSafe`, as [`Mutex`](crate::Mutex#differences-from-std). It belongs to a task and not to
/// the thread that runs it, so a guard may be held over a wait. It may be dropped by another task of the same thread, too (it
/// is not `Send`, but reaches one through an `Rc`), which gives up one lock of the owner. That stays the one who locked: the
/// other task does not get in again by the guard that it has, but waits.
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

/// Gives one lock of a [`ReentrantMutex`] up when dropped.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, ThreadAndTaskId, T>;

/// The guard of a part of what a [`ReentrantMutex`] protects.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, ThreadAndTaskId, T>;

/// A guard that owns its [`ReentrantMutex`] by an `Arc` instead of borrowing it.
pub type ArcReentrantMutexGuard<T> = lock_api::ArcReentrantMutexGuard<RawMutex, ThreadAndTaskId, T>;
