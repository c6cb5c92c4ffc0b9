//! The queue of the blocking pool, and the number of its threads.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use crate::base::limit::Refusal;
use crate::scheduler::current;
use crate::scheduler::driver_here;
use crate::scheduler::shared::Shared;
use crate::tasks::header::{Nature, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::raw::discard_here;
use crate::tasks::task::Task;

/// Settings of a pool.
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    /// Threads that can be started until the system has no more; for tests.
    pub(crate) startable: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { max_threads: 512, keep_alive: Duration::from_secs(10), startable: usize::MAX }
    }
}

/// Pool of one runtime. The runtime and each thread of the pool hold it.
pub(crate) struct Pool {
    config: Config,
    thread_name: String,
    lives: Lives,
    state: Mutex<State>,
    work: Condvar,
    let_go: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// Queued jobs by ticket, so that a job is withdrawn in logarithmic time.
    jobs: BTreeMap<Ticket, Job>,
    /// Ticket of the next job.
    next: Ticket,
    pub(super) threads: usize,
    /// Started threads that have not looked for a job yet.
    coming: usize,
    idle: usize,
    /// Idle threads that were told of a job and have not yet taken it.
    told: usize,
    /// Threads that are in a call, and do not count against the maximum.
    ///
    /// Once the runtime is to end, only sheltered calls begin.
    pub(super) calling: usize,
    /// Calls that have a thread or are queued for one.
    calls: usize,
    /// Queue of the second pool: calls beyond its maximum. Each end of a call moves one to `jobs`.
    later: VecDeque<Job>,
    /// True once the runtime is to end: calls need not be waited for.
    is_ending: bool,
    /// Threads that hold the runtime: those outside of calls, and those about to leave or to begin
    /// one.
    pub(super) holding: usize,
    pub(super) running: Vec<Task>,
    pub(super) ended: bool,
    /// Threads started so far.
    started: usize,
}

impl State {
    fn push(&mut self, job: Job) -> Ticket {
        self.calls += usize::from(job.is_call());
        let ticket = self.next;
        self.next += 1;
        self.jobs.insert(ticket, job);
        ticket
    }

    /// Returns how many threads count against the maximum.
    fn others(&self) -> usize {
        self.threads - self.calling
    }

    /// Takes out the queued jobs if all threads are in calls, which may never end.
    fn strand(&mut self, lacking: Option<Refusal>) -> Stranded {
        if self.threads > self.calling {
            return Stranded::none();
        }
        let mut jobs: VecDeque<Job> = std::mem::take(&mut self.jobs).into_values().collect();
        self.calls -= jobs.iter().filter(|job| job.is_call()).count();
        if self.calls == 0 {
            // No call is left whose end would queue these.
            jobs.append(&mut self.later);
        }
        Stranded { jobs, lacking }
    }

    /// Counts a call out, and queues the next one.
    ///
    /// The calling thread has ended a call, or did not begin it, and takes a job next.
    pub(super) fn end_call(&mut self) {
        self.calls -= 1;
        if let Some(next) = self.later.pop_front() {
            self.push(next);
        }
    }
}

/// Numbers the jobs of a pool in the order of their arrival.
pub(super) type Ticket = u64;

pub(super) enum Job {
    Task(TaskRef),
    Borrowed(Borrowed),
}

impl Job {
    fn task(&self) -> Option<TaskRef> {
        match self {
            Job::Task(task) => Some(*task),
            Job::Borrowed(_) => None,
        }
    }

    /// Returns the task of a job that the end of the runtime ends un-run.
    fn unwanted(&self) -> Option<TaskRef> {
        self.task().filter(|task| !task.header().is_sheltered())
    }

    fn is_call(&self) -> bool {
        self.task().is_some_and(|task| task.header().nature == Nature::Call)
    }
}

// SAFETY: a task that may run on the pool is `Send` by the bounds of `spawn_blocking`, and so is what `unblock` borrows.
unsafe impl Send for Job {}

/// Jobs without a thread. To be ended without the pool's lock.
#[must_use = "who waits for them would wait for ever"]
pub(super) struct Stranded {
    jobs: VecDeque<Job>,
    /// Why no thread could be started; `None` at the end of the runtime.
    lacking: Option<Refusal>,
}

impl Stranded {
    fn none() -> Self {
        Stranded { jobs: VecDeque::new(), lacking: None }
    }

    /// Gives the closures back to their sleepers, and ends the tasks.
    pub(super) fn end(self, shared: &Shared) {
        let mut unrun = Vec::new();
        for job in self.jobs {
            match job {
                Job::Task(task) => unrun.push(task),
                Job::Borrowed(borrowed) => borrowed.give_back(),
            }
        }
        // Last: their destructors may wait for the tasks above.
        for task in unrun {
            match &self.lacking {
                Some(refusal) => end_refused(shared, task, refusal.clone()),
                None => end_unrun(shared, task),
            }
        }
    }
}

/// Closure on the stack of a task that sleeps for it.
pub(super) struct Borrowed {
    frame: NonNull<()>,
    run: unsafe fn(NonNull<()>),
    give_back: unsafe fn(NonNull<()>),
}

