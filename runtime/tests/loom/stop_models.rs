//! The flag of a token and those who wait for it.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::primitive::check_bounded;
use crate::stop::Stop;
use crate::wait::list::{List, Node};
use crate::wait::{Claim, RawWake, Sleeper};

struct Model {
    stop: Stop,
    /// Written before the cancel.
    data: UnsafeCell<u32>,
    sleeper: Arc<Sleeper>,
}

// SAFETY: the data is handed over by the cancel, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new() -> Arc<Self> {
        let model = Model { stop: Stop::new(false), data: UnsafeCell::new(0), sleeper: Sleeper::new() };
        drop(model.stop.waiters().lock());
        assert!(!model.stop.is_cancelled());
        let _ = model.sleeper.word.begin(true);
        Arc::new(model)
    }

    fn wake(&self) -> RawWake {
        self.sleeper.raw()
    }

    fn cancel(&self) {
        // SAFETY: nobody reads it before the cancel.
        self.data.with_mut(|data| unsafe { *data = 7 });
        assert!(self.stop.cancel(), "there is one");
        loop {
            let next = List::pop_front(&mut self.stop.waiters().lock());
            match next {
                Some(wake) => wake.wake(),
                None => return,
            }
        }
    }

    fn assert_cancelled(&self) {
        assert!(self.stop.is_cancelled());
        // SAFETY: nobody writes it after the cancel.
        assert_eq!(self.data.with(|data| unsafe { *data }), 7);
    }

    fn spawn_cancel(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let model = Arc::clone(self);
        thread::spawn(move || model.cancel())
    }
}

/// Hunts: a sleeper that joins as the cancel comes and is not woken; what was done before the cancel and is not seen after.
#[test]
fn a_cancel_wakes_who_goes_to_sleep_and_shows_what_was_done() {
    check_bounded(3, || {
        let model = Model::new();
        let canceller = model.spawn_cancel();
        let node = Node::new();
        // SAFETY: the node lives until its wake has landed.
        if unsafe { model.stop.join(&node, model.wake(), None) } {
            model.sleeper.leave_stack();
        }
        model.assert_cancelled();
        canceller.join().unwrap();
        model.sleeper.assert_even();
    });
}

/// Hunts: a flag that is seen, and what was done before it is not, by who takes no lock.
#[test]
fn who_looks_at_the_flag_alone_sees_what_was_done() {
    check_bounded(3, || {
        let model = Model::new();
        let canceller = model.spawn_cancel();
        if model.stop.is_cancelled() {
            model.assert_cancelled();
        }
        canceller.join().unwrap();
        assert!(!model.stop.cancel(), "the second one has nothing to do");
    });
}

/// Hunts: a sleeper that leaves as the cancel takes it out, and is woken after it has gone, or not at all.
#[test]
fn who_leaves_as_it_is_served_waits_for_its_wake() {
    check_bounded(3, || {
        let model = Model::new();
        let node = Node::new();
        // SAFETY: the node lives until its wake has landed, or it has left.
        assert!(unsafe { model.stop.join(&node, model.wake(), None) });
        let canceller = model.spawn_cancel();
        // SAFETY: the node is in this list or in none.
        let has_left = unsafe { model.stop.leave(&node) };
        if !has_left {
            model.sleeper.await_landing();
            model.assert_cancelled();
        }
        drop(node);
        canceller.join().unwrap();
        assert_eq!(model.sleeper.word.why().notified, !has_left);
        model.sleeper.assert_even();
    });
}

/// Hunts: an arm of a select that a cancel claims after another was chosen; one that nobody claims and nobody wakes.
#[test]
fn a_cancel_claims_an_arm_or_leaves_it() {
    check_bounded(3, || {
        let model = Model::new();
        let (node, claim) = (Node::new(), Claim::new());
        assert_eq!(claim.taken(), None);
        // SAFETY: node and claim live until it has left, or its wake has landed.
        assert!(unsafe { model.stop.join(&node, model.wake(), Some((&claim, 1))) });
        let canceller = model.spawn_cancel();
        let claimed = claim.close();
        // SAFETY: the node is in this list or in none.
        let has_left = unsafe { model.stop.leave(&node) };
        if claimed.is_some() {
            model.sleeper.await_landing();
        }
        canceller.join().unwrap();
        assert!(claimed.is_none_or(|arm| arm == 1 && !has_left));
        assert_eq!(model.sleeper.word.why().notified, claimed.is_some());
        model.sleeper.assert_even();
    });
}
