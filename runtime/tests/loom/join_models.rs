//! The end of a task, and a joiner that may wait for something else as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

use loom::cell::UnsafeCell;
use loom::thread;

use crate::join_state::{Detaching, Join, JoinState, Joiner};
use crate::primitive::{check, check_bounded};
use crate::wait::{Claim, RawWake, Sleeper, Waking, waking};

/// The arms of the sleeper.
const JOINED: usize = 0;
const OTHER: usize = 1;

struct Model {
    join: Join,
    /// Written by the runner before the end.
    result: UnsafeCell<u32>,
    claim: Claim,
    sleeper: Arc<Sleeper>,
}

// SAFETY: the result is handed over by the end of the task, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new() -> Arc<Self> {
        let model = Model {
            join: Join::new(),
            result: UnsafeCell::new(0),
            claim: Claim::new(),
            sleeper: Sleeper::new(),
        };
        assert!(!model.join.is_done());
        assert_eq!(model.claim.taken(), None);
        let _ = model.sleeper.word.begin(true);
        Arc::new(model)
    }

    fn wake(&self) -> RawWake {
        self.sleeper.raw()
    }

    /// The runner at the end of the task.
    fn end(&self) {
        // SAFETY: the task is not done.
        self.result.with_mut(|result| unsafe { *result = 7 });
        match self.join.finish() {
            JoinState::Unjoined => {}
            JoinState::Waiting(wake) => wake.wake(),
            JoinState::Polled(waker) => waker.wake(),
            // SAFETY: a handle that is gone has left the result.
            JoinState::Detached => self.result.with_mut(|result| unsafe { *result = 0 }),
        }
    }

    /// As in `task/raw.rs`: where the handle has gone already, the result is dropped before the end.
    fn complete(&self) {
        if !self.join.is_detached() {
            return self.end();
        }
        // SAFETY: a handle that is gone has left the stage.
        self.result.with_mut(|result| unsafe { *result = 0 });
        assert!(matches!(self.join.finish(), JoinState::Detached), "a dropped handle does not come back");
    }

    /// A sleep of `UntilDone` in `task/join.rs`. True if the task has ended.
    fn sleep_until_done(&self, joiner: &Joiner, expires: bool) -> bool {
        let word = &self.sleeper.word;
        let epoch = word.begin(true);
        if !self.join.publish(joiner, self.wake()) {
            assert!(joiner.is_served(), "roused early");
            return true;
        }
        self.sleeper.leave_stack_and(|| {
            if expires {
                self.sleeper.settle(word.expire(epoch));
            }
        });
        let why = waking(word.why());
        if (why == Waking::Notified && joiner.is_served()) || self.join.withdraw(joiner) {
            return why == Waking::Notified;
        }
        self.sleeper.await_landing();
        true
    }

    /// One poll of the handle with the waker of `future`. True if the result is there.
    fn poll(&self, future: &Arc<Future>) -> bool {
        if !self.join.is_done() {
            drop(self.join.withdraw_waker());
            let waker = Box::new(Waker::from(Arc::clone(future)));
            if self.join.publish_waker(waker).is_ok() {
                return false;
            }
        }
        self.assert_result();
        true
    }

    fn assert_result(&self) {
        assert!(self.join.is_done());
        // SAFETY: the task is done.
        assert_eq!(self.result.with(|result| unsafe { *result }), 7);
    }

    /// The thread that makes the other arm ready.
    fn choose_other(&self) {
        if self.claim.take(OTHER) {
            self.wake().wake();
        }
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model))
    }
}

/// The poller. Of std: a count of the model, not of the modelled.
struct Future(AtomicU32);

impl Future {
    fn new() -> Arc<Self> {
        Arc::new(Future(AtomicU32::new(0)))
    }

