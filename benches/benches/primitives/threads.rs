//! Threads, on all processors of the machine or pinned to one each.

use std::marker::PhantomData;
use std::sync::Barrier;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fibra_bench::process;

use super::question::Question;
use super::tasks::{Library, Pair, Tasks, Way, way};
use crate::comparison::{Answer, Rival};

/// Threads where the system puts them.
struct Threads;

/// Two threads, pinned to the first two processors.
struct Pinned;

/// A library, asked in threads.
struct Among<L>(PhantomData<L>);

pub(super) fn start<L: Library + 'static>(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Among::<L>(PhantomData))
}

/// What needs many tasks that take turns is not asked of threads.
pub(super) fn enters<L: Library>(question: Question, _workers: usize) -> bool {
    !matches!(question, Question::MutexOverYield(_) | Question::Semaphore) && way_of::<L>(question).is_some()
}

fn way_of<L: Library>(question: Question) -> Option<Way> {
    way::<L, Threads, Threads, Pinned>(question)
}

impl<L: Library> Rival<Question> for Among<L> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        way_of::<L>(question).expect("it has entered for no other")(operations)
    }
}

impl Tasks for Threads {
    type JoinHandle = JoinHandle<()>;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        thread::spawn(f)
    }

    fn join(handle: JoinHandle<()>) {
        handle.join().expect("no thread panics");
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn begin_together(all: &Barrier) {
        all.wait();
    }
}

impl Pair for Threads {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        thread::scope(|scope| {
            scope.spawn(second);
            first()
        })
    }
}

impl Pair for Pinned {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        apart(first, second)
    }
}

/// Runs the two in threads of their own, pinned to the first two processors, and returns what the first returned.
pub(super) fn apart(first: impl FnOnce() -> Duration + Send, second: impl FnOnce() + Send) -> Duration {
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
