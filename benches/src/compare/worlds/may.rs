//! may. Its runtime belongs to the process, with as many workers as were asked for first.
//!
//! Each coroutine has a mapping of its own with a guard, so that some 32,000 of them are as many as the
//! system lets a process have: it is not asked for more. And on more than one worker two coroutines of may
//! 0.3.51 that park and unpark each other now and then do so for ever: one of its threads goes on yielding
//! the processor, and nothing else runs.

use std::time::Duration;

use may::coroutine::{self, Coroutine, JoinHandle};

use crate::compare::blocking::asked::{Host, starts};
use crate::compare::blocking::{Boxed, Enter, Job, Tasks};

/// Coroutines.
pub(in crate::compare) struct May;

/// The way in from a plain thread.
pub(in crate::compare) struct Process;

/// How many coroutines it can have at a time.
pub(in crate::compare) const MOST: u64 = 30_000;

/// Coroutines stay in its pool as long as there are fewer; with the default of 1000 a backlog makes most of
/// its stacks anew.
const POOL: usize = 20_000;

starts! {
    /// Starts it with a pool that is full of coroutines from the beginning.
    start = May, Process, |workers| configure(workers);
    /// Starts it with a pool that holds next to nothing, so that each coroutine is made when it is spawned.
    start_empty = May, Process, |workers| {
        may::config().set_workers(workers).set_pool_capacity(1);
        Process
    };
}

/// Starts it, unless that has been done.
pub(in crate::compare) fn configure(workers: usize) -> Process {
    may::config().set_workers(workers).set_pool_capacity(POOL);
    Process
}

impl Enter for Process {
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T {
        May::join(May::spawn(job))
    }

    fn ask_apart(&self, _: Boxed<Duration>, _: Boxed<()>) -> Duration {
        unreachable!("coroutines go where they please")
    }
}

impl Tasks for May {
    type Handle<T: Send + 'static> = JoinHandle<T>;
    type Task = Coroutine;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> JoinHandle<T> {
        // SAFETY: jobs keep nothing that is tied to a thread while they wait, and need little stack, as
        // `Tasks` says.
        unsafe { coroutine::spawn(job) }
    }

    fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        handle.join().expect("no coroutine panics")
    }

    #[inline(always)]
    fn yield_now() {
        coroutine::yield_now();
    }

    fn sleep(duration: Duration) {
        coroutine::sleep(duration);
    }

    fn current() -> Coroutine {
        coroutine::current()
    }

    fn task<T: Send + 'static>(handle: &JoinHandle<T>) -> Coroutine {
        handle.coroutine().clone()
    }

    #[inline(always)]
    fn park() {
        coroutine::park();
    }

    fn unpark(task: &Coroutine) {
        task.unpark();
    }
}
