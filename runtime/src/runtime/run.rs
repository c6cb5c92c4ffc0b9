//! Running a closure of the caller's as a task, while the caller waits.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use super::Shared;
use super::builder::Seed;
use crate::current;
use crate::task::{self, Builder, JoinError};

/// Runs `f` on `shared` and waits for it.
#[track_caller]
pub(super) fn run_on<F, T>(shared: &Arc<Shared>, f: F) -> T
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    refuse_inside_a_task();
    // SAFETY: the handle is joined below before anything that `f` borrows can go: `join` on a plain thread ends only when
    // the task is done, or dropped un-run by a runtime that is ending.
    let handle = unsafe { Builder::new().named_main().spawn_erased(shared, f) };
    match handle.join() {
        Ok(value) => value,
        Err(error) => fail(error),
    }
}

#[track_caller]
fn fail(error: JoinError) -> ! {
    match error.try_into_panic() {
        Ok(payload) => panic::resume_unwind(payload),
        Err(error) => panic!("`run` has no value to return: {error}"),
    }
}

/// Running from a task would block its worker, and what it waits for may be at home there.
#[track_caller]
pub(super) fn refuse_inside_a_task() {
    assert!(
        current::with_worker(|_| ()).is_none(),
        "a runtime was run inside a runtime: this thread is a worker, and waiting here would block all tasks at home on \
         it. Use `spawn` and `join`, or move the call to a thread of its own (`spawn_blocking`)"
    );
}

/// Makes the calling thread worker 0, runs `f` there as a task, and ends the runtime when it returns.
pub(crate) fn run_here<F, T>(seed: Seed, threads: Vec<thread::JoinHandle<()>>, f: F) -> io::Result<T>
where
    F: FnOnce() -> T,
{
    let shared = Arc::clone(&seed.shared);
    let mut result = None;
    let grown = seed.grow(|worker| {
        let slot = &mut result;
        let main = || {
            *slot = Some(panic::catch_unwind(AssertUnwindSafe(f)));
            shared.begin_ending();
            report_late_end(&shared);
        };
        // SAFETY: the worker runs until every task of the runtime has ended, so what `main` borrows outlives it.
        unsafe { Builder::new().named_main().spawn_local_erased(worker, main) };
        worker.run();
    });
    if let Err(error) = grown {
        shared.begin_ending();
        shared.end_if_quiescent();
        threads.into_iter().for_each(|thread| _ = thread.join());
        return Err(error);
    }
    threads.into_iter().for_each(|thread| _ = thread.join());
    shared.blocking.wait_until_left();
    take_result(result)
}

fn take_result<T>(result: Option<Result<T, Box<dyn Any + Send>>>) -> io::Result<T> {
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(payload)) => panic::resume_unwind(payload),
        // Its stack could not be had.
        None => Err(io::Error::new(io::ErrorKind::OutOfMemory, "no stack for the first task")),
    }
}

/// Says who is still there when the end takes long. Only where there is somebody.
fn report_late_end(shared: &Arc<Shared>) {
    let own = task::current();
    if shared.tasks().iter().all(|task| *task == own) {
        return;
    }
    let shared = Arc::clone(shared);
    // Without a thread there is no report; nothing else depends on it.
    _ = thread::Builder::new().name("fibra-ending".to_owned()).spawn(move || shared.wait_for_end_reporting());
}
