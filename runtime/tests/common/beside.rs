//! What the tests of primitives and of sockets share, which keep each promise in plain threads and in tasks by the same
//! code: something that runs beside the test and is of its kind, and the guard against hangs.

mod hang;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
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
        false => Side::Thread(spawn_noted(f)),
    }
}

thread_local! {
    /// What the system says of the threads that this one has started.
    static STARTED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

fn spawn_noted<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    let (place, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let own = fs::read_link("/proc/thread-self").expect("a thread finds itself");
        _ = place.send(PathBuf::from("/proc").join(own).join("stat"));
        f()
    });
    STARTED.with_borrow_mut(|started| started.extend(told.recv()));
    thread
}

/// True if what was started beside the test has come as far as it goes: it sleeps, or has ended.
pub(crate) fn have_come_to_rest() -> bool {
    match wait::in_task() {
        true => wait::others_are_asleep(),
        false => STARTED.with_borrow_mut(|started| {
            started.retain(|stat| stat.exists());
            started.iter().all(sleeps)
        }),
    }
}

/// True for a thread that sleeps, or is not there any more.
fn sleeps(stat: &PathBuf) -> bool {
    // The state comes after the name, which is in parentheses.
    let text = fs::read_to_string(stat).unwrap_or_default();
    text.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
}

impl<T> Side<T> {
    pub(crate) fn join(self) -> T {
        match self {
            Side::Task(task) => task.join().expect("the task beside the test panicked"),
            Side::Thread(thread) => thread.join().expect("the thread beside the test panicked"),
        }
    }
}
