//! A mutual exclusion lock that knows its owner.
//!
//! | file | holds |
//! | --- | --- |
//! | `mutex/state.rs` | whose the lock is, and who is to be woken; pure, modelled |
//! | `mutex/line.rs` | the state and the list of those who wait; modelled |
//! | `mutex/raw.rs` | how callers wait, and when an unlock hands over |

pub(crate) mod line;
pub(crate) mod raw;
pub(crate) mod state;

pub use raw::RawMutex;

/// Protects a value that tasks and threads use one at a time.
///
/// A caller that finds it locked waits: a task leaves its worker to others, a plain thread blocks. The interface is that of
/// [`lock_api::Mutex`]: `lock`, `try_lock`, `try_lock_for`, `try_lock_until`, guards that map, guards of an `Arc`, and
/// `unlock_fair` and `bump` on a guard. 24 bytes beside the value.
///
/// # Fairness
/// Waiters are woken in the order in which they came, the longest first, and compete with whoever comes by: a short section
/// is locked again and again without a switch. One that is woken and comes too late goes back to the front, and is bypassed
/// no more: the next unlock on its worker hands the lock over to it, one on another worker or thread does so after about a
/// millisecond. `MutexGuard::unlock_fair` hands over at once.
///
/// # Cost
/// A lock that is free takes one locked instruction. Its unlock takes another one, until nobody has waited in 16,384 unlocks: from
/// then on, on Linux, it takes none, and the next one who waits makes every thread of the process pass a fence instead, in a
/// system call of some microseconds (`membarrier`). A sandbox that is closed later has to let that call through, or the process ends
/// with a message.
///
/// # Cancellation
/// Not a cancellation point: locks are needed for cleaning up. A deadline around a lock does not end it either; the timed forms
/// have their own.
///
/// # Panics
/// `lock` panics when the calling task or thread has it locked already, for it would wait for itself for ever; the message
/// names the task. That holds for who has given its guard away, too, until the guard is dropped. `try_lock` just fails then,
/// and the timed forms wait out their time, unless it is so long that there is no deadline.
///
/// # Deadlocks
/// A guard that is forgotten leaves the lock locked for ever. So do two tasks of which each waits for the other's lock, and one
/// that locks what it holds by a guard that another task has passed to it.
///
/// A panic hook runs before its task unwinds, with all that the task has locked, and a wait inside it blocks the thread. So one
/// that locks what its own task holds, or another one of that worker, hangs without a word, and the worker with it. Use
/// `try_lock` there, or a std mutex that no task holds over a wait or a panic.
///
/// # Differences from std
/// No poisoning: a task that panics with the lock held unlocks it, and the next one finds the value as it was left. So, as
/// parking_lot's, a mutex is not `RefUnwindSafe`, nor is a reference to one `UnwindSafe`: what goes through `catch_unwind` with it
/// says by `AssertUnwindSafe` that it can do with such a value.
///
/// There is no `async` form: the owner is a task or a thread, and a future is neither. See [`Semaphore`](crate::Semaphore), whose
/// permits may be held over an await.
///
/// A guard may be held while the task sleeps or yields, and may be dropped by another task of the same thread (it is
/// not `Send`, but reaches one through an `Rc`): whoever drops it unlocks.
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

/// The guard of a part of what a [`Mutex`] protects.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A guard that owns its [`Mutex`] by an `Arc` instead of borrowing it.
pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawMutex, T>;
