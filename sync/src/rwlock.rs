//! The read-write lock that users see: the types of `lock_api` over our raw lock.
//!
//! | file | holds |
//! | --- | --- |
//! | `rwlock/state.rs` | the word, the queue, and which waiter goes next; modelled |
//! | `rwlock/raw.rs` | how callers wait, and the owner |

mod raw;
mod state;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use lock_api::GuardNoSend;

use crate::budget;
use crate::wait;

pub use raw::RawRwLock;

/// Protects a value that many may read at once, or one may write.
///
/// Works between tasks, between plain threads, and between the two. A waiting task suspends and
/// leaves its thread to others. Each attempt to lock and each look counts against the [operation
/// budget](crate#the-operation-budget), whether the lock is free or not.
///
/// Beside plain readers and writers there is one *upgradable* reader at a time: it reads beside the
/// others, and can become the writer without another write in between.
///
/// The interface is that of [`lock_api::RwLock`]: `read`, `write`, `upgradable_read`, with `try_` before them and `_for` or
/// `_until` behind, guards that map, guards of an `Arc`, `downgrade`, `unlock_fair` and `bump`. [`RwLockExt`] adds reads
/// that a reader may take again.
///
/// # Fairness
/// Writers and upgradable readers are served first in, first out. An unlock hands the lock over, so no
/// arrival overtakes a waiter, with one exception. Where more than two wait, and the next ones run on another worker or
/// are threads, the unlock wakes them to compete: until they run, which takes microseconds, arrivals may lock. A waiter
/// that was woken in vain is handed the lock a millisecond later. Fair unlocks and `bump` always hand over.
///
/// Readers that [overtake](RwLockExt::read_recursive) writers without end
/// starve those writers, and all waiters behind them. There are two policies:
///
/// * **Phase-fair** (`new`): a waiting writer blocks later readers. When it unlocks, all
///   waiting readers go in together, then the next writer. So a reader waits for at most one writer,
///   and a writer for the readers of one phase and the writers before it. Arrivals that compete add a millisecond.
/// * **Writer first** ([`writer_first`](RwLockExt::writer_first)): a waiting writer goes before any later
///   reader. When the last writer has unlocked, all waiting readers go in together. Readers wait for as
///   long as writers follow each other.
///
/// A reader waits while a writer holds the lock or waits for it. A writer waits until all earlier holders and waiters have
/// unlocked; when its time runs out, the readers that waited for this writer alone go in. An upgradable reader waits in one
/// queue with the writers. An upgrade goes before all waiters; while it waits for the readers to unlock, later ones wait.
///
/// # Cancellation
/// Not a cancellation point: the wait goes on when the task is cancelled. The timed forms have deadlines of their own.
///
/// # Panics
/// `write` and `upgradable_read` panic if the caller holds the write lock or the upgradable one: they would wait for
/// themselves. `read` panics if the caller holds the write lock, or the upgradable one and would have to wait. The message
/// names the task. The `try_` forms fail instead, and the timed ones wait out their time. All forms that may wait panic if
/// there are 2^59 readers.
///
/// The holder is the task that locked, also when it gave the guard away: the task that got the guard may wait for itself
/// undetected.
///
/// # Deadlocks
/// * Reading twice in one task hangs if a writer arrives in between: the second read waits for the
///   writer, the writer for the first. A second read by [`read_recursive`](RwLockExt::read_recursive)
///   does not. Beside another guard, `bump`, `unlocked` and `unlocked_fair` of a read guard hang
///   likewise: they lock again behind the writer.
/// * Writing, or upgrading another guard, hangs while the task holds a plain read guard.
/// * A panic hook that waits blocks its thread: see [`Mutex`](crate::Mutex#deadlocks).
///
/// # Differences from std
/// There is no poisoning: a panic of a writer unlocks, and the value stays as it is. So a lock is not
/// `RefUnwindSafe`; see [`Mutex`](crate::Mutex#differences-from-std), also for why there is no `async` form.
///
/// A guard may be held while the task sleeps or yields. Another task of the same thread may use and drop
/// it, through an `Rc`. It cannot be sent:
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// let lock = fibra_sync::RwLock::new(0);
/// send(lock.read());
/// ```
///
/// # Examples
/// ```
/// use fibra_sync::{RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
///
/// let lock = RwLock::new(vec![1]);
/// {
///     let (one, other) = (lock.read(), lock.read());
///     assert_eq!(*one, *other);
/// }
/// {
///     let (writer, reader) = (lock.try_write().unwrap(), lock.try_read());
///     assert!(lock.is_locked_exclusive() && reader.is_none());
///     # drop(writer);
/// }
/// let reading = lock.upgradable_read();
/// if !reading.contains(&2) {
///     let mut writing = RwLockUpgradableReadGuard::upgrade(reading);
///     writing.push(2);
///     let reading = RwLockWriteGuard::downgrade(writing);
///     assert_eq!(*reading, [1, 2]);
/// }
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// Reads the value of an [`RwLock`], and unlocks when dropped.
///
/// # Examples
/// ```
/// use fibra_sync::{MappedRwLockReadGuard, MappedRwLockWriteGuard};
/// use fibra_sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
/// let pair = RwLock::new((1, 2));
/// let mut part: MappedRwLockWriteGuard<'_, i32> = RwLockWriteGuard::map(pair.write(), |pair| &mut pair.1);
/// *part = 3;
/// drop(part);
/// let part: MappedRwLockReadGuard<'_, i32> = RwLockReadGuard::map(pair.read(), |pair| &pair.1);
/// assert_eq!(*part, 3);
/// ```
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Writes the value of an [`RwLock`], and unlocks when dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Reads the value of an [`RwLock`], and may become the writer.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// Reads a part of the value of an [`RwLock`], and unlocks when dropped.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// Writes a part of the value of an [`RwLock`], and unlocks when dropped.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// Adds to [`RwLock`] what `lock_api` has no name for: the choice of the policy, and recursive reads.
///
/// # Examples
/// ```
/// use fibra_sync::{RwLock, RwLockExt};
/// let lock = RwLock::new(1);
/// let (outer, inner) = (lock.read(), lock.read_recursive());
/// assert_eq!(*outer, *inner);
/// ```
pub trait RwLockExt {
    /// The type of the value.
    type Value: ?Sized;

