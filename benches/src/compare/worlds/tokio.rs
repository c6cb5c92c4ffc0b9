//! tokio, in both flavours.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};

use super::threads;
use crate::compare::awaiting::asked::pairs::Event;
use crate::compare::awaiting::asked::{Host, starts};
use crate::compare::awaiting::{Boxed, Enter, Job, Tasks};

/// Tasks of the runtime that the calling one belongs to.
pub(in crate::compare) struct Tokio;

starts! {
    start_current = Tokio, Runtime, |_| current();
    start_multi = Tokio, Runtime, |workers| multi(workers);
}

pub(in crate::compare) fn current() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime on this thread")
}

pub(in crate::compare) fn multi(workers: usize) -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build();
    runtime.expect("threads for the workers")
}

impl Enter for Runtime {
    /// In a task, as with the others: what `block_on` itself runs is no task and, with several threads, on
    /// none of them.
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T {
        let asked = self.spawn(job);
        self.block_on(asked).expect("no task panics")
    }

    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration {
        threads::apart(|| current().block_on(first), || current().block_on(second))
    }
}

impl Tasks for Tokio {
    type Handle<T: Send + 'static> = JoinHandle<T>;
    type Signal = Notify;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> JoinHandle<T> {
        tokio::spawn(job)
    }

    async fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        handle.await.expect("no task panics")
    }

    fn detach(handle: JoinHandle<()>) {
        drop(handle);
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }
}

impl Event for Notify {
    fn new() -> Self {
        Notify::new()
    }

    fn set(&self) {
        self.notify_one();
    }

    fn wait(&self) -> impl Future<Output = ()> + Send {
        self.notified()
    }
}
