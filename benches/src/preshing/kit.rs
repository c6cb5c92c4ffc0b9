//! The operations of each primitive, and the runner of a test.

use std::io;
use std::thread;

pub(super) trait Mutex: Send + Sync {
    fn new() -> Self;
    fn with<R>(&self, f: impl FnOnce() -> R) -> R;
}

/// Lets one waiter through for each time it is set; one set is kept.
pub(super) trait Event: Send + Sync {
    fn new() -> Self;
    fn set(&self);
    fn wait(&self);
}

pub(super) trait ReadWrite: Send + Sync {
    fn new() -> Self;
    fn read<R>(&self, f: impl FnOnce() -> R) -> R;
    fn write<R>(&self, f: impl FnOnce() -> R) -> R;
}

/// A semaphore without permits at the beginning.
pub(super) trait Semaphore: Send + Sync {
    fn new() -> Self;
    fn wait(&self);
    fn post(&self);
}

/// The runner of a test.
pub(super) trait Crowd {
    /// Runs `f` with the numbers below `count`, all at once, and waits for them.
    fn run(&self, count: usize, f: impl Fn(usize) + Sync);
}

pub(super) struct Threads;

/// Tasks of a runtime with as many workers as there are processors.
pub(super) struct Tasks(fibra::Runtime);

impl Crowd for Threads {
    fn run(&self, count: usize, f: impl Fn(usize) + Sync) {
        let f = &f;
        thread::scope(|scope| (0..count).for_each(|number| _ = scope.spawn(move || f(number))));
    }
}

impl Tasks {
    pub(super) fn start() -> io::Result<Self> {
        Ok(Tasks(fibra::Runtime::builder().build()?))
    }
}

impl Crowd for Tasks {
    fn run(&self, count: usize, f: impl Fn(usize) + Sync) {
        let f = &f;
        self.0.run(|| fibra::scope(|scope| (0..count).for_each(|number| _ = scope.spawn(move || f(number)))));
    }
}
