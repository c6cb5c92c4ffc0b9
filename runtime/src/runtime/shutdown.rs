//! The end of a runtime.

use std::sync::Arc;
use std::time::Duration;

use crate::api::sleep;
use crate::base::abort::say;
use crate::runtime::shared::Shared;
use crate::scheduler::task_counts::alive;
use crate::sleep::task_sleep;
use crate::waiter::strategy::Waking;

/// When a shutdown says who is still there.
const REPORT_AFTER: Duration = Duration::from_secs(5);

impl Shared {
    /// True from the beginning of the end.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.has_begun()
    }

    /// True when nothing runs any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ending.has_ended()
    }

    /// Starts the end: every worker cancels what is at home on it.
    pub(crate) fn begin_ending(self: &Arc<Self>) {
        self.begin_ending_and(|| ());
    }

    /// The same, and calls `then` before anything is waited for.
    pub(super) fn begin_ending_and(self: &Arc<Self>, then: impl FnOnce()) {
        if self.ending.begin() {
            self.unpark_all();
            then();
            // May run destructors of users.
            self.blocking.begin_ending(self);
        }
    }

    /// Ends a runtime whose start has failed; no worker may be left to see to that.
    pub(super) fn end_unstarted(self: &Arc<Self>) {
        self.begin_ending();
        self.end_if_quiescent();
    }

    /// Ends the runtime if nobody is alive. True when it has ended.
    pub(crate) fn end_if_quiescent(&self) -> bool {
        if self.has_ended() {
            return true;
        }
        if self.alive() > 0 {
            return false;
        }
        if self.ending.end() {
            self.announce_end();
        }
        true
    }

    /// How many tasks were spawned and have not ended; may be too many while some end, never too few.
    pub(crate) fn alive(&self) -> u64 {
        alive(self.blocks.iter().map(|block| &block.counts).chain([&*self.outside]))
    }

    fn announce_end(&self) {
        self.blocking.end();
        self.watch.end();
        self.unpark_all();
        // Taken one by one: a wake is never made under the lock.
        while let Some(wake) = self.ending.next_waiter() {
            wake.wake();
        }
    }

    /// Waits for the end. True if it came in time.
    pub(crate) fn wait_for_end(&self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(sleep::deadline);
        let until = self.ending.until_ended();
        while !self.has_ended() {
            if task_sleep::sleep_shielded(&until, deadline) == Waking::TimedOut {
                return self.has_ended();
            }
        }
        true
    }

    /// Waits for the end, and says who is still there when that takes long.
    pub(crate) fn wait_for_end_reporting(&self) {
        if !self.wait_for_end(Some(REPORT_AFTER)) {
            self.report_remaining();
            self.wait_for_end(None);
        }
    }

    fn report_remaining(&self) {
        let tasks = self.tasks();
        let names: Vec<String> = tasks.iter().take(20).map(ToString::to_string).collect();
        let more = if tasks.len() > names.len() { ", …" } else { "" };
        say(format_args!(
            "the runtime is to end and still waits for {} task(s) after {} s, {} of them not started: {}{more}",
            self.alive().max(tasks.len() as u64),
            REPORT_AFTER.as_secs(),
            self.alive().saturating_sub(tasks.len() as u64),
            names.join(", ")
        ));
    }
}
