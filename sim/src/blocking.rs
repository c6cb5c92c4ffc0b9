//! Calls of the system that would block the thread of a run: they suspend the calling task, or fail the run by its name.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

use fibra::task;
use fibra_runtime::wait;

use crate::answers::{self, Clock};
use crate::context;
use crate::oracle::name_of;

fibra::task_local! {
    /// Whether the task may use threads.
    static THREADS: Cell<bool> = Cell::new(false);
}

/// Returns what a clock shows, as [`answers::reading`] does. Fails the run of a task that waits for it to move.
pub(crate) fn reading(of: Clock) -> Option<Duration> {
    let reading = answers::reading(of);
    if answers::is_read_in_vain() && wait::in_task() {
        fail("waits for the clock in a loop, and the clock stands until all tasks sleep: sleep in that loop");
    }
    reading
}

/// Lets the calling task sleep in virtual time. Returns false where none runs.
///
/// It is shielded: an unwinding could not pass the frames of C around it.
pub(crate) fn sleep(duration: Duration) -> bool {
    if !wait::in_task() {
        return false;
    }
    if !wait::may_suspend() {
        fail("calls a sleep of std where `forbid_suspend` forbids to suspend");
    }
    task::shield(|| fibra::sleep(duration));
    true
}

/// Returns true if the caller is a simulated task that is to use no threads of the system.
pub(crate) fn are_threads_refused() -> bool {
    answers::is_given() && wait::in_task() && !THREADS.try_with(Cell::get).unwrap_or(false)
}

/// Fails the run if the calling task may not start a thread. Returns true then.
pub(crate) fn refuses_thread() -> bool {
    let refused = are_threads_refused();
    if refused && let Some(run) = context::run() {
        let told = of_caller(
            "starts a thread of the system, which would run beside the simulation: spawn a task, or \
             start it in `fibra_sim::allow_threads`",
        );
        run.lock().reason.get_or_insert(told);
    }
    refused
}

/// Fails the run for what the calling task does, and never returns.
pub(crate) fn fail(what: &str) -> ! {
    let told = of_caller(what);
    let run = context::run().expect("the thread has a run");
    // From now on it waits for real.
    answers::leave();
    run.end_stuck(told)
}

fn of_caller(what: &str) -> String {
    let name = task::try_current().map_or("a hook".to_owned(), |task| name_of(&task));
    format!("{name} {what}")
}

/// Runs `f`, in which the calling task may start threads of the system and wait for them.
///
/// In binaries with [`interpose!`](crate::interpose!) a simulated task may do so nowhere else: what such threads do
/// depends on the machine. While `f` waits by means of std, the whole simulation stands still.
///
/// # Panics
/// Panics if `f` does, and in destructors of task-locals at the end of a task.
///
/// # Examples
/// ```
/// fibra_sim::Sim::builder().run(|| {
///     let sum = fibra_sim::allow_threads(|| std::thread::spawn(|| 1 + 1).join());
///     assert_eq!(sum.unwrap(), 2);
/// });
/// ```
pub fn allow_threads<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            THREADS.set(self.0);
        }
    }
    let _restore = Restore(THREADS.replace(true));
    f()
}
