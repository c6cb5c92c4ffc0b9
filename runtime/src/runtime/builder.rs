//! Settings and start of a runtime.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::base::clock;
use crate::base::limit::MOST_WORKERS;
use crate::base::random;
use crate::base::sys;
use crate::blocking::pool;
use crate::runtime::deadlock::Deadlock;
use crate::runtime::dump_signal::{self, ListenToSignal};
use crate::runtime::handle::Handle;
use crate::runtime::owner::Runtime;
use crate::runtime::run;
use crate::runtime::shutdown;
use crate::runtime::start::Seed;
use crate::runtime::start::Starting;
use crate::runtime::start::WorkerThreads;
use crate::runtime::watchdog;
use crate::runtime::watchdog::Stall;
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
use crate::scheduler::task_panic::TaskPanic;
use crate::scheduler::virtual_time::VirtualTime;
use crate::sleep::back_off;
use crate::stack::guard::StackGuards;
use crate::stack::stacks;
use crate::stack::stacks::Stacks;
use crate::tasks::live_tasks::LiveTasks;
use crate::tasks::overflow_report;
use crate::tasks::panic_log::PanicLog;

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

    /// Sets the number of workers.
    ///
    /// Unless set it is the environment variable `FIBRA_WORKERS`, or else the number of
    /// processors that the process may use, and 4096 at the most.
    ///
    /// # Panics
    /// Panics if `workers` is 0 or more than 4096.
    #[track_caller]
    pub fn workers(mut self, workers: usize) -> Self {
        assert!(
            (1..=MOST_WORKERS).contains(&workers),
            "a runtime has 1 to {MOST_WORKERS} workers, not {workers}"
        );
        self.workers = Some(workers);
        self
    }

    /// Sets the size of the tasks' stacks in bytes of address space.
    ///
    /// The guard is included, and the size is rounded up to a power of two. Unless set it is 256 KiB,
    /// and 1 MiB in builds with debug assertions. Only what a task touches becomes memory, and most
    /// tasks need one page of 4 KiB. The main task has a [size of its own](Builder::main_stack_size).
    ///
    /// The lowest 16 KiB of a stack are its guard; up to 32 KiB the size is doubled, to make room for
    /// it. Rust code touches each page of its frames, so it never steps over a guard. A frame of C code
    /// that is larger than 16 KiB may, unless it is compiled with stack probes
    /// (`-fstack-clash-protection`). The guard does not catch that, whatever the size of the stack.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stacks.size = bytes;
        self
    }

    /// Sets the size of the stack of the main task, the closure of a `run`, in bytes of address space.
    ///
    /// The guard is included, and the size is rounded up to a power of two. 8 MiB unless set, as a main
    /// thread has. Only what the task touches becomes memory.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).main_stack_size(64 << 20);
    /// assert_eq!(runtime.run(|| std::hint::black_box([1_u8; 10 << 20]).len())?, 10 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn main_stack_size(mut self, bytes: usize) -> Self {
        self.config.main_stack_size = bytes;
        self
    }

    /// Limits the number of stacks over all workers. Unlimited unless set.
    ///
    /// A task without a stack waits for one in a queue. When no stack has become free for a second,
    /// it ends un-run, with an error that names the limit.
    pub fn max_stacks(mut self, stacks: usize) -> Self {
        self.stacks.max_stacks = Some(stacks);
        self
    }

    /// Sets how long a task that finds no stack waits for one; for tests.
    ///
    /// A busy machine may hold a test up for as long as the default.
    #[doc(hidden)]
    pub fn stack_patience(mut self, patience: Duration) -> Self {
        self.config.stack_patience = patience;
        self
    }

    /// Sets the seed of the workers' random choices, for tests and simulations.
    ///
    /// The seed is random unless set.
    #[doc(hidden)]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Sets what the stacks' guards are made of. [`StackGuards::Auto`] unless set.
    ///
    /// It is for tests of the fall-back.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::{Runtime, StackGuards};
    /// let runtime = Runtime::builder().workers(1).stack_guards(StackGuards::Protect).build()?;
    /// assert_eq!(runtime.spawn(|| 42).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_guards(mut self, guards: StackGuards) -> Self {
        self.stacks.guards = guards;
        self
    }

    /// Limits the number of live tasks. Unlimited unless set.
    ///
    /// A spawn beyond the limit returns a handle whose join fails. Tasks of the blocking pool and
    /// internal tasks are not counted.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::Runtime;
    /// let runtime = Runtime::builder().workers(1).max_tasks(2).build()?;
    /// runtime.run(|| {
    ///     let first = fibra::spawn(fibra::task::park);
    ///     let second = fibra::spawn(fibra::task::park);
    ///     assert!(second.join().unwrap_err().is_not_started());
    ///     first.cancel();
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.config.max_tasks = Some(tasks);
        self
    }

    /// Limits the threads of the blocking pool. 512 unless set.
    ///
    /// Calls that may never end, such as lookups of names and opens of FIFOs, have threads of their
    /// own with an equal limit. So closures always find threads.
    ///
    /// # Panics
    /// Panics if `threads` is 0.
    #[track_caller]
    pub fn max_blocking_threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "the blocking pool has one thread at the least");
        self.blocking.max_threads = threads;
        self
    }

    /// Sets how long an idle thread of the blocking pool is kept; 10 seconds if unset.
    pub fn blocking_keep_alive(mut self, keep: Duration) -> Self {
        self.blocking.keep_alive = keep;
        self
    }

    /// Limits the blocking pool to so many threads at a time; for tests.
    ///
    /// It stands for a system that has no more threads.
    #[doc(hidden)]
    pub fn startable_blocking_threads(mut self, threads: usize) -> Self {
        self.blocking.startable = threads;
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

    /// Sets what runs on each worker's thread before its first task.
    ///
    /// A panic of it fails the start.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// static STARTED: AtomicUsize = AtomicUsize::new(0);
    /// static STOPPED: AtomicUsize = AtomicUsize::new(0);
    /// let runtime = fibra::Runtime::builder()
    ///     .workers(2)
    ///     .on_worker_start(|| drop(STARTED.fetch_add(1, Ordering::Relaxed)))
    ///     .on_worker_stop(|| drop(STOPPED.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// runtime.shutdown();
    /// assert_eq!((STARTED.load(Ordering::Relaxed), STOPPED.load(Ordering::Relaxed)), (2, 2));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_worker_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.threads.on_start = Some(Arc::new(hook));
        self
    }

    /// Sets what runs on each worker's thread after its last task.
    pub fn on_worker_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.threads.on_stop = Some(Arc::new(hook));
        self
    }

    /// Sets what is done when a task of this runtime panics.
    ///
    /// The default is a line with the task's name and id, and then the message as the process's
    /// panic hook prints it.
    ///
    /// The hook is called before the task unwinds, on its worker's thread; waits block that thread
    /// in there. It is not called for a cancellation, nor for
    /// [`resume_unwind`](std::panic::resume_unwind). So it is not called for a panic in the closure
    /// of an [`unblock`](crate::unblock), which the hook of the process reports. A hook that the
    /// program sets with [`std::panic::set_hook`] after the first runtime was built replaces it.
    ///
    /// std forbids to change the panic hook on a thread that panics. So the first runtime of a
    /// process has no hook, and no line with the name, if it is built in a panic hook or in a
    /// destructor of a thread that panics. It gets both when another runtime is built elsewhere. And
    /// the first runtime is not to be built on a thread for which a panic hook waits: both would wait
    /// for ever.
    ///
    /// A panic of the hook ends the process, with a message: std allows none inside a panic hook.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::sync::{Arc, Mutex};
    /// let seen = Arc::new(Mutex::new(String::new()));
    /// let log = Arc::clone(&seen);
    /// let hook = move |panic: &fibra::TaskPanic<'_>| {
    ///     let line = panic.location().map_or(0, |place| place.line());
    ///     assert!(line > 0 && panic.payload().is::<&str>() && panic.task().name().is_none());
    ///     *log.lock().unwrap() = panic.message().unwrap_or("?").to_owned();
    /// };
    /// fibra::Runtime::builder().workers(1).on_task_panic(hook).run(|| {
    ///     assert!(fibra::spawn(|| panic!("out of luck")).join().unwrap_err().is_panic());
    /// })?;
    /// assert_eq!(*seen.lock().unwrap(), "out of luck");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_panic(mut self, hook: impl Fn(&TaskPanic<'_>) + Send + Sync + 'static) -> Self {
        self.config.on_task_panic = Some(Arc::new(hook));
        self
    }

    /// Collects the panics of tasks that no caller observes; for tests.
    #[doc(hidden)]
    pub fn panic_log(mut self, log: &PanicLog) -> Self {
        self.config.panic_log = Some(log.clone());
        self
    }

    /// Watches for tasks that hold their worker for longer than `limit`.
    ///
    /// A task holds its worker by computing, or by a call that blocks the thread. Each such stall
    /// is told once, by a line on standard error or by [`on_stall`](Builder::on_stall). Unless set it is
    /// one second in builds with debug assertions, and off in others. `Duration::MAX` turns it off.
    ///
    /// The thread looks four times per limit, and once a millisecond at the most. So a report is up
    /// to half a limit late, and a stall hardly longer than the limit may be missed. No report is
    /// false. A machine that gives the worker no processor makes a stall as well.
    /// [`Handle::stalls`](crate::runtime::handle::Handle::stalls) counts them.
    ///
    /// # Panics
    /// Panics if `limit` is zero.
    #[track_caller]
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        assert!(!limit.is_zero(), "every task holds its worker for longer than no time at all");
        self.threads.watch.limit = (limit < Duration::MAX).then_some(limit);
        self.threads.watch.is_required = true;
        self.config.watched = self.threads.watch.limit.is_some();
        self
    }

    /// Sets what is done at a stall, in place of a line on standard error.
    ///
    /// Does nothing where no [`stall_limit`](Builder::stall_limit) is in force.
    ///
    /// The hook runs on the watching thread, while the task goes on to hold its worker: it must not
    /// wait for that task, nor for other tasks of that worker. A panic of the hook is reported, and
    /// the watch goes on.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// let (told, stalls) = mpsc::channel();
    /// let runtime = fibra::Runtime::builder()
    ///     .workers(1)
    ///     .stall_limit(Duration::from_millis(5))
    ///     .on_stall(move |stall| drop(told.send((stall.worker(), stall.held(), stall.task().clone()))))
    ///     .build()?;
    /// runtime.run(|| std::thread::sleep(Duration::from_millis(50)));
    /// let (worker, held, task) = stalls.recv().unwrap();
    /// assert!(worker == 0 && held >= Duration::from_millis(5) && task.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_stall(mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.threads.watch.hook = Some(Arc::new(hook));
        self
    }

    /// Checks so often for tasks that wait for each other.
    ///
    /// Such a cycle is a likely deadlock: [`WaitGraph`](crate::task::WaitGraph) tells which ones are found, and what may be
    /// wrong. One that two checks in sequence have found, with each task in the same sleep, is told once: by lines on
    /// standard error, with the stacks of the tasks, or by [`on_deadlock`](Builder::on_deadlock). Unless set it is one second in
    /// builds with debug assertions and with a hook, and off in others. `Duration::MAX` turns it off.
    ///
    /// A thread checks, and tasks pay nothing for it. It looks at all tasks. So that this takes at most a twentieth of a
    /// processor, checks come later where there are many. There are none in a simulation.
    ///
    /// # Panics
    /// Panics if `period` is zero.
    #[track_caller]
    pub fn deadlock_check(mut self, period: Duration) -> Self {
        assert!(!period.is_zero(), "the checks for deadlocks need a period between them");
        self.threads.watch.deadlocks.period = Some(period);
        self
    }

    /// Sets what is done at a likely deadlock, in place of lines on standard error.
    ///
    /// The hook runs on the watching thread. It may end the deadlock, by a cancel of one of its tasks. It must not wait for
    /// them. A panic of the hook is reported, and the checks go on. [`deadlock_check`](Builder::deadlock_check) sets their
    /// period.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::sync::{Arc, mpsc};
    /// use std::time::Duration;
    /// let (told, reports) = mpsc::channel();
    /// let runtime = fibra::Runtime::builder()
    ///     .workers(1)
    ///     .deadlock_check(Duration::from_millis(5))
    ///     .on_deadlock(move |deadlock| {
    ///         told.send(deadlock.to_string()).unwrap();
    ///         deadlock.tasks().iter().for_each(|found| found.task().cancel());
    ///     })
    ///     .build()?;
    /// runtime.run(|| {
    ///     let group = Arc::new(fibra::TaskGroup::new());
    ///     let theirs = Arc::clone(&group);
    ///     // The only task of the group waits for a task of the group to end.
    ///     group.spawn(move || drop(theirs.join_next()));
    ///     assert!(group.join_next().unwrap().unwrap_err().is_cancelled());
    /// });
    /// assert!(reports.recv().unwrap().contains("a task waits for itself"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_deadlock(mut self, hook: impl Fn(&Deadlock) + Send + Sync + 'static) -> Self {
        self.threads.watch.deadlocks.hook = Some(Arc::new(hook));
        self
    }

    /// Prints a [dump](crate::Handle::dump) on standard error whenever the signal comes. Off unless set.
    ///
    /// Unless set the environment variable `FIBRA_DUMP` may name a signal, as in `FIBRA_DUMP=SIGQUIT`, which Ctrl-\ sends
    /// from a terminal. A plain thread prints it, so it also comes while all workers are stuck. A dump of more than a
    /// thousand tasks is [grouped](crate::task::Dump::grouped). The signal then does nothing else in this
    /// process, also after the runtime has ended. In a simulation it does nothing.
    ///
    /// # Errors
    /// [`build`](Builder::build) and [`run`](Builder::run) fail for a signal that cannot be listened to, for a variable that
    /// names none, and for a builder that is not of the crate `fibra`, which has the thread that listens.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let built = fibra::Runtime::builder().workers(1).dump_on_signal(3).build();
    /// // The crate `fibra-runtime` alone listens to no signals.
    /// assert_eq!(built.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    /// ```
    pub fn dump_on_signal(mut self, signal: i32) -> Self {
        self.dumps.signal = Some(signal);
        self
    }

    /// Sets how to listen to signals.
    #[doc(hidden)]
    pub fn listen_to_signals(mut self, listen: ListenToSignal) -> Self {
        self.dumps.listen = Some(listen);
        self
    }

    /// Measures how long tasks run without a stop and how long they wait for a run: one in `every` runs and wakes.
    ///
    /// Off unless set. [`WorkerMetrics::run_time`](crate::metrics::WorkerMetrics::run_time) and
    /// [`WorkerMetrics::schedule_delay`](crate::metrics::WorkerMetrics::schedule_delay) have the histograms. They take 1 KiB a
    /// worker, and about 15 ns a run if every run is measured, 4 to 8 ns with one in eight.
    ///
    /// # Panics
    /// Panics if `every` is 0.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).histograms(1).build()?;
    /// runtime.run(|| std::thread::sleep(std::time::Duration::from_millis(2)));
    /// let longest = || runtime.metrics().run_time().and_then(|runs| runs.quantile(1.0));
    /// while longest().is_none() {}
    /// assert!(longest().unwrap() >= std::time::Duration::from_millis(2));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn histograms(mut self, every: u32) -> Self {
        self.config.histograms =
            Some(NonZeroU32::new(every).expect("one in `every` is measured, which is at least 1"));
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
            reserve: Stacks::new(reserve)?,
            pool: pool::Pool::new(self.blocking, format!("{}-blocking", self.threads.name)),
            outside: Default::default(),
            live: Arc::new(LiveTasks::new(self.config.max_tasks)),
            started: clock::machine(),
            stalls: AtomicU64::new(0),
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
