//! The waiters of a condition, the queue of the mutex that they go to, and their sleeps.

#[path = "../../src/condvar/wait_set.rs"]
mod wait_set;

use std::sync::Arc;

use loom::thread;

use crate::mutex::core::Given;
use crate::mutex::state::{Arrival, Attempt};
use crate::mutex_models::{Model, Sleep, Unlock};
use crate::primitive::check_bounded;
use crate::wait::{Waking, waking};
use wait_set::{Audience, WaitSet};

/// A condition on the value of a mutex, which number 1 holds at first.
struct Condition {
    mutex: Arc<Model>,
    waiters: WaitSet,
}

impl Condition {
    fn new() -> Arc<Self> {
        let condition = Condition { mutex: Model::held(), waiters: WaitSet::new() };
        // Each of loom's objects is made by its first use.
        let first = Sleep::new(1, false);
        assert!(condition.enter(&first));
        // SAFETY: it has joined.
        assert!(unsafe { condition.waiters.leave(&first.node) });
        assert_eq!(condition.waiters.notify(Audience::All), 0);
        Arc::new(condition)
    }

    /// Joins the set, by the owner of the mutex, as the first half of `Entry::after_asleep`.
    fn enter(&self, waiter: &Sleep) -> bool {
        waiter.epoch.set(Some(waiter.sleeper.word.begin(false)));
        // SAFETY: the node lives until `finish` ends, before which it has left the set or its wake has landed.
        unsafe { self.waiters.join(&waiter.node, waiter.sleeper.raw(), &self.mutex.core) }
    }

    /// The sleep of a waiter that has joined and unlocked, and its way back to the mutex. True if notified.
    fn finish(&self, waiter: &Sleep) -> bool {
        let why = self.sleep(waiter);
        let taken = match (why, waiter.node.data().given()) {
            (Waking::Notified, Given::Lock) => true,
            (Waking::Notified, Given::Wake) => self.relock(waiter, Arrival::Woken),
            _ => self.relock(waiter, Arrival::New),
        };
        assert!(taken);
        assert_eq!(self.mutex.owner(), Some(waiter.node.data().owner()));
        self.mutex.use_value();
        self.mutex.release(Unlock::Wake);
        why == Waking::Notified
    }

    fn sleep(&self, waiter: &Sleep) -> Waking {
        let sleeper = &waiter.sleeper;
        sleeper.leave_stack_and(|| {
            if waiter.hurried.replace(false) {
                sleeper.settle(sleeper.word.expire(waiter.epoch.get().unwrap()));
            }
        });
        let why = waking(sleeper.word.why());
        // SAFETY: it has joined.
        if why == Waking::Notified || unsafe { self.waiters.leave(&waiter.node) } {
            return why;
        }
        sleeper.await_landing();
        Waking::Notified
    }

    fn relock(&self, waiter: &Sleep, arrival: Arrival) -> bool {
        let me = waiter.node.data().owner();
        self.mutex.core.word().take(me, arrival) == Attempt::Taken
            || !self.mutex.enter(waiter, arrival)
            || self.mutex.acquire_in_queue(waiter)
    }
}

/// Hunts: a notification between a waiter's unlock and its sleep that is lost.
#[test]
fn a_waiter_that_has_unlocked_is_notified() {
    check_bounded(3, || {
        let condition = Condition::new();
        let notifier = {
            let condition = Arc::clone(&condition);
            thread::spawn(move || {
                let passed = condition.mutex.pass(2, false, Unlock::Wake);
                (passed, condition.waiters.notify(Audience::One))
            })
        };
        let waiter = Sleep::new(1, false);
        assert!(condition.enter(&waiter));
        condition.mutex.release(Unlock::Wake);
        assert!(condition.finish(&waiter));
        assert_eq!(notifier.join().unwrap(), (1, 1));
        condition.mutex.assert_over(2);
    });
}

/// Hunts: a notification that both went to a waiter and found it gone, or neither, as its deadline passes.
#[test]
fn a_notification_and_a_deadline_agree() {
    check_bounded(3, || {
        let condition = Condition::new();
        let notifier = {
            let condition = Arc::clone(&condition);
            thread::spawn(move || condition.waiters.notify(Audience::One) == 1)
        };
        let waiter = Sleep::new(1, true);
        let notified = condition.enter(&waiter) && {
            condition.mutex.release(Unlock::Wake);
            condition.finish(&waiter)
        };
        assert_eq!(notifier.join().unwrap(), notified);
        condition.mutex.assert_over(1);
    });
}

/// Hunts: waiters put into the queue of a mutex that is being unlocked, of which none is woken.
#[test]
fn notified_while_the_mutex_is_unlocked_they_are_served() {
    check_bounded(3, notified_as_it_is_unlocked);
}

fn notified_as_it_is_unlocked() {
    let condition = Condition::new();
    let waiters = [2, 3].map(|me| {
        let waiter = Arc::new(Sleep::new(me, false));
        assert!(condition.enter(&waiter));
        waiter
    });
    let unlocking = {
        let condition = Arc::clone(&condition);
        thread::spawn(move || condition.mutex.release(Unlock::Wake))
    };
    assert_eq!(condition.waiters.notify(Audience::All), 2);
    for waiter in &waiters {
        assert!(condition.finish(waiter));
    }
    unlocking.join().unwrap();
    condition.mutex.assert_over(2);
}

/// Hunts: a notification lost with a waiter whose time ends, while another waits for it.
#[test]
fn a_notification_finds_the_waiter_that_is_left() {
    check_bounded(2, || {
        let condition = Condition::new();
        let [hurried, patient] = [(2, true), (3, false)].map(|(me, hurried)| {
            let waiter = Arc::new(Sleep::new(me, hurried));
            assert!(condition.enter(&waiter));
            waiter
        });
        condition.mutex.release(Unlock::Wake);
        let hurrying = {
            let condition = Arc::clone(&condition);
            thread::spawn(move || condition.finish(&hurried))
        };
        assert_eq!(condition.waiters.notify(Audience::One), 1);
        if hurrying.join().unwrap() {
            assert_eq!(condition.waiters.notify(Audience::One), 1);
        }
        assert!(condition.finish(&patient));
        assert_eq!(condition.waiters.notify(Audience::One), 0);
        condition.mutex.assert_over(2);
    });
}
