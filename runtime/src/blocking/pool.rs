//! The queues of the blocking pool, and its threads.
//!
//! There are two pools in one: *lanes*, each with a queue and threads of its own, limited to the same number. A
//! thread of a lane is busy with a job or idle. A job is queued, and a thread is started for it unless more
//! threads are idle than jobs are queued.

#![forbid(unsafe_code)]

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::base::limit::Refusal;
use crate::base::payload::drop_quietly;
use crate::base::sys;
use crate::blocking::job::{Job, Queued};
use crate::blocking::pool_metrics::PoolMetrics;
use crate::scheduler::current;
use crate::scheduler::driver_here;
use crate::scheduler::shared::{OnThread, PoolThreads, Shared};
use crate::tasks::join_error::JoinError;
use crate::tasks::task::Task;

/// Settings of a pool.
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    /// Threads that the system has for both lanes; for tests.
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
    state: Mutex<State>,
    /// Wakes idle threads of a lane.
    work: [Condvar; 2],
    let_go: Condvar,
}

/// Numbers the lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Jobs that end by themselves.
    Ends,
    /// Calls that may never end.
    MayNotEnd,
}

impl Kind {
    fn of(job: &Job) -> Self {
        if matches!(job, Job::Call(_)) { Kind::MayNotEnd } else { Kind::Ends }
    }
}

#[derive(Default)]
struct State {
    lanes: [Lane; 2],
    /// Ticket of the next job.
    next: Ticket,
    /// True once the runtime is to end: then only sheltered tasks begin.
    is_ending: bool,
    ended: bool,
    /// Threads that hold the runtime: all but those in calls.
    holding: usize,
    /// Tasks that run, with their threads.
    running: Vec<OnThread>,
    /// Calls that run.
    calls: Vec<OnThread>,
}

#[derive(Default)]
struct Lane {
    /// Queued jobs by ticket, so that a job is withdrawn in logarithmic time, with the time of their arrival.
    jobs: BTreeMap<Ticket, (Job, Instant)>,
    threads: usize,
    /// Threads that have a job. The others are idle, those that start included.
    busy: usize,
    /// Jobs that a thread has taken, and how long they were queued.
    taken: u64,
    waited: Duration,
}

impl Lane {
    fn idle(&self) -> usize {
        self.threads - self.busy
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(|(job, _)| job)
    }
}

/// Numbers the jobs of a pool in the order of their arrival.
pub(super) type Ticket = u64;

impl Pool {
    /// Makes a pool; it has no threads until there is work.
    pub(crate) fn new(config: Config, thread_name: String) -> Arc<Self> {
        let (state, work, let_go) = (Mutex::default(), Default::default(), Condvar::new());
        Arc::new(Pool { config, thread_name, state, work, let_go })
    }

