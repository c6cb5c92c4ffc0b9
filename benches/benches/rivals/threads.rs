//! Threads of std, on all processors of the machine.

use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::comparison::Rival;

use super::blocking::{Enter, Started, Tasks};
use super::question::Question;

struct Threads;

/// The calling thread is one like the others.
struct Here;

pub(super) fn start(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started::<Threads, _>::new(Here))
}

impl Enter for Here {
    fn enter(&self, f: impl FnOnce() -> Duration + Send + 'static) -> Duration {
        f()
    }
}

impl Tasks for Threads {
    type JoinHandle = JoinHandle<()>;
    type Task = Thread;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        thread::spawn(f)
    }

    fn join(handle: JoinHandle<()>) {
        handle.join().expect("no thread panics");
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn current() -> Thread {
        thread::current()
    }

    fn task(handle: &JoinHandle<()>) -> Thread {
        handle.thread().clone()
    }

    fn park() {
        thread::park();
    }

    fn unpark(task: &Thread) {
        task.unpark();
    }
}
