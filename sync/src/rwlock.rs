//! The typed half of the read-write lock: what users call.

mod raw;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra_runtime::time;
use lock_api::GuardNoSend;

pub use raw::RawRwLock;

type Untyped<T> = lock_api::RwLock<RawRwLock, T>;

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
/// Reads the value of an [`RwLock`] that it owns by an `Arc`.
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
/// Writes the value of an [`RwLock`] that it owns by an `Arc`.
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
/// Reads the value of an [`RwLock`] that it owns, and may become the writer.
pub type ArcRwLockUpgradableReadGuard<T> = lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;

/// Protects a value that many may read at once, or one may write.
///
/// Works between tasks, between plain threads, and between the two. A waiting task suspends and
/// leaves its thread to others. Locking is no cancellation point, and locking a free lock never
/// yields: a loop that polls the value keeps its worker from all other tasks. Wait for an event there.
///
/// Beside plain readers and writers there is one *upgradable* reader at a time: it reads beside the
/// others, and can become the writer without another write in between.
///
/// What is not listed here comes from `lock_api::RwLock`, which this derefs to, and from the guards.
///
/// # Fairness
/// Writers and upgradable readers are served first in, first out. An unlock hands the lock over, so no
/// arrival overtakes a waiter. Readers that [overtake](RwLock::read_recursive) writers without end
/// starve those writers, and all waiters behind them. There are two policies:
///
/// * **Phase-fair** ([`new`](RwLock::new)): a waiting writer blocks later readers. When it unlocks, all
///   waiting readers go in together, then the next writer. So a reader waits for at most one writer,
///   and a writer for the readers of one phase and the writers before it.
/// * **Writer first** ([`writer_first`](RwLock::writer_first)): a waiting writer goes before any later
///   reader. When the last writer has unlocked, all waiting readers go in together. Readers wait for as
///   long as writers follow each other.
///
/// # Deadlocks
/// * Reading twice in one task hangs if a writer arrives in between: the second read waits for the
///   writer, the writer for the first. A second read by [`read_recursive`](RwLock::read_recursive)
///   does not. Beside another guard, `bump`, `unlocked` and `unlocked_fair` of a read guard hang
///   likewise: they lock again behind the writer.
/// * Writing, or upgrading another guard, hangs while the task holds a plain read guard.
/// * A panic hook that waits blocks its thread: see [`Mutex`](crate::Mutex#deadlocks).
///
/// Panics on recursive locking by the exclusive or upgradable holder. The holder is the task that locked,
/// also when it gave the guard away: the task that got the guard may wait for itself undetected.
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
/// let reading = lock.upgradable_read();
/// if !reading.contains(&2) {
///     let mut writing = RwLockUpgradableReadGuard::upgrade(reading);
///     writing.push(2);
///     let reading = RwLockWriteGuard::downgrade(writing);
///     assert_eq!(*reading, [1, 2]);
/// }
/// ```
#[repr(transparent)]
pub struct RwLock<T: ?Sized>(Untyped<T>);

impl<T> RwLock<T> {
    /// Makes an unlocked phase-fair lock around `value`.
    pub const fn new(value: T) -> Self {
        RwLock(Untyped::new(value))
    }