    /// Returns the pool of a runtime.
    pub(crate) fn of(shared: &Shared) -> Arc<Pool> {
        (Arc::clone(&shared.pool) as Arc<dyn Any + Send + Sync>)
            .downcast()
            .expect("a runtime is made with a pool of this type")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of users runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tasks that run on the pool now.
    pub(crate) fn running(&self) -> Vec<Task> {
        self.lock().running.iter().map(|(task, _)| task.clone()).collect()
    }

    /// Returns the tasks that run on the pool or are queued, and the calls that run, which count as ended.
    pub(crate) fn tasks(&self) -> (Vec<Task>, Vec<Task>) {
        let state = self.lock();
        let handles = |running: &[OnThread]| running.iter().map(|(task, _)| task.clone()).collect();
        let (mut tasks, calls): (Vec<_>, _) = (handles(&state.running), handles(&state.calls));
        tasks.extend(state.lanes.iter().flat_map(Lane::jobs).filter_map(Job::task).map(Queued::handle));
        (tasks, calls)
    }

    /// Returns the numbers of each lane: that of the jobs that end, and that of the calls.
    pub(crate) fn metrics(&self) -> [PoolMetrics; 2] {
        self.lock().lanes.each_ref().map(|lane| PoolMetrics {
            threads: lane.threads as u64,
            idle: lane.idle() as u64,
            queued: lane.jobs.len() as u64,
            taken: lane.taken,
            waited: lane.waited,
        })
    }

    /// Queues `job`, and starts a thread if none is free. Returns its ticket.
    ///
    /// # Errors
    /// Gives the job back, with the reason, if no thread can be started and none is sure to come: all present
    /// threads are in calls, or there are none. At the end of the runtime it refuses a task that is not
    /// sheltered, without a reason.
    pub(super) fn submit(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        job: Job,
    ) -> Result<Ticket, (Job, Option<Refusal>)> {
        let mut state = self.lock();
        if state.is_ending && job.task().is_some_and(|task| !task.is_sheltered()) {
            return Err((job, None));
        }
        let kind = Kind::of(&job);
        let lane = &state.lanes[kind as usize];
        let (threads, has_idle) = (lane.threads, lane.idle() > lane.jobs.len());
        if has_idle {
            self.work[kind as usize].notify_one();
        } else if (threads < self.config.max_threads || state.lifts_limit(kind))
            && let Err(refusal) = self.start_thread(&mut state, shared, kind)
            && (threads == 0 || kind == Kind::MayNotEnd)
        {
            return Err((job, Some(refusal)));
        }
        let ticket = state.next;
        state.next += 1;
        state.lanes[kind as usize].jobs.insert(ticket, (job, clock::machine()));
        Ok(ticket)
    }

    /// Takes back the closure with that ticket. Returns false if a thread has it.
    pub(super) fn withdraw(&self, ticket: Ticket) -> bool {
        self.lock().lanes[Kind::Ends as usize].jobs.remove(&ticket).is_some()
    }

    /// Cancels the queued tasks, for the end of the runtime.
    ///
    /// The next free thread drops them, or an extra thread: all present ones may wait for just these tasks.
    /// Sheltered calls get threads beyond the limit, whose threads may never come back. Where no thread can be
    /// had, the tasks end here.
    pub(crate) fn begin_ending(self: &Arc<Self>, shared: &Arc<Shared>) {
        let mut state = self.lock();
        state.is_ending = true;
        let calls = &state.lanes[Kind::MayNotEnd as usize];
        let is_wanted = |job: &&Job| job.task().is_some_and(Queued::is_sheltered);
        let lacking = calls.jobs().filter(is_wanted).count().saturating_sub(calls.idle());
        let start = |_| self.start_thread(&mut state, shared, Kind::MayNotEnd).is_ok();
        let has_threads = (0..lacking).all(start);
        let tasks = state.lanes.iter().flat_map(Lane::jobs).filter(|job| match job {
            Job::Task(task) => !task.is_sheltered(),
            Job::Call(call) => !call.is_sheltered() || !has_threads,
            Job::Borrowed(_) => false,
        });
        let cancelled = tasks.filter_map(Job::task).inspect(|task| task.cancel()).count();
        let end = |pool: &Arc<Pool>, shared: Arc<Shared>, _: &Weak<Shared>| {
            pool.end_cancelled(&shared);
            pool.let_go(shared);
        };
        let ends_here = cancelled > 0 && self.start(&mut state, shared, end).is_err();
        drop(state);
        if ends_here {
            self.end_cancelled(shared);
        }
    }

    /// Ends the cancelled tasks of the queues one by one. Other threads may take some: destructors may wait for
    /// other tasks.
    fn end_cancelled(&self, shared: &Shared) {
        // The lock is released before a task ends: in the head of the loop it would be held meanwhile.
        let take = || self.lock().take_cancelled();
        while let Some(task) = take() {
            end_unrun(task, shared);
        }
    }

    /// Notes that the runtime has ended: threads leave as soon as they have nothing to do.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.work.iter().for_each(Condvar::notify_all);
    }

    /// Waits until no thread holds the runtime: all but those in calls have left the pool.
    pub(crate) fn wait_until_let_go(&self) {
        let state = self.let_go.wait_while(self.lock(), |state| state.holding > 0);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    fn start_thread(
        self: &Arc<Self>,
        state: &mut State,
        shared: &Arc<Shared>,
        kind: Kind,
    ) -> Result<(), Refusal> {
        self.start(state, shared, move |pool, shared, runtime| pool.work(kind, shared, runtime))?;
        state.lanes[kind as usize].threads += 1;
        Ok(())
    }

    /// Starts a thread that holds the runtime, until `life` lets go of it.
    fn start(
        self: &Arc<Self>,
        state: &mut State,
        shared: &Arc<Shared>,
        life: impl FnOnce(&Arc<Pool>, Arc<Shared>, &Weak<Shared>) + Send + 'static,
    ) -> Result<(), Refusal> {
        let refusal = |cause| Refusal::of_thread("a thread of the blocking pool", cause);
        if state.lanes.iter().map(|lane| lane.threads).sum::<usize>() >= self.config.startable {
            return Err(refusal(io::ErrorKind::WouldBlock.into()));
        }
        let (pool, shared) = (Arc::clone(self), Arc::clone(shared));
        let live = move || {
            let runtime = Arc::downgrade(&shared);
            let _in_pool = current::enter_pool(&runtime);
            life(&pool, shared, &runtime);
        };
        let builder = thread::Builder::new().name(self.thread_name.clone());
        driver_here::unpinned(|| builder.spawn(live)).map_err(refusal)?;
        state.holding += 1;
        Ok(())
    }
}

impl PoolThreads for Pool {
    fn on_threads(&self) -> Vec<OnThread> {
        let state = self.lock();
        state.running.iter().chain(&state.calls).cloned().collect()
    }
}

/// Life of one thread.
impl Pool {
    /// Takes queued jobs for as long as the thread is kept.
    fn work(&self, kind: Kind, shared: Arc<Shared>, runtime: &Weak<Shared>) {
        let (mut held, mut was_busy) = (Some(shared), false);
        while let Some(shared) = held {
            held = match self.next_job(kind, was_busy) {
                None => return self.let_go(shared),
                Some(Job::Call(call)) => self.call(call, shared, runtime),
                Some(Job::Task(task)) => {
                    self.run(task, &shared);
                    Some(shared)
                }
                Some(Job::Borrowed(borrowed)) => {
                    borrowed.run();
                    Some(shared)
                }
            };
            was_busy = true;
        }
    }

