//! The end of a runtime.
//!
//! ```text
//!  RUNNING ──begin_ending──▶ ENDING ──quiescent──▶ ENDED
//!                              each worker cancels        workers leave,
//!                              what is at home on it      who waits is woken
//! ```
//!
//! A runtime is quiescent when as many tasks have ended as were spawned. Both are counted per worker without locked
//! instructions; the sums are taken all ended first, then all spawned. If they are equal, then at the moment between
//! the two nobody was alive: a counter only grows, so at that moment at least so many had ended as were summed, and at
//! most so many had been spawned. Nobody alive means that nobody spawns but from outside; those count themselves and
//! then look whether the end has begun, and who ends the runtime first marks the beginning and then sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::time::Duration;

use super::Shared;
use crate::report::say;
use crate::time;
use crate::wait::list::{List, Node};
use crate::wait::{self, Asleep, Lock, WaitStrategy, WakeHandle, Waking, Withdrawal};

const RUNNING: u8 = 0;
const ENDING: u8 = 1;
const ENDED: u8 = 2;

/// When a shutdown says who is still there.
const REPORT_AFTER: Duration = Duration::from_secs(5);

pub(super) struct Ending {
    phase: AtomicU8,
    /// Who waits for the end.
    waiters: Lock<List>,
}

impl Ending {
    pub(super) fn new() -> Self {
        Ending { phase: AtomicU8::new(RUNNING), waiters: Lock::new(List::new()) }
    }
}

impl Shared {
    /// True from the beginning of the end.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        // SeqCst: the load of the pair with `admit_outside`.
        self.ending.phase.load(Ordering::SeqCst) != RUNNING
    }

    /// True when nothing runs any more.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire: pairs with the move to ENDED; what the tasks did is seen by who waited for them.
        self.ending.phase.load(Ordering::Acquire) == ENDED
    }

    /// Starts the end: every worker cancels what is at home on it.
    pub(crate) fn begin_ending(self: &Arc<Self>) {
        self.begin_ending_and(|| ());
    }

    /// The same, and calls `then` before anything is waited for.
    pub(super) fn begin_ending_and(self: &Arc<Self>, then: impl FnOnce()) {
        let phase = &self.ending.phase;
        if phase.compare_exchange(RUNNING, ENDING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
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
        if !self.is_quiescent() {
            return false;
        }
        // SeqCst: as for `has_ended`. Who makes the move tells everybody.
        if self.ending.phase.compare_exchange(ENDING, ENDED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.announce_end();
        }
        true
    }

    fn is_quiescent(&self) -> bool {
        self.alive() == 0
    }

    /// How many tasks were spawned and have not ended; may be too many while some end, never too few.
    pub(crate) fn alive(&self) -> u64 {
        // The store-load pair of two workers that end their last tasks at the same moment: each has counted its own
        // before, so one of them sees the other's.
        fence(Ordering::SeqCst);
        let finished: u64 = self.blocks.iter().map(|block| block.finished.load(Ordering::SeqCst)).sum();
        let finished = finished + self.outside.finished.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let spawned: u64 = self.blocks.iter().map(|block| block.spawned.load(Ordering::SeqCst)).sum();
        spawned + self.outside.spawned.load(Ordering::SeqCst) - finished
    }

    fn announce_end(&self) {
        self.blocking.end();
        self.watch.end();
        self.unpark_all();
        // Taken one by one: a wake is never made under the lock.
        while let Some(wake) = { self.ending.waiters.lock().pop_front() } {
            wake.wake();
        }
    }

    /// Waits for the end. True if it came in time.
    pub(crate) fn wait_for_end(&self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(time::deadline);
        let until = UntilEnded { shared: self, node: Node::new() };
        while !self.has_ended() {
            if wait::sleep_shielded(&until, deadline) == Waking::TimedOut {
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

struct UntilEnded<'a> {
    shared: &'a Shared,
    node: Node,
}

impl WaitStrategy for UntilEnded<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut waiters = self.shared.ending.waiters.lock();
        if self.shared.has_ended() {
            return Asleep::Rouse;
        }
        // SAFETY: the node lives until the sleep is over and is withdrawn then; it is in no list; the wake is taken
        // under this lock.
        unsafe { waiters.push_back(&self.node, me.raw()) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        let linked = unsafe { self.shared.ending.waiters.lock().remove(&self.node) };
        if linked || why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
    }
}