    /// Makes an unlocked lock in which a waiting writer goes before later readers.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::RwLock;
    ///
    /// static SETTINGS: RwLock<(u32, u32)> = RwLock::writer_first((80, 24));
    /// SETTINGS.write().0 = 132;
    /// assert_eq!(*SETTINGS.read(), (132, 24));
    /// ```
    pub const fn writer_first(value: T) -> Self {
        RwLock(Untyped::from_raw(RawRwLock::writer_first(), value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading, beside other readers.
    ///
    /// Waits while a writer holds the lock or waits for it.
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// If the task holds the write lock, or the upgradable one and would have to wait: it would
    /// wait for itself. If there are 2^59 readers.
    ///
    /// # Deadlocks
    /// If the task reads already, and a writer has come to wait since: see
    /// [`read_recursive`](RwLock::read_recursive).
    ///
    /// # Examples
    /// ```
    /// let lock = fibra_sync::RwLock::new(1);
    /// let (first, second) = (lock.read(), lock.try_read().unwrap());
    /// assert_eq!(*first + *second, 2);
    /// assert!(lock.is_locked() && !lock.is_locked_exclusive() && lock.try_write().is_none());
    /// ```
    #[inline]
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read()
    }

    /// Returns true if [`try_read`](RwLock::try_read) would lock at this moment.
    pub(crate) fn admits_readers(&self) -> bool {
        // SAFETY: nothing is unlocked.
        unsafe { self.0.raw() }.admits_readers()
    }

    /// Locks for reading, if that needs no wait.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read()
    }

    /// Locks for reading, waiting at most for `timeout`.
    ///
    /// So the holder of the lock may call it, too.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// let lock = fibra_sync::RwLock::new(1);
    /// let writer = lock.try_write_for(Duration::from_millis(1)).unwrap();
    /// assert!(lock.try_read().is_none() && lock.try_read_for(Duration::from_millis(1)).is_none());
    /// drop(writer);
    /// assert_eq!(*lock.try_read_for(Duration::from_millis(1)).unwrap(), 1);
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read_for(timeout)
    }

