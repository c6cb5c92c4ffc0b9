//! fibra, with tasks that stay at home and with tasks that migrate.

use std::time::Duration;

use fibra::{JoinHandle, Runtime, Task, task};

use crate::comparison::Rival;

use super::blocking::{Enter, Started, Tasks};
use super::question::Question;

struct AtHome;

struct Migratable;

pub(super) fn start_at_home(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started::<AtHome, _>::new(runtime(workers)))
}

pub(super) fn start_migratable(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started::<Migratable, _>::new(runtime(workers)))
}

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("threads for the workers")
}

impl Enter for Runtime {
    fn enter(&self, f: impl FnOnce() -> Duration + Send + 'static) -> Duration {
        self.run(f)
    }
}

impl Tasks for AtHome {
    type JoinHandle = JoinHandle<()>;
    type Task = Task;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        fibra::spawn(f)
    }

    fn join(handle: JoinHandle<()>) {
        handle.join().expect("no task panics");
    }

    fn yield_now() {
        fibra::yield_now();
    }

    fn current() -> Task {
        task::current()
    }

    fn task(handle: &JoinHandle<()>) -> Task {
        handle.task().clone()
    }

    fn park() {
        task::park();
    }

    fn unpark(task: &Task) {
        task.unpark();
    }
}

impl Tasks for Migratable {
    type JoinHandle = JoinHandle<()>;
    type Task = Task;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        // SAFETY: by this function's contract.
        unsafe { task::Builder::new().migratable() }.spawn(f)
    }

    fn join(handle: JoinHandle<()>) {
        AtHome::join(handle);
    }

    fn yield_now() {
        AtHome::yield_now();
    }

    fn current() -> Task {
        AtHome::current()
    }

    fn task(handle: &JoinHandle<()>) -> Task {
        AtHome::task(handle)
    }

    fn park() {
        AtHome::park();
    }

    fn unpark(task: &Task) {
        AtHome::unpark(task);
    }
}
