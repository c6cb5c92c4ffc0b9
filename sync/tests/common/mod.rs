//! What the tests of the primitives share: each promise is kept in plain threads, in the tasks of one worker, and in the
//! tasks of several, by the same code.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fibra_runtime::{JoinHandle, Runtime, wait};

/// A test that takes longer than this hangs. No promise about speed: the machine may be busy.
const HANG: Duration = Duration::from_secs(120);

pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("a runtime")
}

/// Runs `promise` in a plain thread, and in a task of one, of two and of four workers.
pub(crate) fn everywhere(promise: impl Fn() + Send + Sync) {
    guarded(&promise);
    in_tasks(promise);
}

/// Runs `promise` in a task of one, of two and of four workers.
pub(crate) fn in_tasks(promise: impl Fn() + Send + Sync) {
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(&promise));
    }
}

/// Ends the process, and says so, if `f` does not end.
pub(crate) fn guarded(f: impl FnOnce()) {
    let (done, ended) = channel::<()>();
    let name = thread::current().name().unwrap_or("main").to_owned();
    let guard = thread::spawn(move || {
        if ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name} hangs");
            std::process::abort();
        }
    });
    f();
    drop(done);
    guard.join().unwrap();
}

/// Something that runs beside the test: a task if the test is one, else a thread.
pub(crate) enum Side<T> {
    Task(JoinHandle<T>),
    Thread(thread::JoinHandle<T>),
}

/// Starts one.
pub(crate) fn beside<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Side<T> {
    match wait::in_task() {
        true => Side::Task(fibra_runtime::spawn(f)),
        false => Side::Thread(thread::spawn(f)),
    }
}

impl<T> Side<T> {
    pub(crate) fn join(self) -> T {
        match self {
            Side::Task(task) => task.join().unwrap(),
            Side::Thread(thread) => thread.join().unwrap(),
        }
    }
}

/// Lets others run, for a moment.
pub(crate) fn pause() {
    match wait::in_task() {
        true => fibra_runtime::sleep(Duration::from_millis(5)),
        false => thread::sleep(Duration::from_millis(5)),
    }
}

/// Lets others run.
pub(crate) fn give_way() {
    match wait::in_task() {
        true => fibra_runtime::yield_now(),
        false => thread::yield_now(),
    }
}

/// Gives way until `done`.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        give_way();
    }
}
