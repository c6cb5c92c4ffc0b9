//! The end of a runtime: its begin, the wait for it, and the report when it takes long.

#![forbid(unsafe_code)]

use std::process;
use std::sync::Arc;
use std::time::Duration;

use crate::api::sleep;
use crate::base::abort::say;
use crate::blocking::pool::Pool;
use crate::runtime::report;
use crate::scheduler::shared::Shared;
use crate::sleep::task_sleep;
use crate::waiter::strategy::{UntilRaised, Waking};

/// Time after which a shutdown names the tasks that it still waits for.
const REPORT_AFTER: Duration = Duration::from_secs(5);

/// The exit code of a process whose runtime has not ended in time.
const EXIT_CODE: i32 = 1;

/// How long the end of a runtime that [`run`](crate::Builder::run) made may take, unless the program sets it.
pub(super) const RUN_LIMIT: Duration = Duration::from_secs(60);

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
///
/// Ends the process, with a report, when it takes longer than `limit`.
pub(super) fn wait_reporting(shared: &Shared, limit: Duration) {
    let first = limit.min(REPORT_AFTER);
    if wait(shared, Some(first)) {
        return;
    }
    if limit > REPORT_AFTER {
        let seconds = REPORT_AFTER.as_secs();
        say(format_args!(
            "the runtime is to end, and after {seconds} s still waits for {}",
            report::in_one_line(shared)
        ));
        if wait(shared, Some(limit - first)) {
            return;
        }
    }
    say(format_args!(
        "the runtime has not ended within {limit:?}, so the process exits (see Builder::end_within). Left are {}",
        report::in_full(shared)
    ));
    process::exit(EXIT_CODE);
}
