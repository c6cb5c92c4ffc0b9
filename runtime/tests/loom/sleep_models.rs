//! Whole sleeps: the wait word, the list, and the lock together, as `wait/sleep.rs` uses them.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::primitive::{check, check_bounded};
use crate::wait::list::{List, Node};
use crate::wait::word::Woke;
use crate::wait::{Lock, Sleeper, Waking, waking};

/// A small semaphore and its sleeper.
pub(crate) struct Gate {
    pub(crate) state: Lock<State>,
    pub(crate) sleeper: Arc<Sleeper>,
    /// Written by the waker before its wake, read by the notified sleeper.
    pub(crate) data: UnsafeCell<u32>,
}

pub(crate) struct State {
    pub(crate) permits: u32,
    pub(crate) waiters: List,
}

// SAFETY: the data is handed over by the wake, which is what the models check.
unsafe impl Sync for Gate {}
// SAFETY: as above.
unsafe impl Send for Gate {}

impl Gate {
    fn new() -> Arc<Self> {
        let gate = Self::of(Sleeper::new());
        let _ = gate.sleeper.word.begin(false);
        gate
    }

    pub(crate) fn of(sleeper: Arc<Sleeper>) -> Arc<Self> {
        let state = Lock::new(State { permits: 0, waiters: List::new() });
        drop(state.lock());
        Arc::new(Gate { state, sleeper, data: UnsafeCell::new(0) })
    }

    /// Notifies a waiter, or leaves a permit. True if it notified a waiter.
    pub(crate) fn open(&self) -> bool {
        let mut state = self.state.lock();
        let wake = state.waiters.pop_front();
        state.permits += u32::from(wake.is_none());
        // A wake is never made under the lock.
        drop(state);
        let Some(wake) = wake else { return false };
        // SAFETY: the sleeper reads only once it is notified.
        self.data.with_mut(|data| unsafe { *data = 7 });
        wake.wake();
        true
    }

    /// What `after_asleep` does: publishes the node, unless there is a permit.
    pub(crate) fn enter(&self, node: &Node) -> bool {
        let mut state = self.state.lock();
        if state.permits > 0 {
            state.permits -= 1;
            return false;
        }
        // SAFETY: the node lives until `pass` ends, before which it is withdrawn or its wake has landed.
        unsafe { state.waiters.push_back(node, self.sleeper.raw()) };
        true
    }

    /// One sleep, from the first to the last line of `sleep_in`. If `expires`, its deadline passes while it lasts.
    fn pass(&self, expires: bool) -> Waking {
        let node = Node::new();
        let sleeper = &self.sleeper;
        let epoch = sleeper.word.begin(false);
        if !self.enter(&node) {
            return Waking::Notified;
        }
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        let why = waking(sleeper.word.why());
        // SAFETY: the node is in this list or in none.
        if unsafe { self.state.lock().waiters.remove(&node) } {
            return why;
        }
        sleeper.await_landing();
        Waking::Notified
    }
}

/// Finds: a node that is touched after the wake that lets its sleeper go on and drop it; data that is not seen.
#[test]
fn the_last_touch_comes_before_the_wake() {
    check(|| {
        let gate = Gate::new();
        let opener = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.open())
        };
        assert_eq!(gate.pass(false), Waking::Notified);
        let sees = gate.sleeper.word.why().notified;
        if sees {
            // SAFETY: the waker wrote before its wake, and writes no more.
            assert_eq!(gate.data.with(|data| unsafe { *data }), 7);
        }
        assert_eq!(opener.join().unwrap(), sees);
    });
}

/// Finds: a notification in flight is lost to the deadline that came at the same moment, or lands in a later sleep.
#[test]
fn a_notification_in_flight_is_awaited() {
    check(|| {
        let gate = Gate::new();
        let opener = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.open())
        };
        let why = gate.pass(true);
        let next = gate.sleeper.word.begin(true);
        let permits = u32::from(!opener.join().unwrap() && why == Waking::TimedOut);
        assert_eq!(gate.state.lock().permits, permits, "the notification is neither lost nor doubled");
        gate.sleeper.assert_even();
        let later = gate.sleeper.word.why();
        assert!(!later.notified && !later.timed_out, "nothing lands in the next sleep: {later:?}");
        assert_eq!(gate.sleeper.word.expire(next), Woke::Left, "not asleep");
    });
}

/// Finds: over two sleeps in a row, a notification for the first one that ends the second.
#[test]
fn each_notification_is_used_once() {
    check_bounded(3, || {
        let gate = Gate::new();
        let opener = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                gate.open();
                gate.open();
            })
        };
        let passed = [gate.pass(true), gate.pass(true)];
        opener.join().unwrap();
        gate.sleeper.assert_even();
        let notified = passed.iter().filter(|why| **why == Waking::Notified).count();
        let permits = gate.state.lock().permits;
        assert_eq!(u32::try_from(notified).unwrap() + permits, 2);
    });
}
