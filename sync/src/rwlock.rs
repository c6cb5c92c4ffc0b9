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

/// Shared access to the value of an [`RwLock`], until dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The access of a writer to the value of an [`RwLock`], until dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Shared access to the value of an [`RwLock`] that may become a writer's, until dropped.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// Shared access to a part of the value of an [`RwLock`], until dropped.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// The access of a writer to a part of the value of an [`RwLock`], until dropped.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
/// As [`RwLockReadGuard`], with a share in the lock.
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
/// As [`RwLockWriteGuard`], with a share in the lock.
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
/// As [`RwLockUpgradableReadGuard`], with a share in the lock.
pub type ArcRwLockUpgradableReadGuard<T> = lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;

/// A value that many may read at once, or one may write.
///
/// Works between tasks, between plain threads, and between the two. A task that must wait leaves its thread to others.
/// To lock is no cancellation point, and who finds the lock free does not yield: a loop that reads a value over and over
/// until it changes keeps its worker from all others. Wait for an event instead.
///
/// Besides plain readers and writers there is one *upgradable* reader at a time: it reads beside the others and can become
/// the writer without anybody writing in between.
///
/// What is not listed here comes from `lock_api::RwLock`, which this derefs to, and from the guards.
///
/// # Fairness
/// Nobody starves, but for writers (and upgrades) past whom readers [go](RwLock::read_recursive) without end, and all who
/// wait behind those. Two policies are to be had:
///
/// * **Phase-fair** ([`new`](RwLock::new)): a writer that waits closes the door to later readers. When it leaves, all
///   readers that wait at that moment go in together, then the next writer. So a reader waits for one writer at the most, and
///   a writer for the readers of one phase and the writers before it.
/// * **Writer first** ([`writer_first`](RwLock::writer_first)): a writer that waits goes before any reader that comes
///   later. When the last writer has left, all readers that wait go in together. Readers wait for as long as writers
///   follow each other.
///
/// Writers and upgradable readers go in in the order in which they came. Who leaves hands the lock over: nobody slips in
/// before those who wait.
///
/// # Deadlocks
/// * Reading twice in one task hangs if a writer comes to wait in between: the second read waits for the writer, the writer
///   for the first. A second read by [`read_recursive`](RwLock::read_recursive) does not. But where there is another guard,
///   `bump`, `unlocked` and `unlocked_fair` of a read guard do: they lock again behind the writer.
/// * So does writing, or upgrading another guard, while the task holds a plain read guard.
/// * A panic hook that waits blocks its thread: see [`Mutex`](crate::Mutex#deadlocks).
///
/// What the lock sees it does not wait for: a task that holds the write lock, or the upgradable one, and locks again where
/// it would have to wait, panics. The lock takes for the holder who has locked, also when the guard was given away, until
/// it is dropped: the task that has it now would wait for itself unseen.
///
/// # Differences from std
/// There is no poisoning: a panic of a writer unlocks, and the value stays as it was left. So a lock is not `RefUnwindSafe`, as
/// [`Mutex`](crate::Mutex#differences-from-std) tells.
///
/// There is no `async` form: see [`Mutex`](crate::Mutex#differences-from-std).
///
/// A guard of any kind may be held while the task sleeps or yields, and may be used and dropped by another task of the same
/// thread, which it reaches through an `Rc`: whoever drops it unlocks. It is not to be sent:
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

    /// Makes an unlocked lock around `value` in which a writer that waits goes before any reader that comes later.
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
    /// If the task holds the write lock, or the upgradable one and would have to wait: it would wait for itself. If there are
    /// 2^59 readers.
    ///
    /// # Deadlocks
    /// If the task reads already, and a writer has come to wait since: see [`read_recursive`](RwLock::read_recursive).
    #[inline]
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read()
    }

    /// True if [`try_read`](RwLock::try_read) would lock at this moment.
    pub(crate) fn admits_readers(&self) -> bool {
        // SAFETY: nothing is unlocked.
        unsafe { self.0.raw() }.admits_readers()
    }

    /// Locks for reading, if that needs no wait.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read()
    }

    /// As [`read`](RwLock::read), but waits no longer than `timeout`, and so may also be called by who holds the lock.
    #[inline]
    #[track_caller]
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read_for(timeout)
    }

    /// As [`read`](RwLock::read), but waits no longer than until `deadline`, and so may also be called by who holds the
    /// lock.
    #[inline]
    #[track_caller]
    pub fn try_read_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read_until(deadline)
    }

    /// Locks for reading, beside other readers, past a writer that waits: so who reads already may read again.
    ///
    /// Waits while a writer holds the lock; who has come to wait goes in as by [`read`](RwLock::read), past nobody. Each reader
    /// that goes past a writer keeps it waiting for longer, and those behind it; if such readers follow each other without
    /// end, so does the wait. Who does not read already is to call [`read`](RwLock::read).
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

    /// As [`read_recursive`](RwLock::read_recursive), if that needs no wait: if no writer holds the lock.
    #[inline]
    pub fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, T>> {
        // SAFETY: nothing is unlocked.
        let reads = unsafe { self.0.raw() }.try_read_recursive();
        // SAFETY: it is locked for reading, for this guard.
        reads.then(|| unsafe { self.0.make_read_guard_unchecked(GuardNoSend::new()) })
    }

    /// As [`read_recursive`](RwLock::read_recursive), but waits no longer than `timeout`.
    #[inline]
    #[track_caller]
    pub fn try_read_recursive_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.read_recursive_to(|| time::deadline(timeout))
    }

    /// As [`read_recursive`](RwLock::read_recursive), but waits no longer than until `deadline`.
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
    /// Waits until all who came before have left. Meanwhile later readers wait.
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// If the task holds the write lock or the upgradable one: it would wait for itself.
    ///
    /// # Deadlocks
    /// If the task holds a plain read guard.
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

    /// As [`write`](RwLock::write), but waits no longer than `timeout`. If that is too short, the readers go in that waited
    /// behind this writer only.
    #[inline]
    #[track_caller]
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write_for(timeout)
    }

    /// As [`try_write_for`](RwLock::try_write_for), until `deadline`.
    #[inline]
    #[track_caller]
    pub fn try_write_until(&self, deadline: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write_until(deadline)
    }

    /// Locks for reading, beside plain readers, with the right to become the writer.
    ///
    /// Waits in one line with the writers, while one of them or another upgradable reader is before it. An upgrade goes
    /// before all who wait; while it waits for the readers to leave, later ones wait behind it.
    ///
    /// # Cancellation
    /// None: the wait goes on when the task is cancelled.
    ///
    /// # Panics
    /// If the task holds the write lock or the upgradable one: it would wait for itself.
    ///
    /// # Deadlocks
    /// To upgrade hangs if the task holds a plain read guard too.
    #[inline]
    #[track_caller]
    pub fn upgradable_read(&self) -> RwLockUpgradableReadGuard<'_, T> {
        self.0.upgradable_read()
    }

    /// Locks for reading with the right to become the writer, if that needs no wait.
    #[inline]
    pub fn try_upgradable_read(&self) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read()
    }

    /// As [`upgradable_read`](RwLock::upgradable_read), but waits no longer than `timeout`.
    #[inline]
    #[track_caller]
    pub fn try_upgradable_read_for(&self, timeout: Duration) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read_for(timeout)
    }

    /// As [`upgradable_read`](RwLock::upgradable_read), but waits no longer than until `deadline`.
    #[inline]
    #[track_caller]
    pub fn try_upgradable_read_until(&self, deadline: Instant) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read_until(deadline)
    }

    /// The value, to which `&mut self` is the only way.
    pub const fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// True if somebody holds the lock at this moment.
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// True if somebody holds the lock for writing at this moment.
    pub fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