    fn wakes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Future {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Finds: an end that neither the last poll sees nor its waker tells of; an earlier waker that is called or leaks.
#[test]
fn the_last_poll_sees_the_end_or_its_waker_is_called() {
    check(|| {
        let (model, futures) = (Model::new(), [Future::new(), Future::new()]);
        let runner = model.spawn(Model::end);
        let ready = futures.iter().any(|future| model.poll(future));
        runner.join().unwrap();
        let wakes = futures.iter().map(|future| future.wakes()).sum::<u32>();
        assert!(ready || futures[1].wakes() == 1, "the waker of the last poll is called");
        assert!(!ready || futures[1].wakes() == 0, "a poll that answers leaves no waker");
        assert!(wakes <= 1);
        assert!(futures.iter().all(|future| Arc::strong_count(future) == 1), "wakers are let go");
        model.assert_result();
    });
}

/// Finds: a result that both the runner and the handle drop, or neither; a waker that is freed twice.
#[test]
fn a_polled_handle_that_goes_away_leaves_the_result_to_one() {
    check(|| {
        let (model, future) = (Model::new(), Future::new());
        let runner = model.spawn(Model::end);
        let ready = model.poll(&future);
        if ready {
            model.join.set_taken();
        }
        let waker = model.join.withdraw_waker();
        let detaching = model.join.detach();
        drop(waker);
        assert_eq!(ready, detaching == Detaching::Taken);
        if detaching == Detaching::Done {
            model.assert_result();
            // SAFETY: the task is done and the result is the handle's.
            model.result.with_mut(|result| unsafe { *result = 0 });
        }
        runner.join().unwrap();
        assert_eq!(Arc::strong_count(&future), 1);
        // SAFETY: all threads have ended.
        assert_eq!(model.result.with(|result| unsafe { *result }) == 7, ready, "dropped by one, or taken");
    });
}

/// Finds: a blocking joiner that does not see the end, or trips over the waker of an earlier poll.
#[test]
fn a_joiner_takes_the_place_of_a_waker() {
    check(|| {
        let (model, future) = (Model::new(), Future::new());
        let runner = model.spawn(Model::end);
        if !model.poll(&future) {
            drop(model.join.withdraw_waker());
            let joiner = Joiner::new();
            if model.join.publish(&joiner, model.wake()) {
                model.sleeper.leave_stack();
                assert!(!model.join.withdraw(&joiner), "only the end wakes it");
            }
            drop(joiner);
        }
        model.assert_result();
        runner.join().unwrap();
        model.sleeper.assert_even();
        assert_eq!(Arc::strong_count(&future), 1);
    });
}

/// Finds: a runner that touches a joiner which was woken for another arm and has gone; two wakes, or none.
#[test]
fn a_joiner_is_claimed_for_one_of_two_and_let_go() {
    check_bounded(3, || {
        let model = Model::new();
        let joiner = Joiner::new();
        assert!(model.join.publish_for(&joiner, model.wake(), &model.claim, JOINED));
        let others = [model.spawn(Model::end), model.spawn(Model::choose_other)];
        model.sleeper.leave_stack();
        let claimed = model.claim.close();
        model.join.withdraw_for(&joiner);
        // Loom is told of this end: a later touch of the node is an error.
        drop(joiner);
        match claimed {
            Some(JOINED) => model.assert_result(),
            Some(OTHER) => {}
            _ => panic!("the waker has taken its select token"),
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        model.sleeper.assert_even();
        model.assert_result();
    });
}

/// Finds: a runner that touches a joiner after its deadline, or wakes it then; a wake that is not awaited.
#[test]
fn a_joiner_is_let_go_at_its_deadline() {
    check(|| {
        let model = Model::new();
        let joiner = Joiner::new();
        assert!(model.join.publish_for(&joiner, model.wake(), &model.claim, JOINED));
        let runner = model.spawn(Model::end);
        let claimed = model.claim.close();
        model.join.withdraw_for(&joiner);
        drop(joiner);
        if claimed.is_some() {
            model.sleeper.await_landing();
            model.assert_result();
        }
        runner.join().unwrap();
        model.sleeper.assert_even();
    });
}

/// Finds: a node that is published again after it was withdrawn, and an end in between that is not seen.
#[test]
fn a_joiner_that_withdrew_waits_again() {
    check_bounded(3, || {
        let model = Model::new();
        let joiner = Joiner::new();
        assert!(model.join.publish_for(&joiner, model.wake(), &model.claim, JOINED));
        let runner = model.spawn(Model::end);
        let again = Claim::new();
        let claimed = model.claim.close();
        model.join.withdraw_for(&joiner);
        match claimed {
            Some(_) => model.sleeper.await_landing(),
            None => {
                if model.join.publish_for(&joiner, model.wake(), &again, JOINED) {
                    model.sleeper.leave_stack();
                    assert_eq!(again.close(), Some(JOINED));
                    model.join.withdraw_for(&joiner);
                }
            }
        }
        drop(joiner);
        model.assert_result();
        runner.join().unwrap();
    });
}

/// Finds: a result that a plain joiner does not see, and a wake that it does not wait for.
#[test]
fn a_plain_joiner_is_woken_or_has_withdrawn() {
    check(|| {
        let model = Model::new();
        let joiner = Joiner::new();
        assert!(model.join.publish(&joiner, model.wake()));
        let runner = model.spawn(Model::end);
        if !model.join.withdraw(&joiner) {
            model.sleeper.await_landing();
            model.assert_result();
        }
        drop(joiner);
        runner.join().unwrap();
        model.sleeper.assert_even();
    });
}

/// Finds: a result that both the runner and an unjoined handle drop, or neither; also where the runner looks for the handle
/// before it has a result.
#[test]
fn a_handle_that_goes_away_leaves_the_result_to_one() {
    check(|| {
        let model = Model::new();
        let runner = model.spawn(Model::complete);
        if model.join.detach() == Detaching::Done {
            model.assert_result();
            // SAFETY: the task is done and the result is the handle's.
            model.result.with_mut(|result| unsafe { *result = 0 });
        }
        runner.join().unwrap();
        // SAFETY: all threads have ended.
        assert_eq!(model.result.with(|result| unsafe { *result }), 0, "dropped by one");
    });
}

/// Finds: a sleeper at its deadline as the task ends, and that takes itself for withdrawn or for served wrongly; a wake that
/// lands in its next sleep.
#[test]
fn the_end_meets_the_deadline_of_its_joiner() {
    check(|| {
        let model = Model::new();
        let runner = model.spawn(Model::end);
        let joiner = Joiner::new();
        if model.sleep_until_done(&joiner, true) {
            model.assert_result();
        }
        drop(joiner);
        let _ = model.sleeper.word.begin(true);
        runner.join().unwrap();
        assert!(!model.sleeper.word.why().notified, "nothing lands in the next sleep");
        model.sleeper.assert_even();
    });
}

/// Finds: an end between two waits of one joiner, after the first was cut short: it is not seen, or its wake is lost.
#[test]
fn a_joiner_that_was_cut_short_waits_on() {
    check_bounded(3, || {
        let model = Model::new();
        let runner = model.spawn(Model::end);
        let joiner = Joiner::new();
        if !model.sleep_until_done(&joiner, true) {
            assert!(model.sleep_until_done(&joiner, false), "there is no deadline any more");
        }
        drop(joiner);
        model.assert_result();
        runner.join().unwrap();
        model.sleeper.assert_even();
    });
}