    /// Makes an unlocked lock in which a waiting writer goes before later readers.
    ///
    /// In a constant or a static take `RwLock::from_raw(RawRwLock::writer_first(), value)`.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::{RawRwLock, RwLock, RwLockExt};
    ///
    /// static SETTINGS: RwLock<(u32, u32)> = RwLock::from_raw(RawRwLock::writer_first(), (80, 24));
    /// SETTINGS.write().0 = 132;
    /// assert_eq!(*SETTINGS.read(), (132, 24));
    /// assert_eq!(*RwLock::writer_first(1).read(), 1);
    /// ```
    fn writer_first(value: Self::Value) -> Self
    where
        Self: Sized,
        Self::Value: Sized;

    /// Locks for reading, beside other readers and before a waiting writer.
    ///
    /// So a reader may read again. Waits while a writer holds the lock; once it waits it is served as
    /// by `read`. Each reader that overtakes a writer prolongs that writer's wait. A task that does
    /// not read already should call `read`.
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// As for `read`: see [`RwLock`](RwLock#panics).
    #[track_caller]
    fn read_recursive(&self) -> RwLockReadGuard<'_, Self::Value>;

    /// Locks for reading beside waiting writers, if no writer holds the lock.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::{RwLock, RwLockExt};
    /// use std::time::{Duration, Instant};
    /// let lock = RwLock::new(1);
    /// let brief = Duration::from_millis(1);
    /// let reader = lock.try_read_until(Instant::now()).unwrap();
    /// let inner = lock.try_read_recursive().unwrap();
    /// assert_eq!(*reader, *inner);
    /// assert!(lock.try_read_recursive_for(brief).is_some());
    /// assert!(lock.try_read_recursive_until(Instant::now()).is_some());
    /// ```
    fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, Self::Value>>;

    /// Locks for reading beside waiting writers, waiting at most for `timeout`.
    #[track_caller]
    fn try_read_recursive_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, Self::Value>>;

    /// Locks for reading beside waiting writers, waiting at most until `deadline`.
    #[track_caller]
    fn try_read_recursive_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, Self::Value>>;
}

impl<T: ?Sized> RwLockExt for RwLock<T> {
    type Value = T;

    fn writer_first(value: T) -> Self
    where
        T: Sized,
    {
        RwLock::from_raw(RawRwLock::writer_first(), value)
    }

    #[inline]
    #[track_caller]
    fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        wait::charge();
        guard_read(self, |raw| raw.read_recursive_to(|| None)).expect("without a deadline it is never late")
    }

    #[inline]
    fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, T>> {
        wait::charge();
        guard_read(self, RawRwLock::try_read_recursive)
    }

    #[inline]
    #[track_caller]
    fn try_read_recursive_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        let deadline = budget::charge_within(timeout);
        guard_read(self, |raw| raw.read_recursive_to(deadline))
    }

    #[inline]
    #[track_caller]
    fn try_read_recursive_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T>> {
        wait::charge();
        guard_read(self, |raw| raw.read_recursive_to(|| Some(deadline)))
    }
}

/// Takes a guard for a read that `lock_read` has locked, if it has.
#[inline]
#[track_caller]
fn guard_read<T: ?Sized>(
    lock: &RwLock<T>,
    lock_read: impl FnOnce(&RawRwLock) -> Option<GuardNoSend>,
) -> Option<RwLockReadGuard<'_, T>> {
    // SAFETY: `lock_read` unlocks nothing.
    let guard = lock_read(unsafe { lock.raw() })?;
    // SAFETY: it has locked for reading, for this guard.
    Some(unsafe { lock.make_read_guard_unchecked(guard) })
}

/// Locks for reading if that needs no wait, inside the poll of a future, where the task must not yield.
pub(crate) fn try_read_in_poll<T: ?Sized>(lock: &RwLock<T>) -> Option<RwLockReadGuard<'_, T>> {
    guard_read(lock, RawRwLock::try_read)
}

/// Returns true if `try_read` would lock at this moment.
pub(crate) fn admits_readers<T: ?Sized>(lock: &RwLock<T>) -> bool {
    // SAFETY: nothing is unlocked.
    unsafe { lock.raw() }.admits_readers()
}
