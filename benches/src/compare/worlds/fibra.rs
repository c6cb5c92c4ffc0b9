//! fibra, with tasks that stay on their worker and with tasks that migrate.

use std::cell::OnceCell;
use std::sync::mpsc;
use std::time::Duration;

use fibra::{JoinHandle, Runtime, Task, task};

use crate::compare::blocking::asked::{Host, starts};
use crate::compare::blocking::{Boxed, Enter, Job, Tasks};

/// Tasks of fibra.
pub(in crate::compare) struct Fibra<const MIGRATES: bool>;

/// Tasks that stay on the worker that starts them.
pub(in crate::compare) type Staying = Fibra<false>;

/// Tasks that may be resumed on any worker.
pub(in crate::compare) type Migratable = Fibra<true>;

starts! {
    start_staying = Staying, Runtime, |workers| runtime(workers);
    start_migratable = Migratable, Runtime, |workers| runtime(workers);
    /// Starts a runtime whose stacks have less room between them than by default.
    start_narrow = Staying, Runtime, |workers| {
        Runtime::builder().workers(workers).stack_size(64 << 10).build().expect("threads for the workers")
    };
}

pub(in crate::compare) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("threads for the workers")
}

impl Enter for Runtime {
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T {
        self.run(job)
    }

    /// Starts both on workers of their own, which should be pinned.
    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration {
        self.run(move || {
            let (started, starts) = mpsc::channel();
            let second = fibra::spawn(move || {
                started.send(()).expect("the first waits for it");
                second();
            });
            // Stops this worker, so that another worker starts the second.
            starts.recv().expect("the second starts");
            let elapsed = first();
            Staying::join(second);
            elapsed
        })
    }
}

/// A runtime that is made for the first question: its workers are pinned where two tasks are to be apart.
pub(in crate::compare) struct Lazy {
    pub(in crate::compare) workers: usize,
    pub(in crate::compare) runtime: OnceCell<Runtime>,
}

impl Lazy {
    fn runtime(&self, pinned: bool) -> &Runtime {
        self.runtime.get_or_init(|| {
            let runtime = Runtime::builder().workers(self.workers).pin_workers(pinned).build();
            runtime.expect("threads for the workers")
        })
    }
}

impl Enter for Lazy {
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T {
        self.runtime(false).ask(job)
    }

    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration {
        self.runtime(true).ask_apart(first, second)
    }
}

impl<const MIGRATES: bool> Tasks for Fibra<MIGRATES> {
    type Handle<T: Send + 'static> = JoinHandle<T>;
    type Task = Task;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> JoinHandle<T> {
        match MIGRATES {
            false => fibra::spawn(job),
            // SAFETY: jobs keep nothing that is tied to a thread while they wait, as `Tasks` says.
            true => unsafe { task::Builder::new().migratable() }.spawn(job),
        }
    }

    fn spawn_beside(job: impl Job<()>) -> JoinHandle<()> {
        if MIGRATES { Self::spawn(job) } else { fibra::spawn_local(job) }
    }

    fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        handle.join().expect("no task panics")
    }

    #[inline(always)]
    fn yield_now() {
        fibra::yield_now();
    }

    fn sleep(duration: Duration) {
        fibra::sleep(duration);
    }

    fn current() -> Task {
        task::current()
    }

    fn task<T: Send + 'static>(handle: &JoinHandle<T>) -> Task {
        handle.task().clone()
    }

    #[inline(always)]
    fn park() {
        task::park();
    }

    fn unpark(task: &Task) {
        task.unpark();
    }
}
