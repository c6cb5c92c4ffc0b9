//! The blocking pool: threads of its own for closures that block a thread.
//!
//! Grown on demand to a maximum, each thread kept for a while after its last job. Two kinds of job: a task
//! ([`spawn_blocking`](crate::spawn_blocking)), and a closure on the stack of a sleeping task ([`unblock`]).
//!
//! The end of the runtime waits for both, but not for a task that is a *call* ([`spawn_call`](crate::task::spawn_call)), which
//! may never end. Such a one owns all that it uses, so it is counted out as soon as it begins, and its thread, which has a
//! count of its own in the runtime's memory, is left behind. Whoever wants its result is a task himself, and that is waited for.

use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::current;
use crate::runtime::Shared;
use crate::task::{JoinError, Nature, Task, TaskRef, discard_here};
use crate::wait::{self, Asleep, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// How the pool is to be.
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config { max_threads: 512, keep_alive: Duration::from_secs(10) }
    }
}

/// The pool of one runtime.
pub(crate) struct Pool {
    config: Config,
    thread_name: String,
    state: Mutex<State>,
    work: Condvar,
    left: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    /// Idle threads that were told of a job and have not yet taken it.
    told: usize,
    /// Threads that are in a call. None begins one once the runtime is to end.
    calling: usize,
    running: Vec<Task>,
    ended: bool,
}

enum Job {
    Task(TaskRef),
    /// A [`Frame`] of some type, and the function that runs one of that type.
    Borrowed(NonNull<()>, unsafe fn(NonNull<()>)),
}

// SAFETY: a task that may run on the pool is `Send` by the bounds of `spawn_blocking`, and so is what `unblock` borrows.
unsafe impl Send for Job {}

