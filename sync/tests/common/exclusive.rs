//! One suite for all locks of one holder at a time: what a lock is, and the count that goes wrong when two are inside.
//!
//! Another lock joins by an `impl Exclusive` and a line of `suite!`.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

// Also for a suite, whose modules name the locks.
pub(crate) use fibra_sync::{AutoResetEvent, Mutex, ReentrantMutex, RwLock, Semaphore};
use fibra_sync::{
    Condvar, MutexGuard, ReentrantMutexGuard, RwLockExt, RwLockUpgradableReadGuard, RwLockWriteGuard,
    SemaphorePermit,
};

use crate::common::give_way;

/// A lock of one holder at a time.
pub(crate) trait Exclusive: Send + Sync + 'static {
    type Guard<'a>;

    /// The wait for it is a cancellation point. What that does is told elsewhere; here it is shielded where it matters.
    const IS_POINT: bool = false;

    fn new() -> Self;
    fn lock(&self) -> Self::Guard<'_>;
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>>;
}

impl Exclusive for Mutex<()> {
    type Guard<'a> = MutexGuard<'a, ()>;

    fn new() -> Self {
        Mutex::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.try_lock_for(timeout)
    }
}

/// Each unlock is a hand-over to the longest waiter.
pub(crate) struct HandedOver(Mutex<()>);

pub(crate) struct HandsOver<'a>(Option<MutexGuard<'a, ()>>);

impl Drop for HandsOver<'_> {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(MutexGuard::unlock_fair);
    }
}

impl Exclusive for HandedOver {
    type Guard<'a> = HandsOver<'a>;

    fn new() -> Self {
        HandedOver(Mutex::new(()))
    }

    fn lock(&self) -> Self::Guard<'_> {
        HandsOver(Some(self.0.lock()))
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.0.try_lock().map(|guard| HandsOver(Some(guard)))
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.0.try_lock_for(timeout).map(|guard| HandsOver(Some(guard)))
    }
}

impl Exclusive for ReentrantMutex<()> {
    type Guard<'a> = ReentrantMutexGuard<'a, ()>;

    fn new() -> Self {
        ReentrantMutex::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.try_lock_for(timeout)
    }
}

/// Its holder holds it twice.
pub(crate) struct LockedTwice(ReentrantMutex<()>);

impl Exclusive for LockedTwice {
    type Guard<'a> = [ReentrantMutexGuard<'a, ()>; 2];

    fn new() -> Self {
        LockedTwice(ReentrantMutex::new(()))
    }

    fn lock(&self) -> Self::Guard<'_> {
        [self.0.lock(), self.0.lock()]
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.0.try_lock().map(|first| [first, self.0.try_lock().expect("it is the caller's")])
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.0.try_lock_for(timeout).map(|first| [first, self.0.lock()])
    }
}

/// As one writer at a time.
impl Exclusive for RwLock<()> {
    type Guard<'a> = RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        RwLock::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.write()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_write()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.try_write_for(timeout)
    }
}

/// The other policy; only the type differs.
pub(crate) struct WriterFirst(RwLock<()>);

impl Exclusive for WriterFirst {
    type Guard<'a> = RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        WriterFirst(RwLock::writer_first(()))
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.0.write()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.0.try_write()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.0.try_write_for(timeout)
    }
}

/// As one upgradable reader at a time.
pub(crate) struct Upgradable(RwLock<()>);

impl Exclusive for Upgradable {
    type Guard<'a> = RwLockUpgradableReadGuard<'a, ()>;

    fn new() -> Self {
        Upgradable(RwLock::new(()))
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.0.upgradable_read()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.0.try_upgradable_read()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.0.try_upgradable_read_for(timeout)
    }
}

/// Of one permit.
impl Exclusive for Semaphore {
    type Guard<'a> = SemaphorePermit<'a>;

    const IS_POINT: bool = true;

    fn new() -> Self {
        Semaphore::new(1)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.acquire().expect("it is not closed")
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_acquire().ok()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.acquire_timeout(timeout).ok()
    }
}

