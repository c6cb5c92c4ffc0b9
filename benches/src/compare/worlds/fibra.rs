//! fibra, with tasks that stay at home and with tasks that migrate.

use std::time::Duration;

use fibra::{JoinHandle, Runtime, Task, task};

use super::{Blocking, Blocks, Enter};
use crate::compare::entrant::Rival;

/// Tasks that stay on the worker that starts them.
pub(in crate::compare) struct AtHome;

/// Tasks that may be resumed on any worker.
pub(in crate::compare) struct Migratable;

pub(in crate::compare) fn start_at_home<Q>(workers: usize) -> Box<dyn Rival<Q>>
where
    Blocks<AtHome, Runtime>: Rival<Q>,
{
    Box::new(Blocks::<AtHome, _>::new(runtime(workers), workers))
}

pub(in crate::compare) fn start_migratable<Q>(workers: usize) -> Box<dyn Rival<Q>>
where
    Blocks<Migratable, Runtime>: Rival<Q>,
{
    Box::new(Blocks::<Migratable, _>::new(runtime(workers), workers))
}

/// With stacks that have less room between them than by default.
pub(in crate::compare) fn start_narrow<Q>(workers: usize) -> Box<dyn Rival<Q>>
where
    Blocks<AtHome, Runtime>: Rival<Q>,
{
    let runtime = Runtime::builder().workers(workers).stack_size(64 << 10).build();
    Box::new(Blocks::<AtHome, _>::new(runtime.expect("threads for the workers"), workers))
}

pub(in crate::compare) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("threads for the workers")
}

impl Enter for Runtime {
    fn ask<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        self.run(f)
    }
}

impl Blocking for AtHome {
    type Handle<T: Send + 'static> = JoinHandle<T>;
    type Task = Task;

    unsafe fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        fibra::spawn(f)
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

impl Blocking for Migratable {
    type Handle<T: Send + 'static> = JoinHandle<T>;
    type Task = Task;

    unsafe fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        // SAFETY: by this function's contract.
        unsafe { task::Builder::new().migratable() }.spawn(f)
    }

    fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        AtHome::join(handle)
    }

    #[inline(always)]
    fn yield_now() {
        AtHome::yield_now();
    }

    fn sleep(duration: Duration) {
        AtHome::sleep(duration);
    }

    fn current() -> Task {
        AtHome::current()
    }

    fn task<T: Send + 'static>(handle: &JoinHandle<T>) -> Task {
        AtHome::task(handle)
    }

    #[inline(always)]
    fn park() {
        AtHome::park();
    }

    fn unpark(task: &Task) {
        AtHome::unpark(task);
    }
}
