//! smol: its executor, run by as many threads as there are workers, as its own global one is.

use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use smol::channel::{Sender, bounded};
use smol::future::yield_now;
use smol::{Executor, Task, Timer};

use super::threads;
use crate::compare::awaiting::asked::pairs::Event;
use crate::compare::awaiting::asked::{Host, starts};
use crate::compare::awaiting::{Boxed, Enter, Job, Tasks};

/// Tasks of the one executor.
pub(in crate::compare) struct Smol;

/// The threads that run it, until this is dropped.
pub(in crate::compare) struct Threads {
    stop: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// An event that lets one through for each time it is set; event-listener alone remembers nothing.
pub(in crate::compare) struct Flag {
    is_set: AtomicBool,
    event: event_listener::Event,
}

static EXECUTOR: Executor<'static> = Executor::new();

starts! { start = Smol, Threads, |workers| Threads::start(workers); }

impl Threads {
    pub(in crate::compare) fn start(workers: usize) -> Self {
        let (stop, stopped) = bounded::<()>(1);
        let run = |_| {
            let stopped = stopped.clone();
            // The error says that the sender is gone.
            thread::spawn(move || _ = smol::block_on(EXECUTOR.run(stopped.recv())))
        };
        Threads { stop: Some(stop), threads: (0..workers).map(run).collect() }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop = None;
        // A thread that panicked has reported it.
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

impl Enter for Threads {
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T {
        smol::block_on(EXECUTOR.spawn(job))
    }

    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration {
        threads::apart(|| smol::block_on(first), || smol::block_on(second))
    }
}

impl Tasks for Smol {
    type Handle<T: Send + 'static> = Task<T>;
    type Signal = Flag;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> Task<T> {
        EXECUTOR.spawn(job)
    }

    fn join<T: Send + 'static>(handle: Task<T>) -> impl Future<Output = T> + Send {
        handle
    }

    fn detach(handle: Task<()>) {
        handle.detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        yield_now()
    }

    async fn sleep(duration: Duration) {
        Timer::after(duration).await;
    }
}

impl Flag {
    /// Acquire: pairs with the Release in `set`. Release: nothing; a swap that fails to read it stores what
    /// was there.
    fn take(&self) -> bool {
        self.is_set.swap(false, AcqRel)
    }
}

impl Event for Flag {
    fn new() -> Self {
        Flag { is_set: AtomicBool::new(false), event: event_listener::Event::new() }
    }

    fn set(&self) {
        // Release: pairs with the Acquire in `take`. `notify` and `listen` have the fences between flag and
        // list.
        self.is_set.store(true, Release);
        self.event.notify(1);
    }

    async fn wait(&self) {
        while !self.take() {
            let listener = self.event.listen();
            if self.take() {
                return;
            }
            listener.await;
        }
    }
}
