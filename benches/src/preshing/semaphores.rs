//! The primitives as Preshing builds them over a semaphore: an atomic count in front, which most callers pass
//! without the semaphore. Here it is the system's, or one of a mutex and a condition variable.

use std::sync::atomic::{
    AtomicI32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use std::sync::{Condvar, Mutex as Std, PoisonError};

use super::kit::{Event, Mutex, ReadWrite, Semaphore};
use crate::sys;

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

impl<S: Semaphore> Mutex for Benaphore<S> {
    fn new() -> Self {
        Benaphore { crowd: AtomicUsize::new(0), wanting: S::new() }
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        // Acquire: pairs with the Release below.
        if self.crowd.fetch_add(1, Acquire) > 0 {
            self.wanting.wait();
        }
        let value = f();
        // Release: pairs with the Acquire above.
        if self.crowd.fetch_sub(1, Release) > 1 {
            self.wanting.post();
        }
        value
    }
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
        let enter = |crowd| Some(crowd + if writers(crowd) > 0 { WAITING } else { READER });
        // Acquire: pairs with the Release of a writer that leaves.
        let before = self.crowd.fetch_update(Acquire, Relaxed, enter);
        if before.is_ok_and(|before| writers(before) > 0) {
            self.reading.wait();
        }
        let value = f();
        // Release: pairs with the Acquire of a writer that comes.
        let before = self.crowd.fetch_sub(READER, Release);
        if before & MASK == 1 && writers(before) > 0 {
            self.writing.post();
        }
        value
    }

    fn write<R>(&self, f: impl FnOnce() -> R) -> R {
        // Acquire: pairs with the Release of any reader or writer that leaves.
        let before = self.crowd.fetch_add(WRITER, Acquire);
        if before & MASK > 0 || writers(before) > 0 {
            self.writing.wait();
        }
        let value = f();
        let leave = |crowd| Some((writers(crowd) - 1) * WRITER + waiting(crowd) * READER);
        // Release: pairs with the Acquire of any reader or writer that comes.
        let before = self.crowd.fetch_update(AcqRel, Relaxed, leave).unwrap_or_default();
        match waiting(before) {
            0 if writers(before) > 1 => self.writing.post(),
            waiting => (0..waiting).for_each(|_| self.reading.post()),
        }
        value
    }
}
