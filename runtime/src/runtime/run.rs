//! Running a closure of the caller's as a task, while the caller waits.

use std::cell::Cell;
use std::io;
use std::panic;
use std::sync::Arc;
use std::thread;

use crate::api::builder::Builder;
use crate::base::abort::Bomb;
use crate::base::clock;
use crate::blocking::pool::Pool;
use crate::runtime::shutdown;
use crate::runtime::start::{Seed, Starting};
use crate::scheduler::current;
use crate::scheduler::driver_here;
use crate::scheduler::shared::Shared;
use crate::sleep::cancel_points;
use crate::tasks::forbid;
use crate::tasks::join_error::JoinError;
use crate::tasks::shield;
use crate::tasks::task;
use crate::tasks::thread_deadlines;

/// Runs `f` on `shared` and waits for it.
#[track_caller]
pub(super) fn run_on<F, T>(shared: &Arc<Shared>, f: F) -> T
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let (mut f, mut value) = (Some(f), None);
    run_erased(shared, &mut |starts| {
        // At the end of a run, `f` is gone and the value stays.
        if let Some(f) = f.take().filter(|_| starts) {
            value = Some(f());
        }
    });
    value.expect("the task that calls `f` has returned")
}

/// The closure of a run, by reference: called with whether it starts. What never starts is dropped inside its task.
struct Erased<'a>(&'a mut (dyn FnMut(bool) + Send));

impl Drop for Erased<'_> {
    fn drop(&mut self) {
        (self.0)(false);
    }
}

/// Runs the task of [`run_on`]. Not generic, so that programs and tests compile it once, not for each closure that they run.
#[track_caller]
fn run_erased(shared: &Arc<Shared>, call: &mut (dyn FnMut(bool) + Send)) {
    refuse_inside_a_task();
    let call = Erased(call);
    // SAFETY: the handle is joined below before anything that `call` borrows can go: `join` on a plain thread ends only
    // when the task is done, or dropped un-run by a runtime that is ending.
    let handle = unsafe {
        Builder::main(shared.config.main_stack_size).spawn_erased_on(shared, move || (call.0)(true))
    };
    let bomb = Bomb::of_runtime("the wait for a task that borrows has unwound");
    let result = match thread_deadlines::earliest() {
        None => handle.join(),
        Some(deadline) => shield::shield(|| {
            handle.join_timeout(deadline.saturating_duration_since(clock::now())).unwrap_or_else(|handle| {
                handle.cancel();
                handle.join()
            })
        }),
    };
    bomb.defuse();
    check_deadlock(shared);
    if result.as_ref().is_err_and(JoinError::is_cancelled) {
        cancel_points::cancellation_point();
    }
    result.unwrap_or_else(|error| fail(error))
}

#[track_caller]
fn fail(error: JoinError) -> ! {
    match error.try_into_panic() {
        Ok(payload) => panic::resume_unwind(payload),
        Err(error) => panic!("`run` has no value to return: {error}"),
    }
}

/// Panics in a task: the run would block its worker, which may be the home worker of what it waits for.
#[track_caller]
pub(super) fn refuse_inside_a_task() {
    forbid::check_thread_wait(|| "a task (`run`)".to_owned());
    assert!(
        current::with_worker(|_| ()).is_none(),
        "a runtime was run inside a runtime: this thread is a worker, and waiting here would block all of its \
         tasks. Use `spawn` and `join`, or move the call to a thread of its own (`spawn_blocking`)"
    );
}

/// Panics if all tasks came to sleep for ever in virtual time.
#[track_caller]
fn check_deadlock(shared: &Shared) {
    if let Some(waits) = shared.virtual_time.take_deadlock() {
        panic!("all tasks sleep, and nothing is left that could wake one:{waits}");
    }
}

/// Makes the calling thread worker 0, runs `f` there as a task, and ends the runtime when it returns.
#[track_caller]
pub(crate) fn run_here<F, T>(seed: Seed, mut others: Starting, f: F) -> io::Result<T>
where
    F: FnOnce() -> T,
{
    let shared = Arc::clone(&seed.shared);
    let (mut main, mut started, reporter) = (None, Ok(()), Cell::new(None));
    let grown = seed.grow(|worker| {
        // Not before the start hook has run here: those of the others may wait for it.
        started = others.wait();
        if started.is_err() {
            shutdown::end_unstarted(&shared);
            return worker.run();
        }
        let end = EndWhenDropped { shared: &shared, reporter: &reporter };
        let body = move || {
            let _end = end;
            f()
        };
        let mut first = Builder::main(shared.config.main_stack_size);
        first.inherit();
        // SAFETY: the worker runs until every task of the runtime has ended, so what `f` borrows outlives it.
        main = Some(unsafe { first.spawn_local_erased(worker, body) });
        worker.run();
    });
    if grown.is_err() {
        shutdown::end_unstarted(&shared);
    }
    others.join();
    if let Some(reporter) = reporter.take() {
        _ = reporter.join();
    }
    Pool::of(&shared).wait_until_let_go();
    grown.and(started)?;
    check_deadlock(&shared);
    match main.expect("spawned before the worker ran").join() {
        Ok(value) => Ok(value),
        Err(error) if error.is_not_started() => Err(error.into()),
        Err(error) => fail(error),
    }
}

/// Begins the end of the runtime: when the first task returns, unwinds, or is dropped un-run.
struct EndWhenDropped<'a> {
    shared: &'a Arc<Shared>,
    /// The thread that names the tasks that remain. It ends with the runtime, and has to be joined: it holds it.
    reporter: &'a Cell<Option<thread::JoinHandle<()>>>,
}

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        shutdown::begin(self.shared, || self.reporter.set(report_late_end(self.shared)));
    }
}

/// Names the tasks that remain when the end takes long. Only where there are others beside the first task, or that has
/// destructors to run.
fn report_late_end(shared: &Arc<Shared>) -> Option<thread::JoinHandle<()>> {
    let has_locals = task::try_current().is_some_and(|own| own.header().present_locals().is_some());
    // A simulation tells by itself what never ends.
    if shared.is_simulated() || (shared.alive() <= 1 && !has_locals) {
        return None;
    }
    let shared = Arc::clone(shared);
    let limit = shared.config.end_within.unwrap_or(shutdown::RUN_LIMIT);
    // Without a thread there is no report; nothing else depends on it.
    let builder = thread::Builder::new().name("fibra-ending".to_owned());
    driver_here::unpinned(|| builder.spawn(move || shutdown::wait_reporting(&shared, limit))).ok()
}
