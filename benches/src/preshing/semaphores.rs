//! The primitives as Preshing builds them over a semaphore: an atomic count in front, which most callers pass without the
//! semaphore. Here it is the system's.

use std::sync::atomic::{
    AtomicI32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use super::kit::{Event, Kit, Mutex, ReadWrite, Recursive, Semaphore};
use crate::sys;

/// Over the semaphore of the system.
pub(super) struct Semaphores;

impl Kit for Semaphores {
    type Mutex = Benaphore;
    type Recursive = RecursiveBenaphore;
    type Event = Counted;
    type ReadWrite = Phases;
    type Semaphore = sys::Semaphore;
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

/// A mutex: a count of its owner and its waiters, and the semaphore where the latter wait.
pub(super) struct Benaphore {
    crowd: AtomicUsize,
    wanting: sys::Semaphore,
}

impl Benaphore {
    fn lock(&self) {
        // Acquire: pairs with the Release in `unlock`.
        if self.crowd.fetch_add(1, Acquire) > 0 {
            Semaphore::wait(&self.wanting);
        }
    }

    fn try_lock(&self) -> bool {
        // Acquire: as in `lock`.
        self.crowd.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    fn unlock(&self) {
        // Release: pairs with the Acquire in `lock`.
        if self.crowd.fetch_sub(1, Release) > 1 {
            Semaphore::post(&self.wanting);
        }
    }
}

impl Mutex for Benaphore {
    fn new() -> Self {
        Benaphore { crowd: AtomicUsize::new(0), wanting: Semaphore::new() }
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock();
        let value = f();
        self.unlock();
        value
    }
}

/// A mutex with its owner's name on it.
pub(super) struct RecursiveBenaphore {
    benaphore: Benaphore,
    /// The thread that holds it; 0 when none does. Only that thread itself can find its own number here.
    owner: AtomicU64,
    /// How often it is locked; only its owner reads and writes it.
    depth: AtomicUsize,
}

pub(super) struct Held<'a>(&'a RecursiveBenaphore);

impl Recursive for RecursiveBenaphore {
    type Guard<'a> = Held<'a>;

    fn new() -> Self {
        RecursiveBenaphore { benaphore: Mutex::new(), owner: AtomicU64::new(0), depth: AtomicUsize::new(0) }
    }

    fn lock(&self) -> Held<'_> {
        if self.owner.load(Relaxed) != this_thread() {
            self.benaphore.lock();
        }
        self.enter()
    }

    fn try_lock(&self) -> Option<Held<'_>> {
        let mine = self.owner.load(Relaxed) == this_thread() || self.benaphore.try_lock();
        mine.then(|| self.enter())
    }
}

impl RecursiveBenaphore {
    fn enter(&self) -> Held<'_> {
        self.owner.store(this_thread(), Relaxed);
        self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
        Held(self)
    }
}

impl Drop for Held<'_> {
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
pub(super) fn this_thread() -> u64 {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr() as u64)
}

/// An auto-reset event: 1 is set, 0 is not, less is that so many wait.
pub(super) struct Counted {
    status: AtomicI32,
    waiting: sys::Semaphore,
}

impl Event for Counted {
    fn new() -> Self {
        Counted { status: AtomicI32::new(0), waiting: Semaphore::new() }
    }

    fn set(&self) {
        // Release: pairs with the Acquire in `wait`.
        let before = self.status.fetch_update(Release, Relaxed, |status| Some((status + 1).min(1)));
        if before.is_ok_and(|before| before < 0) {
            Semaphore::post(&self.waiting);
        }
    }

    fn wait(&self) {
        // Acquire: pairs with the Release in `set`.
        if self.status.fetch_sub(1, Acquire) < 1 {
            Semaphore::wait(&self.waiting);
        }
    }
}

/// A read-write lock without starvation: a writer that leaves admits all readers that wait, the last reader a writer.
pub(super) struct Phases {
    /// The counts of readers, of readers that wait, and of writers, each in bits of its own.
    crowd: AtomicU64,
    reading: sys::Semaphore,
    writing: sys::Semaphore,
}

const READER: u64 = 1;
const WAITING: u64 = 1 << 20;
const WRITER: u64 = 1 << 40;
const MASK: u64 = (1 << 20) - 1;

impl Phases {
    fn lock_to_read(&self) {
        let enter = |crowd| Some(crowd + if writers(crowd) > 0 { WAITING } else { READER });
        // Acquire: pairs with the Release of a writer that leaves.
        let before = self.crowd.fetch_update(Acquire, Relaxed, enter);
        if before.is_ok_and(|before| writers(before) > 0) {
            Semaphore::wait(&self.reading);
        }
    }

    fn unlock_to_read(&self) {
        // Release: pairs with the Acquire of a writer that comes.
        let before = self.crowd.fetch_sub(READER, Release);
        if before & MASK == 1 && writers(before) > 0 {
            Semaphore::post(&self.writing);
        }
    }

    fn lock_to_write(&self) {
        // Acquire: pairs with the Release of any unlock.
        let before = self.crowd.fetch_add(WRITER, Acquire);
        if before & MASK > 0 || writers(before) > 0 {
            Semaphore::wait(&self.writing);
        }
    }

    fn unlock_to_write(&self) {
        let leave = |crowd| Some((writers(crowd) - 1) * WRITER + waiting(crowd) * READER);
        // Release: pairs with the Acquire of any lock.
        let before = self.crowd.fetch_update(AcqRel, Relaxed, leave).unwrap_or_default();
        match waiting(before) {
            0 if writers(before) > 1 => Semaphore::post(&self.writing),
            waiting => (0..waiting).for_each(|_| Semaphore::post(&self.reading)),
        }
    }
}

fn waiting(crowd: u64) -> u64 {
    (crowd / WAITING) & MASK
}

fn writers(crowd: u64) -> u64 {
    crowd / WRITER
}

impl ReadWrite for Phases {
    fn new() -> Self {
        Phases { crowd: AtomicU64::new(0), reading: Semaphore::new(), writing: Semaphore::new() }
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
