//! What the tests of primitives and of sockets share, which keep each promise in plain threads and in tasks by the same
//! code: something that runs beside the test and is of its kind, and the guard against hangs.

pub(crate) mod hang;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

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

/// Starts one. What it runs is boxed, so that its start is compiled once for each `T`, not for each closure.
pub(crate) fn beside<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Side<T> {
    let f: Box<dyn FnOnce() -> T + Send> = Box::new(f);
    match wait::in_task() {
        true => Side::Task(fibra_runtime::spawn(f)),
        false => Side::Thread(spawn_noted(f)),
    }
}

thread_local! {
    /// What the system says of the threads that this one has started.
    static STARTED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// Starts a thread beside the test, also where that is a task.
pub(crate) fn beside_in_a_thread<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Side<T> {
    Side::Thread(spawn_noted(Box::new(f)))
}

fn spawn_noted<T: Send + 'static>(f: Box<dyn FnOnce() -> T + Send>) -> thread::JoinHandle<T> {
    let (place, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let own = fs::read_link("/proc/thread-self").expect("a thread finds itself");
        _ = place.send(PathBuf::from("/proc").join(own).join("stat"));
        f()
    });
    STARTED.with_borrow_mut(|started| started.extend(told.recv()));
    thread
}

/// Lets what was started beside the test come as far as it goes, which must be an end or a wait for something.
pub(crate) fn pause() {
    loop {
        moment();
        // Seen twice, since a thread may also have slept on its way.
        if have_come_to_rest() && {
            moment();
            have_come_to_rest()
        } {
            return;
        }
    }
}

fn moment() {
    match wait::in_task() {
        true => fibra_runtime::sleep(Duration::from_millis(2)),
        false => thread::sleep(Duration::from_millis(2)),
    }
}

/// True if what was started beside the test has come as far as it goes: it sleeps, or has ended.
fn have_come_to_rest() -> bool {
    let threads_sleep = STARTED.with_borrow_mut(|started| {
        started.retain(|stat| stat.exists());
        started.iter().all(sleeps)
    });
    threads_sleep && wait::others_are_asleep()
}

/// True for a thread that sleeps, or is not there any more.
fn sleeps(stat: &PathBuf) -> bool {
    // The state comes after the name, which is in parentheses.
    let text = fs::read_to_string(stat).unwrap_or_default();
    text.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
}

impl<T: Send> Side<T> {
    pub(crate) fn join(self) -> T {
        match self {
            Side::Task(task) => task.join().expect("the task beside the test panicked"),
            // No worker is stopped by the wait; off a task this is a plain call.
            Side::Thread(thread) => {
                fibra_runtime::unblock(|| thread.join()).expect("the thread beside the test panicked")
            }
        }
    }
}
