//! The waiters of a condition, the queue of the mutex that they go to, and their sleeps.

#[path = "../../src/condvar/wait_set.rs"]
mod wait_set;

use std::sync::Arc;

use loom::thread;

use crate::mutex::core::{Given, Waiter};
use crate::mutex::state::{Arrival, Attempt};
use crate::mutex_models::{Model, Unlock, owner};
use crate::primitive::check_bounded;
use crate::wait::{self, Outcome, Until};
use wait_set::WaitSet;

/// A condition on the value of a mutex, which number 1 holds at first.
struct Condition {
    mutex: Arc<Model>,
    waiters: WaitSet<()>,
}

impl Condition {
    fn new() -> Arc<Self> {
        let condition = Condition { mutex: Model::held(), waiters: WaitSet::new() };
        // Each of loom's objects is made by its first use.
        assert_eq!(condition.notify(usize::MAX), 0);
        Arc::new(condition)
    }

    fn notify(&self, limit: usize) -> usize {
        self.waiters.notify(|(), waiters| self.mutex.core.requeue(waiters, limit))
    }

    /// As `RawCondvar::wait_to`, for number `me`, which then uses the value and unlocks. True if notified.
    fn wait(&self, me: u64, is_hurried: bool, unlock: impl FnOnce()) -> bool {
        let until = Until::unwind_later(is_hurried.then(wait::over));
        let (outcome, waiter) = self.waiters.wait(Waiter::new(owner(me), None), (), until, unlock);
        let relock = |waiter, arrival| {
            self.mutex.core.word().take(owner(me), arrival) == Attempt::Taken
                || self.mutex.compete(waiter, arrival, false, || ())
        };
        let is_notified = outcome == Outcome::Served;
        let is_taken = match is_notified {
            true if waiter.given() == Given::Lock => true,
            true => relock(waiter, Arrival::Woken),
            false => relock(waiter, Arrival::New),
        };
        assert!(is_taken);
        assert_eq!(self.mutex.owner(), Some(owner(me)));
        self.mutex.use_value();
        self.mutex.release(Unlock::Wake);
        is_notified
    }

    /// As [`wait`](Condition::wait), of another thread that is in the set when this returns. It has not had the mutex.
    fn wait_beside(self: &Arc<Self>, me: u64, is_hurried: bool) -> thread::JoinHandle<bool> {
        let condition = Arc::clone(self);
        let waiting = thread::spawn(move || condition.wait(me, is_hurried, || condition.mutex.queued.put()));
        self.mutex.queued.take();
        waiting
    }
}

/// Finds: a notification between a waiter's unlock and its sleep that is lost.
#[test]
fn a_waiter_that_has_unlocked_is_notified() {
    check_bounded(3, || {
        let condition = Condition::new();
        let notifier = {
            let condition = Arc::clone(&condition);
            thread::spawn(move || {
                let passed = condition.mutex.pass(2, false, Unlock::Wake);
                (passed, condition.notify(1))
            })
        };
        assert!(condition.wait(1, false, || condition.mutex.release(Unlock::Wake)));
        assert_eq!(notifier.join().unwrap(), (1, 1));
        condition.mutex.assert_over(2);
    });
}

/// Finds: a notification that both went to a waiter and found it gone, or neither, as its deadline passes.
#[test]
fn a_notification_and_a_deadline_agree() {
    check_bounded(3, || {
        let condition = Condition::new();
        let notifier = {
            let condition = Arc::clone(&condition);
            thread::spawn(move || condition.notify(1) == 1)
        };
        let notified = condition.wait(1, true, || condition.mutex.release(Unlock::Wake));
        assert_eq!(notifier.join().unwrap(), notified);
        condition.mutex.assert_over(1);
    });
}

/// Finds: waiters put into the queue of a mutex that is being unlocked, of which none is woken.
#[test]
fn notified_while_the_mutex_is_unlocked_they_are_served() {
    check_bounded(3, notified_as_it_is_unlocked);
}

fn notified_as_it_is_unlocked() {
    let condition = Condition::new();
    let waiters = [2, 3].map(|me| condition.wait_beside(me, false));
    let unlocking = {
        let condition = Arc::clone(&condition);
        thread::spawn(move || condition.mutex.release(Unlock::Wake))
    };
    assert_eq!(condition.notify(usize::MAX), 2);
    waiters.into_iter().for_each(|waiter| assert!(waiter.join().unwrap()));
    unlocking.join().unwrap();
    condition.mutex.assert_over(2);
}

/// Finds: a notification lost with a waiter at its deadline, while another waiter is there.
#[test]
fn a_notification_finds_the_waiter_that_is_left() {
    check_bounded(2, || {
        let condition = Condition::new();
        let [hurried, patient] =
            [(2, true), (3, false)].map(|(me, is_hurried)| condition.wait_beside(me, is_hurried));
        condition.mutex.release(Unlock::Wake);
        assert_eq!(condition.notify(1), 1);
        if hurried.join().unwrap() {
            assert_eq!(condition.notify(1), 1);
        }
        assert!(patient.join().unwrap());
        assert_eq!(condition.notify(1), 0);
        condition.mutex.assert_over(2);
    });
}
