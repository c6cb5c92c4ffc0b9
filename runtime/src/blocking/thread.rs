//! Life of one thread of the pool.

use std::mem;
use std::sync::{Arc, Weak};

use crate::base::payload::drop_quietly;
use crate::blocking::pool::{Config, Job, Lives, Pool, end_unrun};
use crate::scheduler::shared::Shared;
use crate::tasks::context;
use crate::tasks::header::{Nature, TaskRef};
use crate::tasks::task::Task;

/// Makes a pool; it has no threads until there is work.
pub(crate) fn new_pool(config: Config, thread_name: String) -> Arc<Pool> {
    Pool::new(config, thread_name, Lives { work, end_tasks })
}

/// Ends the tasks that have not run at the end of the runtime.
fn end_tasks(pool: &Arc<Pool>, shared: Arc<Shared>, _runtime: &Weak<Shared>) {
    pool.end_tasks(&shared);
    let_go(pool, shared);
}

/// Runs queued jobs for as long as the thread is kept.
fn work(pool: &Arc<Pool>, shared: Arc<Shared>, runtime: &Weak<Shared>) {
    let (mut held, mut is_new) = (Some(shared), true);
    while let Some(shared) = held {
        let Some(job) = pool.next_job(mem::take(&mut is_new)) else { return let_go(pool, shared) };
        held = match job {
            Job::Task(task) if task.header().nature == Nature::Call => call(pool, shared, runtime, task),
            Job::Task(task) => {
                run(pool, &shared, task);
                Some(shared)
            }
            Job::Borrowed(borrowed) => {
                borrowed.run();
                Some(shared)
            }
        };
    }
}

/// Releases the runtime. The last holder drops it, which runs code of users.
fn let_go(pool: &Pool, shared: Arc<Shared>) {
    drop_quietly(shared);
    pool.let_go();
}

/// Runs a task, or ends it un-run.
fn run(pool: &Pool, shared: &Shared, task: TaskRef) {
    let handle = Task::counted(task);
    let begins = {
        let mut state = pool.lock();
        let begins = is_wanted(shared, task);
        state.running.extend(begins.then(|| handle.clone()));
        begins
    };
    if !begins {
        drop(handle);
        return end_unrun(shared, task);
    }
    enter(task);
    pool.lock().running.retain(|running| *running != handle);
    drop(handle);
    shared.outside_ended();
}

/// Runs a call, or ends it un-run. Returns `None` if the runtime has ended.
///
/// A running call counts as ended, and its thread does not hold the runtime, which may end
/// meanwhile.
fn call(pool: &Arc<Pool>, shared: Arc<Shared>, runtime: &Weak<Shared>, task: TaskRef) -> Option<Arc<Shared>> {
    let stranded = {
        let mut state = pool.lock();
        let begins = is_wanted(&shared, task);
        if !begins {
            state.end_call();
        }
        begins.then(|| pool.begin_call(&mut state, &shared))
    };
    let Some(stranded) = stranded else {
        end_unrun(&shared, task);
        return Some(shared);
    };
    stranded.end(&shared);
    shared.outside_ended();
    let_go(pool, shared);
    enter(task);
    come_back(pool, runtime)
}

/// Returns true if a queued task is to run. The caller holds the lock.
///
/// `begin_ending` takes that lock once the end has begun, and counts the calls.
fn is_wanted(shared: &Shared, task: TaskRef) -> bool {
    !task.header().marks.is_cancelled() && (!shared.is_ending() || task.header().is_sheltered())
}

fn enter(task: TaskRef) {
    context::set_pool_task(Some(task));
    // SAFETY: taken from the queue by this thread alone, and never run; the runtime's count came with it.
    unsafe {
        (task.header().vtable.run)(task);
        task.release();
    }
    context::set_pool_task(None);
}

/// Holds the runtime again, after a call. Returns `None` if it has ended: the thread leaves.
fn come_back(pool: &Pool, runtime: &Weak<Shared>) -> Option<Arc<Shared>> {
    let mut state = pool.lock();
    state.calling -= 1;
    state.end_call();
    let shared = if state.ended { None } else { runtime.upgrade() };
    match shared {
        Some(_) => state.holding += 1,
        None => state.threads -= 1,
    }
    shared
}
