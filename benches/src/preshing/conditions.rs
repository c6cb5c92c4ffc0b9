//! The primitives over a mutex and a condition variable of std each, as one writes them by hand.

use std::sync::{Condvar, Mutex as Std, MutexGuard, PoisonError};

use super::kit::{Event, Kit, Mutex, ReadWrite, Recursive, Semaphore};
use super::semaphores::this_thread;

/// Over condition variables.
pub(super) struct Conditions;

impl Kit for Conditions {
    type Mutex = Monitor<bool>;
    type Recursive = Monitor<Owned>;
    type Event = Monitor<Set>;
    type ReadWrite = Monitor<Crowd>;
    type Semaphore = Monitor<usize>;
}

/// A state, and where it is waited for.
#[derive(Default)]
pub(super) struct Monitor<S> {
    state: Std<S>,
    changed: Condvar,
}

impl<S> Monitor<S> {
    fn enter(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters when the state is no longer so.
    fn enter_unless(&self, so: impl FnMut(&mut S) -> bool) -> MutexGuard<'_, S> {
        self.changed.wait_while(self.enter(), so).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mutex for Monitor<bool> {
    fn new() -> Self {
        Self::default()
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        *self.enter_unless(|locked| *locked) = true;
        let value = f();
        *self.enter() = false;
        self.changed.notify_one();
        value
    }
}

/// Whose it is, and how often.
#[derive(Default)]
pub(super) struct Owned {
    owner: u64,
    depth: usize,
}

pub(super) struct Held<'a>(&'a Monitor<Owned>);

impl Owned {
    fn is_another_s(&self) -> bool {
        self.depth > 0 && self.owner != this_thread()
    }

    fn take(&mut self) {
        (self.owner, self.depth) = (this_thread(), self.depth + 1);
    }
}

impl Recursive for Monitor<Owned> {
    type Guard<'a> = Held<'a>;

    fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> Held<'_> {
        self.enter_unless(|owned| owned.is_another_s()).take();
        Held(self)
    }

    fn try_lock(&self) -> Option<Held<'_>> {
        let mut owned = self.enter();
        (!owned.is_another_s()).then(|| {
            owned.take();
            Held(self)
        })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let depth = {
            let mut owned = self.0.enter();
            owned.depth -= 1;
            owned.depth
        };
        if depth == 0 {
            self.0.changed.notify_one();
        }
    }
}

/// Whether an event is set.
#[derive(Default)]
pub(super) struct Set(bool);

impl Event for Monitor<Set> {
    fn new() -> Self {
        Self::default()
    }

    fn set(&self) {
        self.enter().0 = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        self.enter_unless(|set| !set.0).0 = false;
    }
}

/// The owners of a read-write lock. Writers that wait go first.
#[derive(Default)]
pub(super) struct Crowd {
    readers: usize,
    writes: bool,
    wanting: usize,
}

impl ReadWrite for Monitor<Crowd> {
    fn new() -> Self {
        Self::default()
    }

    fn read<R>(&self, f: impl FnOnce() -> R) -> R {
        self.enter_unless(|crowd| crowd.writes || crowd.wanting > 0).readers += 1;
        let value = f();
        let last = {
            let mut crowd = self.enter();
            crowd.readers -= 1;
            crowd.readers == 0
        };
        if last {
            self.changed.notify_all();
        }
        value
    }

    fn write<R>(&self, f: impl FnOnce() -> R) -> R {
        self.enter().wanting += 1;
        {
            let mut crowd = self.enter_unless(|crowd| crowd.writes || crowd.readers > 0);
            (crowd.wanting, crowd.writes) = (crowd.wanting - 1, true);
        }
        let value = f();
        self.enter().writes = false;
        self.changed.notify_all();
        value
    }
}

impl Semaphore for Monitor<usize> {
    fn new() -> Self {
        Self::default()
    }

    fn wait(&self) {
        *self.enter_unless(|permits| *permits == 0) -= 1;
    }

    fn post(&self) {
        *self.enter() += 1;
        self.changed.notify_one();
    }
}