impl Borrowed {
    /// # Safety
    /// One of the functions may be called with the frame, once, on any thread.
    pub(super) unsafe fn new(
        frame: NonNull<()>,
        run: unsafe fn(NonNull<()>),
        give_back: unsafe fn(NonNull<()>),
    ) -> Self {
        Borrowed { frame, run, give_back }
    }

    /// Runs the closure and wakes its task.
    pub(super) fn run(self) {
        // SAFETY: the contract of `new` allows one call, and this one uses `self` up.
        unsafe { (self.run)(self.frame) }
    }

    /// Wakes the task, which runs the closure itself.
    fn give_back(self) {
        // SAFETY: as in `run`.
        unsafe { (self.give_back)(self.frame) }
    }
}

impl Pool {
    /// Returns the pool of a runtime.
    pub(crate) fn of(shared: &Shared) -> Arc<Pool> {
        Arc::clone(&shared.pool).downcast().expect("a runtime is made with a pool of this type")
    }

    pub(super) fn new(config: Config, thread_name: String, lives: Lives) -> Arc<Self> {
        let (state, work, let_go) = (Mutex::default(), Condvar::new(), Condvar::new());
        Arc::new(Pool { config, thread_name, lives, state, work, let_go })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No code of users runs under the lock.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the tasks that run on the pool now.
    pub(crate) fn running(&self) -> Vec<Task> {
        self.lock().running.clone()
    }

    /// Cancels the queued tasks, for the end of the runtime.
    ///
    /// The next free thread drops them, or an extra thread: all present ones may wait for just
    /// these tasks. Threads in calls, which may never end, do not keep closures from a thread.
    /// Where no thread can be had, the queued jobs end here.
    pub(crate) fn begin_ending(self: &Arc<Self>, shared: &Arc<Shared>) {
        let (stranded, ends_here) = {
            let mut state = self.lock();
            state.is_ending = true;
            let later = std::mem::take(&mut state.later);
            later.into_iter().for_each(|job| _ = state.push(job));
            let stranded = self.see_to_wanted(&mut state, shared);
            let tasks = state.jobs.values().filter_map(Job::unwanted);
            let waiting = tasks.inspect(|task| task.header().marks.set_cancelled()).count();
            (stranded, waiting > 0 && self.start(&mut state, shared, self.lives.end_tasks).is_err())
        };
        stranded.end(shared);
        if ends_here {
            self.end_tasks(shared);
        }
    }

    /// Wakes or starts a thread for each job that the end of the runtime lets run, up to the
    /// maximum.
    ///
    /// If all threads are in calls after that, it takes out the queued jobs.
    fn see_to_wanted(self: &Arc<Self>, state: &mut State, shared: &Arc<Shared>) -> Stranded {
        let wanted = state.jobs.values().filter(|job| job.unwanted().is_none()).count();
        if wanted == 0 {
            return Stranded::none();
        }
        let untold = wanted.saturating_sub(state.told + state.coming);
        let told = untold.min(state.idle.saturating_sub(state.told));
        state.told += told;
        (0..told).for_each(|_| self.work.notify_one());
        let room = self.config.max_threads.saturating_sub(state.others());
        let lacking = (untold - told).min(room);
        _ = (0..lacking).try_for_each(|_| self.start_thread(state, shared));
        state.strand(None)
    }

    /// Ends the queued tasks one by one. Other threads may take some: destructors may wait for
    /// other tasks.
    pub(super) fn end_tasks(&self, shared: &Shared) {
        while let Some(task) = self.take_task() {
            end_unrun(shared, task);
        }
    }

    fn take_task(&self) -> Option<TaskRef> {
        let mut state = self.lock();
        let ticket = *state.jobs.iter().find(|(_, job)| job.unwanted().is_some())?.0;
        let job = state.jobs.remove(&ticket)?;
        if job.is_call() {
            state.end_call();
        }
        job.unwanted()
    }

    /// Notes that the runtime has ended: threads leave as soon as they have nothing to do.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.work.notify_all();
    }