/// Guards that hold a share in the lock and borrow nothing.
impl<T: ?Sized> RwLock<T> {
    /// As [`read`](RwLock::read), with a guard that shares in the lock.
    #[track_caller]
    pub fn read_arc(self: &Arc<Self>) -> ArcRwLockReadGuard<T> {
        untyped(self).read_arc()
    }

    /// As [`try_read`](RwLock::try_read), with a guard that shares in the lock.
    pub fn try_read_arc(self: &Arc<Self>) -> Option<ArcRwLockReadGuard<T>> {
        untyped(self).try_read_arc()
    }

    /// As [`try_read_for`](RwLock::try_read_for), with a guard that shares in the lock.
    #[track_caller]
    pub fn try_read_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcRwLockReadGuard<T>> {
        untyped(self).try_read_arc_for(timeout)
    }

    /// As [`try_read_until`](RwLock::try_read_until), with a guard that shares in the lock.
    #[track_caller]
    pub fn try_read_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcRwLockReadGuard<T>> {
        untyped(self).try_read_arc_until(deadline)
    }

    /// As [`write`](RwLock::write), with a guard that shares in the lock.
    #[track_caller]
    pub fn write_arc(self: &Arc<Self>) -> ArcRwLockWriteGuard<T> {
        untyped(self).write_arc()
    }

    /// As [`try_write`](RwLock::try_write), with a guard that shares in the lock.
    pub fn try_write_arc(self: &Arc<Self>) -> Option<ArcRwLockWriteGuard<T>> {
        untyped(self).try_write_arc()
    }

    /// As [`try_write_for`](RwLock::try_write_for), with a guard that shares in the lock.
    #[track_caller]
    pub fn try_write_arc_for(self: &Arc<Self>, timeout: Duration) -> Option<ArcRwLockWriteGuard<T>> {
        untyped(self).try_write_arc_for(timeout)
    }

    /// As [`try_write_until`](RwLock::try_write_until), with a guard that shares in the lock.
    #[track_caller]
    pub fn try_write_arc_until(self: &Arc<Self>, deadline: Instant) -> Option<ArcRwLockWriteGuard<T>> {
        untyped(self).try_write_arc_until(deadline)
    }

    /// As [`upgradable_read`](RwLock::upgradable_read), with a guard that shares in the lock.
    #[track_caller]
    pub fn upgradable_read_arc(self: &Arc<Self>) -> ArcRwLockUpgradableReadGuard<T> {
        untyped(self).upgradable_read_arc()
    }

    /// As [`try_upgradable_read`](RwLock::try_upgradable_read), with a guard that shares in the lock.
    pub fn try_upgradable_read_arc(self: &Arc<Self>) -> Option<ArcRwLockUpgradableReadGuard<T>> {
        untyped(self).try_upgradable_read_arc()
    }

    /// As [`try_upgradable_read_for`](RwLock::try_upgradable_read_for), with a guard that shares in the lock.
    #[track_caller]
    pub fn try_upgradable_read_arc_for(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Option<ArcRwLockUpgradableReadGuard<T>> {
        untyped(self).try_upgradable_read_arc_for(timeout)
    }

    /// As [`try_upgradable_read_until`](RwLock::try_upgradable_read_until), with a guard that shares in the lock.
    #[track_caller]
    pub fn try_upgradable_read_arc_until(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Option<ArcRwLockUpgradableReadGuard<T>> {
        untyped(self).try_upgradable_read_arc_until(deadline)
    }
}

/// The same share in the same lock, for as long as `lock` is not touched.
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
