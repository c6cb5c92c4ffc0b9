//! What the tests of primitives and of sockets share, which keep each promise in plain threads and in tasks by the same
//! code: something that runs beside the test and is of its kind, and the guard against hangs.

mod hang;

use std::thread;

use fibra_runtime::{JoinHandle, wait};

/// Ends the process, and says so, if `f` does not end.
pub(crate) fn guarded(f: impl FnOnce()) {
    let _guard = hang::hang_guard();
    f();
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
            Side::Task(task) => task.join().expect("the task beside the test panicked"),
            Side::Thread(thread) => thread.join().expect("the thread beside the test panicked"),
        }
    }
}
