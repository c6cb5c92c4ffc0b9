//! A mutual exclusion lock that knows its owner.
//!
//! | file | holds |
//! | --- | --- |
//! | `mutex/state.rs` | the word: owner and flags; pure, modelled |
//! | `mutex/core.rs` | the word and the wait queue; modelled |
//! | `mutex/raw.rs` | how callers wait, and the hand-off policies |

pub(crate) mod core;
pub(crate) mod raw;
pub(crate) mod state;
#[cfg(test)]
mod tests;

pub use raw::{RawFairMutex, RawMutex, ThreadAndTaskId};

/// Protects a value that one task or thread at a time uses.
///
/// A caller that finds it locked waits: a task leaves its worker to others, a plain thread blocks. The interface is that of
/// [`lock_api::Mutex`]: `lock`, `try_lock`, `try_lock_for`, `try_lock_until`, guards that map, guards of an `Arc`, and
/// `unlock_fair` and `bump` on a guard. It takes 24 bytes beside the value.
///
/// # Fairness
/// An unlock wakes the longest waiter, which competes with arrivals: a short section is locked again and again without a
/// switch. A waiter that loses goes back to the front of the queue and is bypassed no more: the next unlock on its worker
/// hands the mutex over to it, and one on another worker or thread does so after about a millisecond.
/// `MutexGuard::unlock_fair` hands over at once.
///
/// A woken waiter may be kept from the mutex by a task that computes on its worker. Until it comes the mutex is free for
/// arrivals. A timed attempt looks for the mutex once more before it gives up. An unlock wakes the next waiter as well
/// when the last one has not come within about a millisecond. Where unlocks follow each other more quickly, every 64th
/// looks at the time; the first few unlocks after the arrival of a waiter look, too.
///
/// # Cost
/// A free mutex takes one locked instruction to lock and one to unlock.
///
/// # Cancellation
/// Not a cancellation point: locks are needed for cleaning up. A deadline around a lock does not end it either; the timed forms
/// have their own.
///
/// # Panics
/// `lock` panics if the caller already holds the mutex; the message names the task. A caller that has passed its guard on
/// counts as the holder until the guard is dropped. `try_lock` fails then. The timed forms wait out their time, unless it
/// is so long that there is no deadline.
///
/// # Deadlocks
/// A guard that is leaked leaves the mutex locked for ever. The holder is known by an address. So once the task or thread
/// that leaked the guard has ended, a later one at the same address may look like the holder. Its `lock` then panics
/// instead of waiting for ever.
///
/// Two tasks that wait for each other's mutex hang. So does a task that locks a mutex whose guard it has got from another
/// task and still holds.
///
/// A panic hook runs before its task unwinds, with all that the task has locked, and a wait inside the hook blocks the
/// thread. If the hook locks what a task of that worker holds, it hangs, and the worker with it. Use `try_lock` there, or a
/// std mutex that no task holds over a wait or a panic.
///
/// # Differences from std
/// No poisoning: a task that panics with the mutex locked unlocks it, and the next owner finds the value as it was left. So, as
/// parking_lot's, a mutex is not `RefUnwindSafe`, nor is a reference to one `UnwindSafe`. A closure for `catch_unwind` that
/// uses one needs `AssertUnwindSafe`.
///
/// There is no `async` form: the owner is a task or a thread, and a future is neither. See [`Semaphore`](crate::Semaphore), whose
/// permits may be held over an await.
///
/// A guard may be held while the task sleeps or yields. It is not `Send`, but another task of the same thread may get it
/// through an `Rc` and drop it, which unlocks.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// let count = Arc::new(sync::Mutex::new(0));
/// let adders = [(); 3].map(|()| {
///     let count = Arc::clone(&count);
///     fibra::spawn(move || *count.lock() += 1)
/// });
/// adders.map(|adder| adder.join().unwrap());
/// assert_eq!(*count.lock(), 3);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// Unlocks a [`Mutex`] when dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// Guards a part of the value of a [`Mutex`].
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A [`Mutex`] whose every unlock hands over to the longest waiter, as `MutexGuard::unlock_fair` does.
///
/// A hot lock then goes to another task at each unlock, with a switch each time, which takes many times longer. The rest is
/// as for [`Mutex`]; a [`Condvar`](crate::Condvar) works with that one only.
///
/// # Examples
/// ```
/// use fibra_sync::{FairMutex, FairMutexGuard, MappedFairMutexGuard};
/// let pair = FairMutex::new((1, 2));
/// let part: MappedFairMutexGuard<'_, i32> = FairMutexGuard::map(pair.lock(), |pair| &mut pair.1);
/// assert!(*part == 2 && pair.try_lock().is_none());
/// ```
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;

/// Unlocks a [`FairMutex`] when dropped.
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;

/// Guards a part of the value of a [`FairMutex`].
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;
