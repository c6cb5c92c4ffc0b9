//! Settings and start of a runtime.

#![forbid(unsafe_code)]

mod limits;
mod watches;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base::clock;
use crate::base::limit::MOST_WORKERS;
use crate::base::random;
use crate::base::sys;
use crate::blocking::pool;
use crate::runtime::dump_signal;
use crate::runtime::handle::Handle;
use crate::runtime::owner::Runtime;
use crate::runtime::run;
use crate::runtime::shutdown;
use crate::runtime::start::Seed;
use crate::runtime::start::Starting;
use crate::runtime::start::WorkerThreads;
use crate::runtime::watchdog;
use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::driver;
use crate::scheduler::driver::Factory;
use crate::scheduler::driver_here;
use crate::scheduler::ending::Ending;
use crate::scheduler::idle::Idle;
use crate::scheduler::oracle::Oracle;
use crate::scheduler::panics;
use crate::scheduler::queue;
use crate::scheduler::runtimes;
use crate::scheduler::shared::Config;
use crate::scheduler::shared::Shared;
use crate::scheduler::virtual_time::VirtualTime;
use crate::sleep::back_off;
use crate::stack::stacks;
use crate::stack::stacks::Stacks;
use crate::tasks::live_tasks::LiveTasks;
use crate::tasks::overflow_report;

/// Environment variable that sets the number of workers where the program does not.
const WORKERS_VARIABLE: &str = "FIBRA_WORKERS";

/// The usual stack of the main task: as much as the main thread of a program has.
const MAIN_STACK_SIZE: usize = 8 << 20;

/// Describes a runtime; made by `Runtime::builder`.
///
/// `R` is the type that [`build`](Builder::build) returns.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::time::Duration;
/// let runtime = fibra::Runtime::builder()
///     .workers(2)
///     .stack_size(64 << 10)
///     .max_stacks(1_000)
///     .max_blocking_threads(4)
///     .blocking_keep_alive(Duration::from_secs(1))
///     .thread_name("echo")
///     .pin_workers(true)
///     .polling(false)
///     .build()?;
/// let name = runtime.run(|| std::thread::current().name().map(String::from));
/// assert!(name.unwrap().starts_with("echo-"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Builder<R = Runtime> {
    workers: Option<usize>,
    stacks: stacks::Config,
    blocking: pool::Config,
    config: Config,
    threads: WorkerThreads,
    dumps: dump_signal::Config,
    built: PhantomData<fn() -> R>,
}

impl<R: From<Runtime>> Builder<R> {
    #[expect(clippy::new_without_default, reason = "made by `Runtime::builder`, as the docs say")]
    /// Starts with the defaults.
    pub fn new() -> Self {
        Builder {
            workers: None,
            stacks: stacks::Config::default(),
            blocking: pool::Config::default(),
            config: Config {
                driver: Arc::new(driver::no_io),
                seed: random::seed(),
                polling: true,
                max_tasks: None,
                stack_patience: Duration::from_secs(1),
                pin: false,
                processors: sys::Processors::of_caller(),
                on_switch: None,
                on_task_panic: None,
                panic_log: None,
                main_stack_size: MAIN_STACK_SIZE,
                end_within: None,
                watched: watchdog::Config::default().limit.is_some(),
                histograms: None,
                starts_paused: false,
                oracle: None,
            },
            threads: WorkerThreads {
                name: "fibra".to_owned(),
                on_start: None,
                on_stop: None,
                watch: watchdog::Config::default(),
            },
            dumps: dump_signal::Config::default(),
            built: PhantomData,
        }
    }