    /// Waits for a job. Returns `None` when the thread is to leave.
    fn next_job(&self, kind: Kind, was_busy: bool) -> Option<Job> {
        let mut state = self.lock();
        state.lanes[kind as usize].busy -= usize::from(was_busy);
        let mut is_over = false;
        loop {
            is_over |= state.ended;
            let lane = &mut state.lanes[kind as usize];
            if let Some((_, (job, since))) = lane.jobs.pop_first() {
                lane.busy += 1;
                lane.taken += 1;
                lane.waited += clock::machine().saturating_duration_since(since);
                return Some(job);
            }
            if is_over {
                lane.threads -= 1;
                return None;
            }
            let waited = self.work[kind as usize].wait_timeout(state, self.config.keep_alive);
            let (back, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            (state, is_over) = (back, timeout.timed_out());
        }
    }

    /// Runs a task, or ends it un-run.
    fn run(&self, task: Queued, shared: &Shared) {
        let handle = task.handle();
        let begins = {
            // `begin_ending` takes the lock once the end has begun.
            let mut state = self.lock();
            let begins = is_wanted(&task, shared);
            state.running.extend(begins.then(|| (handle.clone(), sys::thread_id())));
            begins
        };
        if !begins {
            drop(handle);
            return end_unrun(task, shared);
        }
        task.run();
        self.lock().running.retain(|(running, _)| *running != handle);
        drop(handle);
        shared.outside_ended();
    }

    /// Runs a call, or ends it un-run. Returns `None` if the runtime has ended.
    ///
    /// A running call counts as ended, and its thread does not hold the runtime, which may end meanwhile.
    fn call(&self, call: Queued, shared: Arc<Shared>, runtime: &Weak<Shared>) -> Option<Arc<Shared>> {
        if !is_wanted(&call, &shared) {
            end_unrun(call, &shared);
            return Some(shared);
        }
        let handle = call.handle();
        self.lock().calls.push((handle.clone(), sys::thread_id()));
        shared.outside_ended();
        self.let_go(shared);
        call.run();
        let mut state = self.lock();
        state.calls.retain(|(running, _)| *running != handle);
        let shared = if state.ended { None } else { runtime.upgrade() };
        match shared {
            Some(_) => state.holding += 1,
            None => {
                let lane = &mut state.lanes[Kind::MayNotEnd as usize];
                lane.threads -= 1;
                lane.busy -= 1;
            }
        }
        shared
    }

    /// Releases the runtime. The last holder drops it, which runs code of users.
    fn let_go(&self, shared: Arc<Shared>) {
        drop_quietly(shared);
        let mut state = self.lock();
        state.holding -= 1;
        if state.ended && state.holding == 0 {
            self.let_go.notify_all();
        }
    }
}

impl State {
    /// Returns true if a lane may have more threads than its limit, all of which may never come back.
    fn lifts_limit(&self, kind: Kind) -> bool {
        self.is_ending && kind == Kind::MayNotEnd
    }

    fn take_cancelled(&mut self) -> Option<Queued> {
        let is_cancelled =
            |(_, (job, _)): &(&Ticket, &(Job, Instant))| job.task().is_some_and(Queued::is_cancelled);
        let job = self.lanes.iter_mut().find_map(|lane| {
            let ticket = *lane.jobs.iter().find(is_cancelled)?.0;
            lane.jobs.remove(&ticket).map(|(job, _)| job)
        });
        match job? {
            Job::Task(task) | Job::Call(task) => Some(task),
            Job::Borrowed(_) => None,
        }
    }
}

/// Returns true if a queued task is to run.
fn is_wanted(task: &Queued, shared: &Shared) -> bool {
    !task.is_cancelled() && (!shared.is_ending() || task.is_sheltered())
}

/// Ends a task that was taken from the queue and is not to run.
fn end_unrun(task: Queued, shared: &Shared) {
    task.end(JoinError::cancelled);
    shared.outside_ended();
}
