//! A task pinned to each worker, so that a test can say where its tasks run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use fibra_runtime::{JoinHandle, Task, sleep, spawn, spawn_local, task, yield_now};

type Job = Box<dyn FnOnce() + Send>;

/// One task for each worker, that starts others there.
pub(crate) struct PinnedTasks(Vec<PinnedTask>);

struct PinnedTask {
    keeper: JoinHandle<()>,
    /// What the keeper is to do next; `None` for the end.
    jobs: Arc<Mutex<Vec<Option<Job>>>>,
}

/// Lets others run until `done`; for what no primitive tells.
pub(crate) fn until(done: impl Fn() -> bool) {
    for tries in 0.. {
        match tries {
            _ if done() => return,
            0..50 => yield_now(),
            _ => sleep(Duration::from_micros(20)),
        }
    }
}

impl PinnedTasks {
    /// Pins a task to each worker.
    pub(crate) fn take(workers: usize) -> PinnedTasks {
        // Each keeper holds its worker until all have one, and stays there.
        let (all, seated) = (Arc::new(Barrier::new(workers)), Arc::new(AtomicUsize::new(0)));
        let pinned = (0..workers).map(|_| {
            let (all, seated) = (Arc::clone(&all), Arc::clone(&seated));
            let jobs = Arc::new(Mutex::new(Vec::new()));
            let own = Arc::clone(&jobs);
            let keeper = spawn(move || {
                all.wait();
                seated.fetch_add(1, Ordering::SeqCst);
                keep(&own);
            });
            PinnedTask { keeper, jobs }
        });
        let pinned = PinnedTasks(pinned.collect());
        until(|| seated.load(Ordering::SeqCst) == workers);
        pinned
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Starts a task that stays on that worker.
    pub(crate) fn spawn_at<T: Send + 'static>(
        &self,
        worker: usize,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let started = Arc::new(Mutex::new(None));
        let start = Arc::clone(&started);
        self.0[worker].give(Some(Box::new(move || *start.lock().unwrap() = Some(spawn_local(f)))));
        until(|| started.lock().unwrap().is_some());
        let handle = started.lock().unwrap().take();
        handle.expect("it was there")
    }

    /// Ends the pinned tasks.
    pub(crate) fn leave(self) {
        for task in self.0 {
            task.give(None);
            task.keeper.join().unwrap();
        }
    }
}

impl PinnedTask {
    fn give(&self, job: Option<Job>) {
        self.jobs.lock().unwrap().push(job);
        let keeper: &Task = self.keeper.task();
        keeper.unpark();
    }
}

fn keep(jobs: &Mutex<Vec<Option<Job>>>) {
    loop {
        task::park();
        let given = std::mem::take(&mut *jobs.lock().unwrap());
        for job in given {
            match job {
                Some(job) => job(),
                None => return,
            }
        }
    }
}
