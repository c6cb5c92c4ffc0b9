//! Tasks that block, and the questions as they are asked of them.
//!
//! The macros say what a wait is here: a call that returns when it is over. The text of `asked` is compiled
//! with them.

/// Waits: the call has done so.
macro_rules! wait {
    ($value:expr) => {
        $value
    };
}

/// The type of a call that waits.
macro_rules! later {
    ($value:ty) => {
        $value
    };
}

/// The body of a call that waits.
macro_rules! body {
    ($body:block) => {
        $body
    };
}

/// The job of a task.
macro_rules! job {
    ($body:block) => {
        move || $body
    };
}

/// Does a job in the calling task.
macro_rules! run {
    ($job:expr) => {
        ($job)()
    };
}

/// What is asked of a `ReentrantMutex` in scope.
macro_rules! reentrant_locks {
    () => {
        impl Lock for ReentrantMutex<Cell<u64>> {
            const IS_REENTRANT: bool = true;

            type Guard<'a> = ReentrantMutexGuard<'a, Cell<u64>>;

            fn new() -> Self {
                ReentrantMutex::new(Cell::new(0))
            }

            #[inline(always)]
            fn lock(&self) -> Self::Guard<'_> {
                ReentrantMutex::lock(self)
            }

            #[inline(always)]
            fn count(guard: &mut Self::Guard<'_>) -> u64 {
                guard.set(guard.get() + 1);
                guard.get()
            }
        }
    };
}

/// What is asked of a `Condvar` with the `Mutex` beside it in scope: how a lock gives its guard, and how a
/// guard waits.
macro_rules! conditions {
    ($guard_of:expr, |$condition:ident, $guard:ident| $wait:expr) => {
        impl Turns for (Mutex<bool>, Condvar) {
            fn new() -> Self {
                (Mutex::new(false), Condvar::new())
            }

            #[inline(always)]
            fn pass(&self, mine: bool) {
                let (turn, $condition) = self;
                let mut $guard = $guard_of(turn.lock());
                while *$guard != mine {
                    $wait;
                }
                *$guard = !mine;
                $condition.notify_one();
            }
        }

        impl Board for (Mutex<u64>, [Condvar; 2]) {
            fn new() -> Self {
                (Mutex::new(0), [Condvar::new(), Condvar::new()])
            }

            fn pass(&self, at: usize, mut look: impl FnMut(&mut u64) -> Then) {
                let (number, conditions) = self;
                let $condition = &conditions[at];
                let mut $guard = $guard_of(number.lock());
                let mut then = look(&mut $guard);
                while then == Then::Wait {
                    $wait;
                    then = look(&mut $guard);
                }
                match then {
                    Then::NotifyOne => _ = conditions[1 - at].notify_one(),
                    Then::NotifyAll => _ = conditions[1 - at].notify_all(),
                    Then::NotifyHere => _ = conditions[at].notify_all(),
                    Then::Wait | Then::Go => {}
                }
            }
        }

        deeds! { NotifyFree: Condvar = Condvar::new(), |condition| condition.notify_one(); }
    };
}

#[macro_use]
#[path = "../asked/mod.rs"]
pub(super) mod asked;
mod channels;
mod fibra;
mod gathering;
mod may;
mod parking_lot;
mod standard;
mod waking;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

pub(super) use channels::{Crossbeam, Flume};
pub(super) use fibra::{Fibra, WriterFirst};
pub(super) use may::Coroutines;
pub(super) use parking_lot::ParkingLot;
pub(super) use standard::Standard;

use asked::pairs::Event;

/// The job of a task.
pub(super) trait Job<T>: FnOnce() -> T + Send + 'static {}

impl<T, F: FnOnce() -> T + Send + 'static> Job<T> for F {}

pub(super) type Boxed<T> = Box<dyn FnOnce() -> T + Send>;

pub(super) fn boxed<T>(job: impl Job<T>) -> Boxed<T> {
    Box::new(job)
}

/// What a task may keep while it waits: here anything.
pub(super) trait Held {}

impl<T> Held for T {}

/// Tasks that block.
///
/// The jobs of this program keep nothing that is tied to a thread while they wait, and need little stack.
pub(super) trait Tasks: Sized + 'static {
    type Handle<T: Send + 'static>;
    type Task: Send + Sync + 'static;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> Self::Handle<T>;

    /// Spawns the second task of a pair, where the library likes it best.
    fn spawn_beside(job: impl Job<()>) -> Self::Handle<()> {
        Self::spawn(job)
    }

    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T;

    fn detach(handle: Self::Handle<()>) {
        drop(handle);
    }

    fn yield_now();
    fn sleep(duration: Duration);
    fn current() -> Self::Task;
    fn task<T: Send + 'static>(handle: &Self::Handle<T>) -> Self::Task;
    fn park();
    fn unpark(task: &Self::Task);

    /// Waits until `all` are here, where those that were spawned first would otherwise be far ahead. Tasks
    /// are not: none runs on a worker before the task there that spawns them waits.
    fn begin_together(_all: &Barrier) {}
}

/// The way in to tasks from a plain thread.
pub(super) trait Enter {
    /// Runs the job in a task and waits for its value.
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T;

    /// Runs two jobs, each on a processor of its own, and returns the value of the first.
    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration;
}

/// A flag, and the task that made it, which parks until the flag is set.
pub(super) struct Signal<T: Tasks> {
    waiter: T::Task,
    is_set: AtomicBool,
}

impl<T: Tasks> Event for Signal<T> {
    fn new() -> Self {
        Signal { waiter: T::current(), is_set: AtomicBool::new(false) }
    }

    fn set(&self) {
        // Release: pairs with the Acquire in `wait`.
        self.is_set.store(true, Release);
        T::unpark(&self.waiter);
    }

    fn wait(&self) {
        // Acquire: pairs with the Release in `set`.
        while !self.is_set.swap(false, Acquire) {
            T::park();
        }
    }
}

/// Two tasks park and unpark each other.
fn hand_to_and_fro<T: Tasks>(operations: u64) -> impl Job<Duration> {
    move || {
        let this = T::current();
        let other = T::spawn(move || {
            for _ in 0..operations {
                T::park();
                T::unpark(&this);
            }
        });
        let task = T::task(&other);
        let begin = Instant::now();
        for _ in 0..operations {
            T::unpark(&task);
            T::park();
        }
        let elapsed = begin.elapsed();
        T::join(other);
        elapsed
    }
}