impl Pool {
    pub(crate) fn new(config: Config, thread_name: String) -> Self {
        Pool { config, thread_name, state: Mutex::default(), work: Condvar::new(), left: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of users runs under the lock.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The tasks whose closures run on the pool now.
    pub(crate) fn running(&self) -> Vec<Task> {
        self.lock().running.clone()
    }

    /// The runtime is to end: tasks that wait for a thread are cancelled, that is, dropped by the next free thread. If every
    /// thread is in a call, which may never end, what waits gets others, as many as it could have had without the calls.
    pub(crate) fn begin_ending(&self, shared: &Arc<Shared>) {
        let mut state = self.lock();
        for job in &state.jobs {
            if let Job::Task(task) = job {
                task.header().set_cancelled();
            }
        }
        if state.threads == state.calling {
            let wanted = state.jobs.len().min(self.config.max_threads);
            state.threads += (0..wanted).take_while(|_| self.start_thread(shared).is_ok()).count();
        }
    }

    /// The runtime has ended: threads leave as soon as they have nothing to do.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.work.notify_all();
    }

    /// Waits until every thread has left the pool that is not in a call.
    pub(crate) fn wait_until_left(&self) {
        let mut state = self.lock();
        while state.threads > state.calling {
            state = self.left.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Queues `job` for a thread, starting one if none is free.
    ///
    /// # Errors
    /// When there is no thread at all and none can be started; the job is not queued then.
    fn submit(&self, shared: &Arc<Shared>, job: Job) -> Result<(), (io::Error, Job)> {
        let mut state = self.lock();
        if state.idle > state.told {
            state.told += 1;
            state.jobs.push_back(job);
            self.work.notify_one();
            return Ok(());
        }
        // At the end of the runtime nobody may have to wait for a call.
        let threads = state.threads - if shared.is_ending() { state.calling } else { 0 };
        if threads < self.config.max_threads {
            match self.start_thread(shared) {
                Ok(()) => state.threads += 1,
                Err(error) if threads == 0 => return Err((error, job)),
                // The threads there are will come to it.
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        Ok(())
    }

    fn start_thread(&self, shared: &Arc<Shared>) -> io::Result<()> {
        let shared = Arc::clone(shared);
        let builder = thread::Builder::new().name(self.thread_name.clone());
        builder.spawn(move || shared.blocking.work(&shared)).map(drop)
    }

    /// The life of one thread.
    fn work(&self, shared: &Arc<Shared>) {
        let _in_pool = current::enter_pool(shared);
        while let Some(job) = self.next_job() {
            match job {
                Job::Task(task) => self.run_task(shared, task),
                // SAFETY: the sleeper's frame stays until its wake lands, which is the last thing `run` does.
                Job::Borrowed(frame, run) => unsafe { run(frame) },
            }
        }
    }

    /// Waits for a job; `None` when the thread is to leave.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.ended {
                return self.leave(state);
            }
            state.idle += 1;
            let (back, timed_out) = self.wait(state);
            state = back;
            state.idle -= 1;
            if timed_out && state.told == 0 && state.jobs.is_empty() {
                return self.leave(state);
            }
            state.told = state.told.saturating_sub(1);
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let waited = self.work.wait_timeout(state, self.config.keep_alive);
        let (state, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        (state, timeout.timed_out())
    }

    fn leave(&self, mut state: MutexGuard<'_, State>) -> Option<Job> {
        state.threads -= 1;
        self.left.notify_all();
        None
    }

    fn run_task(&self, shared: &Arc<Shared>, task: TaskRef) {
        let handle = Task::counted(task);
        let is_call = task.header().nature == Nature::Call;
        if !self.begin(shared, &handle, is_call) {
            // SAFETY: taken from the queue by this thread alone, and never run; the runtime's count came with it.
            unsafe { discard_here(task, JoinError::cancelled(&handle)) };
            drop(handle);
            return shared.outside_ended();
        }
        if is_call {
            shared.outside_ended();
        }
        current::set_pool_task(Some(task));
        // SAFETY: as above.
        unsafe {
            (task.header().vtable.run)(task);
            task.release();
        }
        current::set_pool_task(None);
        if is_call {
            self.lock().calling -= 1;
            return;
        }
        self.lock().running.retain(|running| *running != handle);
        drop(handle);
        shared.outside_ended();
    }

    /// Notes that a task runs. False if it is not to.
    fn begin(&self, shared: &Shared, task: &Task, is_call: bool) -> bool {
        let mut state = self.lock();
        // Looked at under the lock: `begin_ending` takes it once the end has begun, and counts the calls.
        let begins = !task.as_ref().header().is_cancelled() && !shared.is_ending();
        match is_call {
            true => state.calling += usize::from(begins),
            false => state.running.extend(begins.then(|| task.clone())),
        }
        begins
    }
}

impl Shared {
    /// Queues a blocking task, or ends it with the reason why there is no thread for it.
    ///
    /// # Safety
    /// The task is new, and the caller gives the runtime's count.
    pub(crate) unsafe fn spawn_on_pool(self: &Arc<Self>, task: TaskRef) {
        let handle = Task::counted(task);
        let error = match self.admit_outside() {
            Err(_) => JoinError::cancelled(&handle),
            Ok(()) => match self.blocking.submit(self, Job::Task(task)) {
                Ok(()) => return,
                Err((error, _)) => {
                    self.outside_ended();
                    JoinError::not_started(&handle, error)
                }
            },
        };
        // SAFETY: never queued, so the stage and the runtime's count are this caller's.
        unsafe { discard_here(task, error) };
    }
}

/// The frame of one `unblock`.
struct Frame<F, T> {
    stage: UnsafeCell<Stage<F, T>>,
    wake: UnsafeCell<Option<RawWake>>,
}

enum Stage<F, T> {
    Waiting(F),
    Running,
    Done(Result<T, Box<dyn Any + Send>>),
}

impl<F: FnOnce() -> T, T> Frame<F, T> {
    /// Runs the closure, stores what came of it, and wakes the sleeper.
    ///
    /// # Safety
    /// Called once, on a frame of this type that was taken from the queue. It may be gone when this returns.
    unsafe fn run(this: NonNull<()>) {
        // SAFETY: the frame is alive until its sleeper is woken, and the one who took it from the queue has its cells for
        // itself: the sleeper looks at them before it has queued the frame and after it was woken.
        let frame = unsafe { this.cast::<Self>().as_ref() };
        // SAFETY: as above.
        let Stage::Waiting(f) = (unsafe { frame.stage.get().replace(Stage::Running) }) else {
            unreachable!("a job runs once")
        };
        let result = catch_unwind(AssertUnwindSafe(f));
        // SAFETY: as above.
        let wake = unsafe {
            *frame.stage.get() = Stage::Done(result);
            (*frame.wake.get()).take()
        };
        wake.expect("queued with its wake").wake();
    }
}

struct OnPool<'a, F, T> {
    shared: &'a Arc<Shared>,
    frame: &'a Frame<F, T>,
    refused: std::cell::Cell<bool>,
}

impl<F: FnOnce() -> T, T> OnPool<'_, F, T> {
    fn place(&self) -> NonNull<()> {
        NonNull::from(self.frame).cast()
    }
}

impl<F: FnOnce() -> T, T> WaitStrategy for OnPool<'_, F, T> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: not queued yet, so the cell is the sleeper's. The wake is used by who takes the job from the queue, and
        // `before_awake` answers `Served` once that has happened.
        unsafe { *self.frame.wake.get() = Some(me.raw()) };
        match self.shared.blocking.submit(self.shared, Job::Borrowed(self.place(), Frame::<F, T>::run)) {
            Ok(()) => Asleep::Stay,
            Err(_) => {
                self.refused.set(true);
                Asleep::Rouse
            }
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        let mut state = self.shared.blocking.lock();
        let place = state
            .jobs
            .iter()
            .position(|job| matches!(job, Job::Borrowed(place, _) if *place == self.place()));
        match place {
            Some(place) => {
                state.jobs.remove(place);
                Withdrawal::Withdrawn
            }
            None => Withdrawal::Served,
        }
    }
}

/// Runs `f` on a thread of the blocking pool while the calling task sleeps, and returns its value. For calls that
/// block a thread: reading a file, resolving a name, a long computation.
///
/// `f` may borrow from the task's stack: the task does not go on before `f` is done. On a plain thread, and when there is
/// no thread to be had for the pool, `f` runs in place.
///
/// # Cancellation
/// A cancellation point until `f` has started; from then on it runs to its end first.
///
/// # Panics
/// With the panic of `f`.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut text = String::new();
/// fibra::unblock(|| text.push_str("written on another thread"));
/// assert_eq!(text, "written on another thread");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn unblock<F, T>(f: F) -> T
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    if current::task().is_none() {
        return f();
    }
    // The pool may be quick: a closure that has started is not taken back for a cancel that was there before it.
    wait::cancellation_point();
    let Some(shared) = current::runtime() else { return f() };
    let frame = Frame { stage: UnsafeCell::new(Stage::Waiting(f)), wake: UnsafeCell::new(None) };
    let on_pool = OnPool { shared: &shared, frame: &frame, refused: std::cell::Cell::new(false) };
    if wait::sleep(&on_pool, None) == Waking::Cancelled {
        wait::unwind_cancelled()
    }
    match frame.stage.into_inner() {
        Stage::Done(Ok(value)) => value,
        Stage::Done(Err(payload)) => resume_unwind(payload),
        Stage::Waiting(f) => f(),
        Stage::Running => unreachable!("woken by the end of the closure"),
    }
}
