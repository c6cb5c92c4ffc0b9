//! The start of the workers' threads.

#![forbid(unsafe_code)]

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::base::clock;
use crate::base::limit::Refusal;
use crate::base::payload::guarded;
use crate::blocking::pool::Pool;
use crate::runtime::watchdog;
use crate::scheduler::driver_here;
use crate::scheduler::queue::Stealable;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::Worker;
use crate::stack::overflow;

pub(super) type Hook = Arc<dyn Fn() + Send + Sync>;

/// The threads of a runtime: their names, the hooks at their start and stop, and the watch over them.
pub(super) struct WorkerThreads {
    pub(super) name: String,
    pub(super) on_start: Option<Hook>,
    pub(super) on_stop: Option<Hook>,
    pub(super) watch: watchdog::Config,
}

/// One worker that is still to start.
pub(crate) struct Seed {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(super) stealable: Stealable,
    pub(super) threads: Arc<WorkerThreads>,
}

impl Seed {
    /// Makes the worker on the calling thread and gives it to `f`, between the hooks.
    pub(crate) fn grow(self, f: impl FnOnce(&Worker)) -> io::Result<()> {
        let _alternate = overflow::thread_setup()?;
        let config = &self.shared.config;
        let _pinned = config.pin.then(|| config.processors.pin(self.index));
        let _former = clock::enter(config.starts_paused);
        let worker = Worker::new(Arc::clone(&self.shared), self.index, self.stealable)?;
        call(&self.threads.on_start)?;
        f(&worker);
        if self.shared.ending.has_ended() {
            // The threads of the pool end with the workers.
            Pool::of(&self.shared).end();
        }
        // Its panic has been printed; there is nothing left to end.
        _ = call(&self.threads.on_stop);
        Ok(())
    }

    fn thread_name(&self) -> String {
        format!("{}-{}", self.threads.name, self.index)
    }
}

/// Runs a hook; its panic is an error of the start, or nothing that concerns the end.
fn call(hook: &Option<Hook>) -> io::Result<()> {
    let Some(hook) = hook else { return Ok(()) };
    guarded("a worker's start or stop hook", || hook())
}

/// Workers on their way to run, each on a thread of its own.
pub(crate) struct Starting {
    pub(super) threads: Vec<thread::JoinHandle<()>>,
    /// How many of the threads are workers'.
    workers: usize,
    /// Of each of those one message: that it runs, or why not.
    starts: mpsc::Receiver<io::Result<()>>,
    /// Whether there is a thread for each, and a watchdog, if there is to be one.
    begun: io::Result<()>,
}

impl Starting {
    /// Starts a thread for each seed, and has all workers watched.
    pub(super) fn begin(shared: &Arc<Shared>, seeds: Vec<Seed>, described: &WorkerThreads) -> Self {
        let (started, starts) = mpsc::channel();
        let mut threads = Vec::with_capacity(seeds.len());
        let mut begun = Ok(());
        for seed in seeds {
            let started = started.clone();
            let builder = thread::Builder::new().name(seed.thread_name());
            match driver_here::unpinned(|| builder.spawn(move || run_seed(seed, &started))) {
                Ok(thread) => threads.push(thread),
                Err(error) => begun = Err(Refusal::of_thread("a worker", error).into()),
            }
        }
        let workers = threads.len();
        match watchdog::start(shared, &described.name, &described.watch) {
            Ok(watch) => threads.extend(watch),
            Err(error) => begun = Err(error),
        }
        Starting { threads, workers, starts, begun }
    }

    /// Waits until all of them run. Called once.
    ///
    /// # Errors
    /// What one of them lacked. Those that run are to be ended then, and joined.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let begun = mem::replace(&mut self.begun, Ok(()));
        self.starts.iter().take(self.workers).fold(begun, Result::and)
    }

    /// Waits until their threads have ended.
    pub(super) fn join(self) {
        self.threads.into_iter().for_each(|thread| _ = thread.join());
    }
}

/// Runs one worker's thread: reports once whether it has started.
fn run_seed(seed: Seed, started: &mpsc::Sender<io::Result<()>>) {
    let result = seed.grow(|worker| {
        _ = started.send(Ok(()));
        worker.run();
    });
    if let Err(error) = result {
        _ = started.send(Err(error));
    }
}