/// Set while no task is inside.
impl Exclusive for AutoResetEvent {
    type Guard<'a> = Sets<'a>;

    const IS_POINT: bool = true;

    fn new() -> Self {
        AutoResetEvent::new(true)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.wait();
        Sets(self)
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_wait().then(|| Sets(self))
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.wait_timeout(timeout).then(|| Sets(self))
    }
}

pub(crate) struct Sets<'a>(&'a AutoResetEvent);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Checks that no task is inside.
pub(crate) struct Condition {
    is_held: Mutex<bool>,
    changed: Condvar,
}

impl Exclusive for Condition {
    type Guard<'a> = Changes<'a>;

    const IS_POINT: bool = true;

    fn new() -> Self {
        Condition { is_held: Mutex::new(false), changed: Condvar::new() }
    }

    fn lock(&self) -> Self::Guard<'_> {
        let mut is_held = self.is_held.lock();
        self.changed.wait_while(&mut is_held, |is_held| *is_held);
        *is_held = true;
        Changes(self)
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        let was_held = replace(&mut *self.is_held.lock(), true);
        (!was_held).then(|| Changes(self))
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        let mut is_held = self.is_held.lock();
        _ = self.changed.wait_while_for(&mut is_held, |is_held| *is_held, timeout);
        let was_held = replace(&mut *is_held, true);
        (!was_held).then(|| Changes(self))
    }
}

pub(crate) struct Changes<'a>(&'a Condition);

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        *self.0.is_held.lock() = false;
        self.0.changed.notify_one();
    }
}

/// Makes a test of each of these promises for each lock.
macro_rules! suite {
    ([$($promise:ident)*]) => {
        suite! { @locks [$($promise)*]
            mutex: Mutex<()>,
            mutex_handed_over: HandedOver,
            reentrant_mutex: ReentrantMutex<()>,
            reentrant_mutex_locked_twice: LockedTwice,
            rwlock: RwLock<()>,
            rwlock_writer_first: WriterFirst,
            rwlock_upgradable: Upgradable,
            semaphore: Semaphore,
            auto_reset_event: AutoResetEvent,
            condition: Condition,
        }
    };
    (@locks $promises:tt $($name:ident: $lock:ty,)*) => {
        $(suite! { @lock $name $lock, $promises })*
    };
    (@lock $name:ident $lock:ty, [$($promise:ident)*]) => {
        mod $name {
            use crate::exclusive::*;
            $(#[test] fn $promise() { super::$promise::<$lock>() })*
        }
    };
}
pub(crate) use suite;

/// A lock, and a count that goes wrong when two are inside.
pub(crate) struct Guarded<L> {
    pub(crate) lock: L,
    pub(crate) count: AtomicU64,
    inside: AtomicUsize,
    pub(crate) begun: AtomicBool,
}

impl<L: Exclusive> Guarded<L> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Guarded {
            lock: L::new(),
            count: AtomicU64::new(0),
            inside: AtomicUsize::new(0),
            begun: AtomicBool::new(false),
        })
    }

    /// One that is inside counts, and others run meanwhile if it says so.
    pub(crate) fn count(&self, linger: bool) {
        assert_eq!(self.inside.fetch_add(1, Relaxed), 0, "alone");
        // No read-modify-write: two at once would lose a count.
        let seen = self.count.load(Relaxed);
        if linger {
            give_way();
        }
        self.count.store(seen + 1, Relaxed);
        assert_eq!(self.inside.fetch_sub(1, Relaxed), 1, "alone");
    }

    pub(crate) fn counted(&self) -> u64 {
        let _guard = self.lock.lock();
        self.count.load(Relaxed)
    }
}

pub(crate) fn work<L: Exclusive>(shared: &Guarded<L>, rounds: usize) {
    for round in 0..rounds {
        let _guard = shared.lock.lock();
        shared.count(round.is_multiple_of(5));
    }
}
