//! The primitives as Preshing builds them over a semaphore: an atomic count in front, which most callers pass
//! without the semaphore. Here it is the system's, or one of a mutex and a condition variable.

use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicI32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use std::sync::{Condvar, Mutex as Std, PoisonError};

use super::kit::{Event, Kit, Mutex, ReadWrite, Recursive, Semaphore};
use crate::sys;

/// All over a semaphore of type `S`.
pub(super) struct Over<S>(PhantomData<S>);

impl<S: Semaphore> Kit for Over<S> {
    type Mutex = Benaphore<S>;
    type Recursive = RecursiveBenaphore<S>;
    type Event = Counted<S>;
    type ReadWrite = Phases<S>;
    type Semaphore = S;
}

impl Semaphore for sys::Semaphore {
    fn new() -> Self {
        sys::Semaphore::new(0).expect("the system has unnamed semaphores")
    }

    fn wait(&self) {
        sys::Semaphore::wait(self);
    }

    fn post(&self) {
        sys::Semaphore::post(self);
    }
}

/// A count of permits behind a mutex of std, with a condition variable.
#[derive(Default)]
pub(super) struct Monitor {
    permits: Std<usize>,
    given: Condvar,
}

impl Semaphore for Monitor {
    fn new() -> Self {
        Self::default()
    }

    fn wait(&self) {
        let permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        let permits = self.given.wait_while(permits, |permits| *permits == 0);
        *permits.unwrap_or_else(PoisonError::into_inner) -= 1;
    }

    fn post(&self) {
        *self.permits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.given.notify_one();
    }
}

/// A mutex: a count of its owner and its waiters, and the semaphore where the latter wait.
pub(super) struct Benaphore<S> {
    crowd: AtomicUsize,
    wanting: S,
}

impl<S: Semaphore> Benaphore<S> {
    fn lock(&self) {
        // Acquire: pairs with the Release in `unlock`.
        if self.crowd.fetch_add(1, Acquire) > 0 {
            self.wanting.wait();
        }
    }

    fn try_lock(&self) -> bool {
        // Acquire: as in `lock`.
        self.crowd.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    fn unlock(&self) {
        // Release: pairs with the Acquire in `lock`.
        if self.crowd.fetch_sub(1, Release) > 1 {
            self.wanting.post();
        }
    }
}

impl<S: Semaphore> Mutex for Benaphore<S> {
    fn new() -> Self {
        Benaphore { crowd: AtomicUsize::new(0), wanting: S::new() }
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock();
        let value = f();
        self.unlock();
        value
    }
}

/// A mutex with its owner's name on it.
pub(super) struct RecursiveBenaphore<S: Semaphore> {
    benaphore: Benaphore<S>,
    /// The thread that holds it; 0 when none does. Only that thread itself can find its own number here.
    owner: AtomicU64,
    /// How often it is locked; only its owner reads and writes it.
    depth: AtomicUsize,
}

pub(super) struct Held<'a, S: Semaphore>(&'a RecursiveBenaphore<S>);

impl<S: Semaphore> Recursive for RecursiveBenaphore<S> {
    type Guard<'a>
        = Held<'a, S>
    where
        Self: 'a;

    fn new() -> Self {
        RecursiveBenaphore { benaphore: Mutex::new(), owner: AtomicU64::new(0), depth: AtomicUsize::new(0) }
    }

    fn lock(&self) -> Held<'_, S> {
        if self.owner.load(Relaxed) != this_thread() {
            self.benaphore.lock();
        }
        self.enter()
    }

    fn try_lock(&self) -> Option<Held<'_, S>> {
        let mine = self.owner.load(Relaxed) == this_thread() || self.benaphore.try_lock();
        mine.then(|| self.enter())
    }
}

impl<S: Semaphore> RecursiveBenaphore<S> {
    fn enter(&self) -> Held<'_, S> {
        self.owner.store(this_thread(), Relaxed);
        self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
        Held(self)
    }
}

impl<S: Semaphore> Drop for Held<'_, S> {
    fn drop(&mut self) {
        let depth = self.0.depth.load(Relaxed) - 1;
        self.0.depth.store(depth, Relaxed);
        if depth == 0 {
            self.0.owner.store(0, Relaxed);
            self.0.benaphore.unlock();
        }
    }
}

/// A number of this thread that no other has while it lives, and that is not 0.
fn this_thread() -> u64 {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr() as u64)
}

/// An auto-reset event: 1 is set, 0 is not, less is that so many wait.
pub(super) struct Counted<S> {
    status: AtomicI32,
    waiting: S,
}

impl<S: Semaphore> Event for Counted<S> {
    fn new() -> Self {
        Counted { status: AtomicI32::new(0), waiting: S::new() }
    }

    fn set(&self) {
        // Release: pairs with the Acquire in `wait`.
        let before = self.status.fetch_update(Release, Relaxed, |status| Some((status + 1).min(1)));
        if before.is_ok_and(|before| before < 0) {
            self.waiting.post();
        }
    }

    fn wait(&self) {
        // Acquire: pairs with the Release in `set`.
        if self.status.fetch_sub(1, Acquire) < 1 {
            self.waiting.wait();
        }
    }
}

/// A read-write lock without starvation: a writer that leaves admits all readers that wait, the last reader a
/// writer.
pub(super) struct Phases<S> {
    /// The counts of readers, of readers that wait, and of writers, each in bits of its own.
    crowd: AtomicU64,
    reading: S,
    writing: S,
}

const READER: u64 = 1;
const WAITING: u64 = 1 << 20;
const WRITER: u64 = 1 << 40;
const MASK: u64 = (1 << 20) - 1;

impl<S: Semaphore> Phases<S> {
    fn lock_to_read(&self) {
        let enter = |crowd| Some(crowd + if writers(crowd) > 0 { WAITING } else { READER });
        // Acquire: pairs with the Release of a writer that leaves.
        let before = self.crowd.fetch_update(Acquire, Relaxed, enter);
        if before.is_ok_and(|before| writers(before) > 0) {
            self.reading.wait();
        }
    }

    fn unlock_to_read(&self) {
        // Release: pairs with the Acquire of a writer that comes.
        let before = self.crowd.fetch_sub(READER, Release);
        if before & MASK == 1 && writers(before) > 0 {
            self.writing.post();
        }
    }

    fn lock_to_write(&self) {
        // Acquire: pairs with the Release of any unlock.
        let before = self.crowd.fetch_add(WRITER, Acquire);
        if before & MASK > 0 || writers(before) > 0 {
            self.writing.wait();
        }
    }

    fn unlock_to_write(&self) {
        let leave = |crowd| Some((writers(crowd) - 1) * WRITER + waiting(crowd) * READER);
        // Release: pairs with the Acquire of any lock.
        let before = self.crowd.fetch_update(AcqRel, Relaxed, leave).unwrap_or_default();
        match waiting(before) {
            0 if writers(before) > 1 => self.writing.post(),
            waiting => (0..waiting).for_each(|_| self.reading.post()),
        }
    }
}

fn waiting(crowd: u64) -> u64 {
    (crowd / WAITING) & MASK
}

fn writers(crowd: u64) -> u64 {
    crowd / WRITER
}

impl<S: Semaphore> ReadWrite for Phases<S> {
    fn new() -> Self {
        Phases { crowd: AtomicU64::new(0), reading: S::new(), writing: S::new() }
    }

    fn read<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock_to_read();
        let value = f();
        self.unlock_to_read();
        value
    }

    fn write<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock_to_write();
        let value = f();
        self.unlock_to_write();
        value
    }
}
