//! Threads of std, on all processors of the machine, or pinned to one each.

use std::sync::Barrier;
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::compare::blocking::asked::{Host, starts};
use crate::compare::blocking::{Boxed, Enter, Job, Tasks};
use crate::process;

/// Threads where the system puts them.
pub(in crate::compare) struct Threads;

/// The calling thread is one like the others.
pub(in crate::compare) struct Here;

starts! { start = Threads, Here, |_| Here; }

/// Runs the two in threads of their own, pinned to the first two processors, and returns what the first
/// returned.
pub(in crate::compare) fn apart<T: Send>(
    first: impl FnOnce() -> T + Send,
    second: impl FnOnce() + Send,
) -> T {
    thread::scope(|scope| {
        scope.spawn(|| {
            process::pin_thread(1).expect("a second processor");
            second();
        });
        let first = scope.spawn(|| {
            process::pin_thread(0).expect("a first processor");
            first()
        });
        first.join().expect("no thread panics")
    })
}

impl Enter for Here {
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T {
        job()
    }

    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration {
        apart(first, second)
    }
}

impl Tasks for Threads {
    type Handle<T: Send + 'static> = JoinHandle<T>;
    type Task = Thread;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> JoinHandle<T> {
        thread::spawn(job)
    }

    fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        handle.join().expect("no thread panics")
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn sleep(duration: Duration) {
        thread::sleep(duration);
    }

    fn current() -> Thread {
        thread::current()
    }

    fn task<T: Send + 'static>(handle: &JoinHandle<T>) -> Thread {
        handle.thread().clone()
    }

    fn park() {
        thread::park();
    }

    fn unpark(task: &Thread) {
        task.unpark();
    }

    fn begin_together(all: &Barrier) {
        all.wait();
    }
}