    /// Locks for reading, waiting at most until `deadline`.
    ///
    /// So the holder of the lock may call it, too.
    #[inline]
    #[track_caller]
    pub fn try_read_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read_until(deadline)
    }

    /// Locks for reading, beside other readers and before a waiting writer.
    ///
    /// So a reader may read again. Waits while a writer holds the lock; once it waits it is served as by
    /// [`read`](RwLock::read). Each reader that overtakes a writer prolongs that writer's wait. A
    /// task that does not read already should call [`read`](RwLock::read).
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// As for [`read`](RwLock::read).
    ///
    /// # Examples
    /// ```
    /// let lock = fibra_sync::RwLock::new(1);
    /// let (outer, inner) = (lock.read(), lock.read_recursive());
    /// assert_eq!(*outer, *inner);
    /// ```
    #[inline]
    #[track_caller]
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        self.read_recursive_to(|| None).expect("without a deadline it is never late")
    }

    /// Locks for reading beside waiting writers, if no writer holds the lock.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let lock = fibra_sync::RwLock::new(1);
    /// let brief = Duration::from_millis(1);
    /// let reader = lock.try_read_until(Instant::now()).unwrap();
    /// let inner = lock.try_read_recursive().unwrap();
    /// assert_eq!(*reader, *inner);
    /// assert!(lock.try_read_recursive_for(brief).is_some());
    /// assert!(lock.try_read_recursive_until(Instant::now()).is_some());
    /// ```
    #[inline]
    pub fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, T>> {
        // SAFETY: nothing is unlocked.
        let reads = unsafe { self.0.raw() }.try_read_recursive();
        // SAFETY: it is locked for reading, for this guard.
        reads.then(|| unsafe { self.0.make_read_guard_unchecked(GuardNoSend::new()) })
    }

    /// Locks for reading beside waiting writers, waiting at most for `timeout`.
    #[inline]
    #[track_caller]
    pub fn try_read_recursive_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.read_recursive_to(|| time::deadline(timeout))
    }

    /// Locks for reading beside waiting writers, waiting at most until `deadline`.
    #[inline]
    #[track_caller]
    pub fn try_read_recursive_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T>> {
        self.read_recursive_to(|| Some(deadline))
    }

    #[inline]
    #[track_caller]
    fn read_recursive_to(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Option<RwLockReadGuard<'_, T>> {
        // SAFETY: nothing is unlocked.
        let guard = unsafe { self.0.raw() }.read_recursive_to(deadline)?;
        // SAFETY: it is locked for reading, for this guard.
        Some(unsafe { self.0.make_read_guard_unchecked(guard) })
    }

    /// Locks for writing, alone.
    ///
    /// Waits until all earlier holders and waiters have unlocked. Meanwhile later readers wait.
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// Panics if the task holds the write lock or the upgradable one: it would wait for itself.
    ///
    /// # Deadlocks
    /// If the task holds a plain read guard.
    ///
    /// # Examples
    /// ```
    /// let mut lock = fibra_sync::RwLock::new(1);
    /// *lock.write() += 1;
    /// let writer = lock.try_write().unwrap();
    /// assert!(lock.is_locked_exclusive() && lock.try_read().is_none());
    /// drop(writer);
    /// *lock.get_mut() += 1;
    /// assert_eq!(lock.into_inner(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write()
    }

    /// Locks for writing, if that needs no wait.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write()
    }

    /// Locks for writing, and waits no longer than `timeout`.
    ///
    /// When the time runs out, the readers that waited for this writer alone go in.
    #[inline]
    #[track_caller]
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write_for(timeout)
    }

    /// Locks for writing, and waits no longer than until `deadline`.
    #[inline]
    #[track_caller]
    pub fn try_write_until(&self, deadline: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write_until(deadline)
    }

    /// Locks for reading, beside plain readers, with the right to become the writer.
    ///
    /// Waits in one queue with the writers, while one of them or another upgradable reader is before it.
    /// An upgrade goes before all waiters; while it waits for the readers to unlock, later ones wait.
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// Panics if the task holds the write lock or the upgradable one: it would wait for itself.
    ///
    /// # Deadlocks
    /// To upgrade hangs if the task holds a plain read guard too.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::{RwLock, RwLockUpgradableReadGuard};
    /// let lock = RwLock::new(1);
    /// let guard = lock.upgradable_read();
    /// assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
    /// *RwLockUpgradableReadGuard::upgrade(guard) = 2;
    /// assert_eq!(*lock.read(), 2);
    /// ```
    #[inline]
    #[track_caller]
    pub fn upgradable_read(&self) -> RwLockUpgradableReadGuard<'_, T> {
        self.0.upgradable_read()
    }

    /// Locks for upgradable reading, if that needs no wait.
    #[inline]
    pub fn try_upgradable_read(&self) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read()
    }

    /// Locks for upgradable reading, waiting at most for `timeout`.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let lock = fibra_sync::RwLock::new(1);
    /// let brief = Duration::from_millis(1);
    /// let reader = lock.try_upgradable_read_for(brief).unwrap();
    /// assert!(lock.try_upgradable_read_until(Instant::now()).is_none());
    /// assert!(lock.try_write_for(brief).is_none());
    /// drop(reader);
    /// *lock.try_write_until(Instant::now()).unwrap() = 2;
    /// assert_eq!(*lock.read(), 2);
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_upgradable_read_for(&self, timeout: Duration) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read_for(timeout)
    }

    /// Locks for upgradable reading, waiting at most until `deadline`.
    #[inline]
    #[track_caller]
    pub fn try_upgradable_read_until(&self, deadline: Instant) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read_until(deadline)
    }

    /// Returns the value for changes: `&mut self` proves that the lock is free.
    pub const fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Returns true if the lock is held at this moment.
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// Returns true if a writer holds the lock at this moment.
    pub fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

/// Guards that hold a share in the lock and borrow nothing.
impl<T: ?Sized> RwLock<T> {
    /// Locks for reading, with a guard that owns the lock by its `Arc`.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// let lock = Arc::new(fibra_sync::RwLock::new(1));
    /// let guard = lock.read_arc();
    /// assert!(lock.try_write_arc().is_none() && lock.try_read_arc().is_some());
    /// drop(guard);
    /// *lock.write_arc() = 2;
    /// assert_eq!(*lock.upgradable_read_arc(), 2);
    /// ```
    #[track_caller]
    pub fn read_arc(self: &Arc<Self>) -> ArcRwLockReadGuard<T> {
        untyped(self).read_arc()
    }

    /// Locks for reading with an owned guard, if that needs no wait.
    pub fn try_read_arc(self: &Arc<Self>) -> Option<ArcRwLockReadGuard<T>> {
        untyped(self).try_read_arc()
    }

