//! Settings of hooks, watches, dumps and measurements.

#![forbid(unsafe_code)]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::runtime::builder::Builder;
use crate::runtime::deadlock::Deadlock;
use crate::runtime::dump_signal::ListenToSignal;
use crate::runtime::owner::Runtime;
use crate::runtime::watchdog::Stall;
use crate::scheduler::task_panic::TaskPanic;
use crate::tasks::hook_maker::{HookMaker, NewTask};
use crate::tasks::panic_log::PanicLog;
use crate::tasks::switch_hook::Switch;

impl<R: From<Runtime>> Builder<R> {
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

    /// Sets what makes a hook for each task, which runs around each run of that task.
    ///
    /// It is for what is tied to the thread but belongs to the task, in tasks that the program does not spawn itself. `make` runs
    /// at each spawn, in the spawner. So its hook may keep what the spawner had there. A hook's calls are those of
    /// [`task::Builder::on_switch`](crate::task::Builder::on_switch), with the same limits: it must not suspend. A task with a
    /// hook of its own has both: that of the runtime is called first at a switch in, and last at a switch out.
    ///
    /// The closure of an [`unblock`](crate::unblock), which runs on another thread, has a hook too, with one call before and one
    /// after it. Closures that the spawner itself runs have none, such as the second one of a [`join`](fn@crate::join) that no
    /// worker has begun. Nor have the tasks of this library that run no code of the program.
    ///
    /// A setting replaces the earlier one. A hook takes two allocations a task, and two calls a switch; without one a switch
    /// costs the same as ever.
    ///
    /// # Panics
    /// Not itself. A panic of `make`, so also an attempt to suspend in it, is one of the spawn. A panic of a hook ends the
    /// process.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::cell::Cell;
    /// thread_local! { static DEPTH: Cell<u32> = const { Cell::new(0) } }
    ///
    /// let runtime = fibra::Runtime::builder().workers(1).on_switch(|task| {
    ///     // Tasks of a scope begin one deeper than their spawner, other tasks at 0.
    ///     let mut other = if task.is_structured() { DEPTH.get() + 1 } else { 0 };
    ///     move |_| other = DEPTH.replace(other)
    /// });
    /// runtime.run(|| {
    ///     assert_eq!(DEPTH.get(), 1);
    ///     let child = fibra::scope(|scope| scope.spawn(|| DEPTH.get()).join().unwrap());
    ///     assert_eq!(child, 2);
    ///     assert_eq!(fibra::spawn(|| DEPTH.get()).join().unwrap(), 0);
    ///     assert_eq!(DEPTH.get(), 1);
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_switch<H>(mut self, make: impl Fn(&NewTask<'_>) -> H + Send + Sync + 'static) -> Self
    where
        H: FnMut(Switch) + Send + 'static,
    {
        self.config.on_switch = Some(HookMaker::new(make));
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
    /// from a terminal, or several, with commas between them; `SIGABRT` stands for
    /// [`dump_on_abort`](Builder::dump_on_abort). A plain thread prints it, so it also comes while all workers are stuck. A
    /// dump of more than a thousand tasks is [grouped](crate::task::Dump::grouped). The signal then does nothing else in this
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

    /// Prints a [dump](crate::Handle::dump) of all runtimes on standard error before the process aborts. Off unless set.
    ///
    /// It is for the whole process: for the reports of the runtime that end with an abort, a panic that must not unwind, a
    /// failed assertion of a C library, and every other `SIGABRT`. So it is with the environment variable `FIBRA_DUMP=SIGABRT`. The
    /// signal then does what it would have done without: the process leaves a core file, or a handler of the program runs.
    ///
    /// # Limits
    /// A thread that stands by prints it, while the thread that aborts waits for at most ten seconds. It prints nothing if it
    /// needs a lock that the aborting thread holds, such as that of the allocator or of standard error. It prints once. There is none
    /// for a `SIGKILL`, a fault, an `_exit`, an abort in a forked process, and where the program sets an action of `SIGABRT` later
    /// on. Other threads go on meanwhile. At a stack overflow it has the calls that have filled the stack; on
    /// aarch64 that stack may be cut short, since the link register is not known.
    ///
    /// # Errors
    /// [`build`](Builder::build) and [`run`](Builder::run) fail where a pipe or a thread cannot be had.
    ///
    /// # Examples
    /// ```no_run
    /// # use fibra_runtime as fibra;
    /// fibra::Runtime::builder().dump_on_abort(true).run(|| std::process::abort())?
    /// # ; Ok::<(), std::io::Error>(())
    /// ```
    pub fn dump_on_abort(mut self, dumps: bool) -> Self {
        self.dumps.on_abort = dumps;
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
}
