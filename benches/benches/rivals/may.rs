//! may. Its runtime belongs to the process, with as many workers as were asked for first.

use std::time::Duration;

use may::coroutine::{self, Coroutine, JoinHandle};

use crate::comparison::Rival;

use super::blocking::{Enter, Started, Tasks};
use super::question::{BACKLOG, Question};

struct May;

/// The way in from a plain thread.
struct Process;

/// Coroutines stay in its pool as long as there are fewer; with the default of 1000 the backlog makes most of its stacks
/// anew.
const POOL: usize = 2 * BACKLOG as usize;

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    may::config().set_workers(workers).set_pool_capacity(POOL);
    Box::new(Started::<May, _>::new(Process))
}

impl Enter for Process {
    fn enter(&self, f: impl FnOnce() -> Duration + Send + 'static) -> Duration {
        // SAFETY: the questions keep nothing that is tied to a thread over a suspension, and need little stack.
        unsafe { coroutine::spawn(f) }.join().expect("no coroutine panics")
    }
}

impl Tasks for May {
    type JoinHandle = JoinHandle<()>;
    type Task = Coroutine;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        // SAFETY: by this function's contract.
        unsafe { coroutine::spawn(f) }
    }

    fn join(handle: JoinHandle<()>) {
        handle.join().expect("no coroutine panics");
    }

    fn yield_now() {
        coroutine::yield_now();
    }

    fn current() -> Coroutine {
        coroutine::current()
    }

    fn task(handle: &JoinHandle<()>) -> Coroutine {
        handle.coroutine().clone()
    }

    fn park() {
        coroutine::park();
    }

    fn unpark(task: &Coroutine) {
        task.unpark();
    }
}