    /// Locks for reading with an owned guard, waiting at most for `timeout`.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use std::time::{Duration, Instant};
    /// let lock = Arc::new(fibra_sync::RwLock::new(1));
    /// let brief = Duration::from_millis(1);
    /// let reader = lock.try_read_arc_for(brief).unwrap();
    /// assert!(lock.try_write_arc_for(brief).is_none());
    /// assert!(lock.try_write_arc_until(Instant::now()).is_none());
    /// let upgradable = lock.try_upgradable_read_arc().unwrap();
    /// assert!(lock.try_upgradable_read_arc_for(brief).is_none());
    /// assert!(lock.try_upgradable_read_arc_until(Instant::now()).is_none());
    /// assert_eq!((*reader, *upgradable), (1, *lock.try_read_arc_until(Instant::now()).unwrap()));
    /// ```
    #[track_caller]
    pub fn try_read_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcRwLockReadGuard<T>> {
        untyped(self).try_read_arc_for(timeout)
    }

    /// Locks for reading with an owned guard, waiting at most until `deadline`.
    #[track_caller]
    pub fn try_read_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcRwLockReadGuard<T>> {
        untyped(self).try_read_arc_until(deadline)
    }

    /// Locks for writing, with a guard that owns the lock by its `Arc`.
    #[track_caller]
    pub fn write_arc(self: &Arc<Self>) -> ArcRwLockWriteGuard<T> {
        untyped(self).write_arc()
    }

    /// Locks for writing with an owned guard, if that needs no wait.
    pub fn try_write_arc(self: &Arc<Self>) -> Option<ArcRwLockWriteGuard<T>> {
        untyped(self).try_write_arc()
    }

    /// Locks for writing with an owned guard, waiting at most for `timeout`.
    #[track_caller]
    pub fn try_write_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcRwLockWriteGuard<T>> {
        untyped(self).try_write_arc_for(timeout)
    }

    /// Locks for writing with an owned guard, waiting at most until `deadline`.
    #[track_caller]
    pub fn try_write_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcRwLockWriteGuard<T>> {
        untyped(self).try_write_arc_until(deadline)
    }

    /// Locks for upgradable reading, with a guard that owns the lock by its `Arc`.
    #[track_caller]
    pub fn upgradable_read_arc(self: &Arc<Self>) -> ArcRwLockUpgradableReadGuard<T> {
        untyped(self).upgradable_read_arc()
    }

    /// Locks for upgradable reading with an owned guard, if that needs no wait.
    pub fn try_upgradable_read_arc(self: &Arc<Self>) -> Option<ArcRwLockUpgradableReadGuard<T>> {
        untyped(self).try_upgradable_read_arc()
    }

    /// Locks for upgradable reading with an owned guard, at most for `timeout`.
    #[track_caller]
    pub fn try_upgradable_read_arc_for(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Option<ArcRwLockUpgradableReadGuard<T>> {
        untyped(self).try_upgradable_read_arc_for(timeout)
    }

    /// Locks for upgradable reading with an owned guard, at most until `deadline`.
    #[track_caller]
    pub fn try_upgradable_read_arc_until(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Option<ArcRwLockUpgradableReadGuard<T>> {
        untyped(self).try_upgradable_read_arc_until(deadline)
    }
}

/// Shares in the lock as `lock` does, for as long as `lock` is not touched.
fn untyped<T: ?Sized>(lock: &Arc<RwLock<T>>) -> ManuallyDrop<Arc<Untyped<T>>> {
    let pointer = Arc::as_ptr(lock) as *const Untyped<T>;
    // SAFETY: the pointer is that of an `Arc` of a type that is transparent over this one, so size and alignment are the
    // same. The count is `lock`'s, which outlives its users here, and is never given back through this one.
    ManuallyDrop::new(unsafe { Arc::from_raw(pointer) })
}

impl<T: ?Sized> Deref for RwLock<T> {
    type Target = lock_api::RwLock<RawRwLock, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
