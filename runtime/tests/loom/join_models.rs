//! The end of a task, and a joiner that may wait for something else as well.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::join_state::{Join, JoinState, Joiner};
use crate::primitive::{check, check_bounded};
use crate::wait::{Claim, RawWake, Sleeper};

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
        RawWake(Arc::clone(&self.sleeper))
    }

    /// The runner at the end of the task.
    fn end(&self) {
        // SAFETY: the task is not done.
        self.result.with_mut(|result| unsafe { *result = 7 });
        match self.join.finish() {
            JoinState::Nobody => {}
            JoinState::Waiting(wake) => wake.wake(),
            JoinState::Detached => unreachable!("nobody drops the handle"),
        }
    }

    fn assert_result(&self) {
        assert!(self.join.is_done());
        // SAFETY: the task is done.
        assert_eq!(self.result.with(|result| unsafe { *result }), 7);
    }

    /// Whoever makes the other arm ready.
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

/// Hunts: a runner that touches a joiner which was woken for another arm and has gone; two wakes, or none.
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
            _ => panic!("who woke it has claimed it"),
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        model.sleeper.assert_even();
        model.assert_result();
    });
}

/// Hunts: a runner that touches a joiner whose time has run out, or wakes it after; a wake that is not awaited.
#[test]
fn a_joiner_whose_time_is_over_is_let_go() {
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

/// Hunts: a node that is published again after it was withdrawn, and an end in between that is not seen.
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

/// Hunts: a result that a plain joiner does not see, and a wake that it does not wait for.
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
