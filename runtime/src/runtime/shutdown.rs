//! The end of a runtime: its begin, the wait for it, and the report when it takes long.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use crate::api::sleep;
use crate::base::abort::say;
use crate::blocking::pool::Pool;
use crate::scheduler::shared::Shared;
use crate::sleep::task_sleep;
use crate::tasks::task::Task;
use crate::waiter::strategy::{UntilRaised, Waking};

/// Time after which a shutdown names the tasks that it still waits for.
const REPORT_AFTER: Duration = Duration::from_secs(5);

/// Begins the end: every worker cancels its tasks. Calls `then` before anything is waited for.
pub(super) fn begin(shared: &Arc<Shared>, then: impl FnOnce()) {
    if shared.ending.begin() {
        shared.unpark_all();
        then();
        // May run destructors of users.
        Pool::of(shared).begin_ending(shared);
    }
}

/// Ends a runtime whose start has failed; there may be no worker to do it.
pub(super) fn end_unstarted(shared: &Arc<Shared>) {
    begin(shared, || ());
    shared.end_if_quiescent();
    Pool::of(shared).end();
}

/// Waits for the end. Returns true if it came in time.
pub(super) fn wait(shared: &Shared, timeout: Option<Duration>) -> bool {
    let deadline = timeout.and_then(sleep::deadline);
    let flag = shared.ending.flag();
    while !shared.ending.has_ended() {
        if task_sleep::sleep_shielded(&UntilRaised(&flag), deadline) == Waking::TimedOut {
            return shared.ending.has_ended();
        }
    }
    true
}

/// Waits for the end, and names the tasks that are left when that takes long.
pub(super) fn wait_reporting(shared: &Shared) {
    if !wait(shared, Some(REPORT_AFTER)) {
        report_remaining(shared);
        wait(shared, None);
    }
}

/// Returns all tasks that have started and not ended, with those on the blocking pool.
pub(super) fn tasks(shared: &Shared) -> Vec<Task> {
    let mut tasks = shared.tasks();
    tasks.extend(Pool::of(shared).running());
    tasks
}

/// Counts the tasks that have not started; `started` is the number of those that have.
pub(super) fn unstarted(shared: &Shared, started: usize) -> u64 {
    shared.alive().saturating_sub(started as u64)
}

fn report_remaining(shared: &Shared) {
    let tasks = tasks(shared);
    let names: Vec<String> = tasks.iter().take(20).map(ToString::to_string).collect();
    let more = if tasks.len() > names.len() { ", …" } else { "" };
    say(format_args!(
        "the runtime is to end and still waits for {} task(s) after {} s, {} of them not started: {}{more}",
        shared.alive().max(tasks.len() as u64),
        REPORT_AFTER.as_secs(),
        unstarted(shared, tasks.len()),
        names.join(", ")
    ));
}