    /// Sets the seed of the workers' random choices, for tests and simulations.
    ///
    /// The seed is random unless set.
    #[doc(hidden)]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Sets the names of the threads. "fibra" unless set.
    ///
    /// Worker `i` is `name-i`, threads of the pool are `name-blocking`.
    ///
    /// # Panics
    /// Panics if there is a NUL in the name.
    #[track_caller]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(!name.contains('\0'), "no system takes a name of a thread with a NUL in it: {name:?}");
        self.threads.name = name;
        self
    }

    /// Pins each worker to one processor. Off unless set.
    ///
    /// Worker `i` gets the `i`-th processor that the building thread may use. A worker of another
    /// runtime builds it as the thread would that has built its own. What workers start is not
    /// pinned. Does nothing where the system cannot do it.
    pub fn pin_workers(mut self, pin: bool) -> Self {
        self.config.pin = pin;
        self
    }

    /// Sets how long the end of the runtime may take: from the return of the main task, or the begin of
    /// the drop, until all tasks have ended.
    ///
    /// When it takes longer, the process reports on standard error every task that is left and what it
    /// waits for, and exits with code 1. No destructor of these tasks runs then. So two tasks that wait
    /// for each other's mutex do not keep a process for ever. `Duration::MAX` is no limit.
    ///
    /// Unless set it is one minute for a runtime that [`run`](Builder::run) of the builder makes, and no
    /// limit for one that [`build`](Builder::build) makes.
    ///
    /// [`shutdown_timeout`](Runtime::shutdown_timeout) has a limit of its own, and exits nothing.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::time::Duration;
    /// let within = fibra::Runtime::builder().workers(1).end_within(Duration::from_secs(10));
    /// assert_eq!(within.run(|| fibra::spawn(fibra::task::park).task().is_finished())?, false);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn end_within(mut self, limit: Duration) -> Self {
        self.config.end_within = Some(limit);
        self
    }

    /// Starts the runtime in virtual time, with its clock paused. Off unless set.
    ///
    /// Such a runtime has one worker. [`fibra::time`](crate::time#virtual-time) says what moves the clock.
    ///
    /// # Errors
    /// [`build`](Builder::build) and [`run`](Builder::run) fail where [`workers`](Builder::workers) sets more than one.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::time::{Duration, now, sleep};
    /// let hour = Duration::from_secs(3600);
    /// let slept = fibra::Runtime::builder().start_paused(true).run(|| {
    ///     let begin = now();
    ///     sleep(hour);
    ///     now() - begin
    /// })?;
    /// assert!(slept >= hour && slept < hour + Duration::from_millis(1));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start_paused(mut self, paused: bool) -> Self {
        self.config.starts_paused = paused;
        self
    }

    /// Simulates: `oracle` chooses the next task. The runtime has one worker, in virtual time, and no blocking pool.
    #[doc(hidden)]
    pub fn oracle(mut self, oracle: Arc<dyn Oracle>) -> Self {
        self.config.oracle = Some(oracle);
        self.start_paused(true).polling(false)
    }

    /// Allows or forbids workers to poll a little before they sleep.
    ///
    /// Allowed unless set. Workers never poll where the machine has one processor, or the process
    /// fewer than workers.
    pub fn polling(mut self, allowed: bool) -> Self {
        self.config.polling = allowed;
        self
    }

    /// Sets how workers wait for the outside world. Without it there is no I/O.
    pub fn driver(mut self, factory: impl Factory) -> Self {
        self.config.driver = Arc::new(factory);
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// Fails when a thread, a driver or a descriptor for it cannot be had, and when the stack size
    /// fits no address space. The error names the limit that was reached, and has the system's own,
    /// with its code, as its [`source`](std::error::Error::source).
    pub fn build(self) -> io::Result<R> {
        let (shared, seeds, threads) = self.prepare()?;
        let mut starting = Starting::begin(&shared, seeds, &threads);
        let started = starting.wait();
        if let Err(error) = started {
            shutdown::end_unstarted(&shared);
            starting.join();
            return Err(error);
        }
        Ok(Runtime { handle: Handle::new(&shared), threads: starting.threads }.into())
    }

    /// Builds the runtime with the calling thread as worker 0, and runs `f` there.
    ///
    /// `f` is the first task. The runtime ends when `f` returns: what is left is cancelled and
    /// unwound. `f` and its value need be neither `Send` nor `'static`.
    ///
    /// # Errors
    /// As for [`build`](Builder::build).
    ///
    /// # Panics
    /// Resumes a panic of `f`. Panics when called from a task.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let text = String::from("borrowed");
    /// let length = fibra::Runtime::builder().workers(1).run(|| text.len())?;
    /// assert_eq!(length, 8);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn run<F, T>(self, f: F) -> io::Result<T>
    where
        F: FnOnce() -> T,
    {
        run::refuse_inside_a_task();
        let (shared, mut seeds, threads) = self.prepare()?;
        let here = seeds.remove(0);
        run::run_here(here, Starting::begin(&shared, seeds, &threads), f)
    }

    fn prepare(mut self) -> io::Result<(Arc<Shared>, Vec<Seed>, Arc<WorkerThreads>)> {
        let usable = driver_here::unpinned(sys::usable_processors);
        let workers = match self.workers {
            Some(workers) => workers,
            None if self.config.starts_paused => 1,
            None => default_workers(usable),
        };
        if self.config.starts_paused && workers > 1 {
            let message = format!("virtual time needs a runtime with one worker, not {workers}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.config.polling &= sys::may_poll(workers, usable);
        self.config.processors = current::with_worker(|worker| worker.shared().config.processors)
            .unwrap_or_else(sys::Processors::of_caller);
        // Before any thread is pinned.
        back_off::count_processors();
        panics::install_hook();
        overflow_report::install()?;
        let queues: Vec<queue::Stealable> = (0..workers).map(|_| queue::Stealable::of(workers)).collect();
        let block = |(index, queue): (usize, &queue::Stealable)| {
            Arc::new(Block::new(index, queue.thief(), self.config.histograms))
        };
        let blocks: Box<[_]> = queues.iter().enumerate().map(block).collect();
        let reserve = stacks::Config { max_stacks: None, ..self.stacks.clone() };
        let shared = Arc::new(Shared {
            injector: queue::Shared::new(),
            idle: Idle::new(workers),
            stacks: Stacks::new(self.stacks)?,
            stack_queue: Default::default(),
            reserve: Stacks::new(reserve)?,
            pool: pool::Pool::new(self.blocking, format!("{}-blocking", self.threads.name)),
            outside: Default::default(),
            live: Arc::new(LiveTasks::new(self.config.max_tasks)),
            started: clock::machine(),
            stalls: AtomicU64::new(0),
            recorder: Mutex::new(None),
            ending: Ending::new(),
            virtual_time: VirtualTime::new(&blocks[0]),
            blocks,
            config: self.config,
        });
        self.dumps.start(&shared)?;
        runtimes::add(&shared);
        let threads = Arc::new(self.threads);
        let seed = |(index, stealable)| Seed {
            shared: Arc::clone(&shared),
            index,
            stealable,
            threads: Arc::clone(&threads),
        };
        let seeds = queues.into_iter().enumerate().map(seed).collect();
        Ok((shared, seeds, threads))
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("stacks", &self.stacks)
            .finish_non_exhaustive()
    }
}

fn default_workers(usable: usize) -> usize {
    let set = std::env::var(WORKERS_VARIABLE).ok().and_then(|text| text.trim().parse().ok());
    let set = set.filter(|workers| (1..=MOST_WORKERS).contains(workers));
    set.unwrap_or(usable.min(MOST_WORKERS))
}

impl Runtime {
    /// Starts to describe a runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }
}