    /// Waits until no thread holds the runtime: all but those in calls have left the pool.
    pub(crate) fn wait_until_let_go(&self) {
        let mut state = self.lock();
        while state.holding > 0 {
            state = self.let_go.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Notes that the calling thread has released the runtime.
    pub(super) fn let_go(&self) {
        let mut state = self.lock();
        state.holding -= 1;
        if state.ended && state.holding == 0 {
            self.let_go.notify_all();
        }
    }

    /// Queues `job`, and starts a thread if none is free. Returns its ticket, which closures alone
    /// use.
    ///
    /// # Errors
    /// Fails if no thread can be started and all present ones are in calls, which may never end. At
    /// the end of the runtime it refuses a task that is not sheltered, with `None`. The job is not
    /// queued then.
    pub(super) fn submit(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        job: Job,
    ) -> Result<Ticket, Option<Refusal>> {
        let mut state = self.lock();
        // The thread that ends the tasks queued before may have finished already.
        if state.is_ending && job.unwanted().is_some() {
            return Err(None);
        }
        if job.is_call() && state.calls >= self.config.max_threads && !state.is_ending {
            state.later.push_back(job);
            return Ok(state.next);
        }
        if state.idle > state.told {
            state.told += 1;
            self.work.notify_one();
            return Ok(state.push(job));
        }
        if state.others() < self.config.max_threads
            && let Err(error) = self.start_thread(&mut state, shared)
            && state.threads == state.calling
        {
            return Err(Some(error));
        }
        // If no thread could be started, a present one takes the job later.
        Ok(state.push(job))
    }

    /// Takes back the closure with that ticket. Returns false if a thread has it.
    pub(super) fn withdraw(&self, ticket: Ticket) -> bool {
        self.lock().jobs.remove(&ticket).is_some()
    }

    /// Counts the calling thread into a call, and starts another thread for the queue.
    ///
    /// The call may wait for a queued job. Below the maximum the queue gets another thread. Where
    /// the system has none, the jobs wait for the next free thread, unless all are in calls: then
    /// it takes them out.
    pub(super) fn begin_call(self: &Arc<Self>, state: &mut State, shared: &Arc<Shared>) -> Stranded {
        state.calling += 1;
        let is_left_alone = state.jobs.len() > state.told + state.coming;
        if is_left_alone
            && state.others() < self.config.max_threads
            && let Err(error) = self.start_thread(state, shared)
        {
            return state.strand(Some(error));
        }
        Stranded::none()
    }

    fn start_thread(self: &Arc<Self>, state: &mut State, shared: &Arc<Shared>) -> Result<(), Refusal> {
        self.start(state, shared, self.lives.work)?;
        state.threads += 1;
        state.coming += 1;
        Ok(())
    }

    /// Starts a thread that holds the runtime, for `life`.
    fn start(self: &Arc<Self>, state: &mut State, shared: &Arc<Shared>, life: Life) -> Result<(), Refusal> {
        if state.started >= self.config.startable {
            return Err(refusal(io::ErrorKind::WouldBlock.into()));
        }
        start(self, shared, &self.thread_name, life)?;
        state.started += 1;
        state.holding += 1;
        Ok(())
    }

    /// Waits for a job, by a thread of the pool, for the first time if it `is_new`; `None` when it is to leave.
    pub(super) fn next_job(&self, is_new: bool) -> Option<Job> {
        let mut state = self.lock();
        state.coming -= usize::from(is_new);
        loop {
            if let Some((_, job)) = state.jobs.pop_first() {
                return Some(job);
            }
            if state.ended || state.others() > self.config.max_threads {
                break;
            }
            state.idle += 1;
            let (back, timed_out) = self.wait(state);
            state = back;
            state.idle -= 1;
            if timed_out && state.told == 0 && state.jobs.is_empty() {
                break;
            }
            state.told = state.told.saturating_sub(1);
        }
        state.threads -= 1;
        None
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let waited = self.work.wait_timeout(state, self.config.keep_alive);
        let (state, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        (state, timeout.timed_out())
    }
}

/// Ends a task that was taken from the queue and is not to run.
pub(super) fn end_unrun(shared: &Shared, task: TaskRef) {
    end_with(shared, task, |task| JoinError::cancelled(task));
}

/// Ends one for which there is no thread.
fn end_refused(shared: &Shared, task: TaskRef, lacking: Refusal) {
    end_with(shared, task, |task| JoinError::not_started(task, lacking.into()));
}

fn end_with(shared: &Shared, task: TaskRef, outcome: impl FnOnce(&Task) -> JoinError) {
    let handle = Task::counted(task);
    // SAFETY: taken from the queue by this thread alone, and never run; the runtime's count came with it.
    unsafe { discard_here(task, outcome(&handle)) };
    drop(handle);
    shared.outside_ended();
}

/// What a thread does, with the runtime that it holds, until it lets go of that.
pub(super) type Life = fn(&Arc<Pool>, Arc<Shared>, &Weak<Shared>);

/// The two lives of a thread of the pool.
pub(super) struct Lives {
    /// Does what is queued, for as long as the thread is kept.
    pub(super) work: Life,
    /// Ends the tasks that have not run at the end of the runtime.
    pub(super) end_tasks: Life,
}

/// Starts one, which the caller counts.
///
/// # Errors
/// Fails when the system has no thread.
fn start(pool: &Arc<Pool>, shared: &Arc<Shared>, name: &str, life: Life) -> Result<(), Refusal> {
    let (pool, shared) = (Arc::clone(pool), Arc::clone(shared));
    let builder = thread::Builder::new().name(name.to_owned());
    let started = driver_here::unpinned(|| builder.spawn(move || live(&pool, shared, life)));
    started.map(drop).map_err(refusal)
}

/// Why a thread of the pool does not start.
fn refusal(cause: io::Error) -> Refusal {
    Refusal::of_thread("a thread of the blocking pool", cause)
}

fn live(pool: &Arc<Pool>, shared: Arc<Shared>, life: Life) {
    let runtime = Arc::downgrade(&shared);
    let _in_pool = current::enter_pool(&runtime);
    life(pool, shared, &runtime);
}
