//! The flag and the rounds under the manual-reset event.

use std::cell::Cell;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::gate::Gate;
use crate::primitive::{check, check_bounded};
use crate::wait::list::Node;
use crate::wait::{Claim, Sleeper};

struct Model {
    gate: Gate,
    /// Written before the set.
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over by the set, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new() -> Arc<Self> {
        let model = Model { gate: Gate::new(false), data: UnsafeCell::new(0) };
        drop(model.gate.crowd().lock());
        assert!(!model.gate.is_set());
        Arc::new(model)
    }

    fn set(&self) {
        let ended = self.gate.set();
        loop {
            let next = self.gate.crowd().lock().next(ended);
            match next {
                Some(wake) => wake.wake(),
                None => return,
            }
        }
    }

    fn publish(&self) {
        // SAFETY: nobody reads it before the set.
        self.data.with_mut(|data| unsafe { *data = 7 });
        self.set();
    }

    fn assert_published(&self) {
        // SAFETY: nobody writes it after the set.
        assert_eq!(self.data.with(|data| unsafe { *data }), 7);
    }

    /// As a wait of the event.
    fn wait(&self) {
        if self.gate.is_set() {
            return;
        }
        let (node, sleeper) = (Node::with(Cell::new(0)), Sleeper::new());
        let _ = sleeper.word.begin(false);
        // SAFETY: the node lives until its wake has landed.
        if unsafe { self.gate.join(&node, sleeper.raw()) } {
            sleeper.leave_stack();
        }
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model))
    }
}

/// Hunts: a sleeper that joins as the set comes and is not woken; what was done before the set and is not seen after the wait,
/// with a lock and without.
#[test]
fn a_set_wakes_who_goes_to_sleep_and_shows_what_was_done() {
    check_bounded(3, || {
        let model = Model::new();
        let setter = model.spawn(Model::publish);
        model.wait();
        model.assert_published();
        setter.join().unwrap();
    });
}

/// Hunts: a waiter of the round that a set ends, kept back by the reset that follows at once.
#[test]
fn a_reset_that_follows_keeps_nobody_back_who_has_joined() {
    check_bounded(3, || {
        let model = Model::new();
        let (node, sleeper) = (Node::with(Cell::new(0)), Sleeper::new());
        let _ = sleeper.word.begin(false);
        // SAFETY: the node lives until its wake has landed.
        assert!(unsafe { model.gate.join(&node, sleeper.raw()) });
        let pulse = model.spawn(|model| {
            model.set();
            model.gate.reset();
        });
        sleeper.leave_stack();
        pulse.join().unwrap();
        assert!(sleeper.word.why().notified && !model.gate.is_set());
        sleeper.assert_even();
    });
}

/// Hunts: a waiter that came after the reset, and is woken by the set before it, which is still under way.
#[test]
fn a_set_wakes_nobody_who_came_after_the_reset() {
    check_bounded(3, || {
        let model = Model::new();
        let setter = model.spawn(Model::set);
        while !model.gate.is_set() {
            thread::yield_now();
        }
        model.gate.reset();
        let (node, sleeper) = (Node::with(Cell::new(0)), Sleeper::new());
        let epoch = sleeper.word.begin(false);
        // SAFETY: the node lives until this ends, before which it has left.
        assert!(unsafe { model.gate.join(&node, sleeper.raw()) });
        sleeper.leave_stack_and(|| sleeper.settle(sleeper.word.expire(epoch)));
        // SAFETY: the node is in this crowd or in none.
        assert!(unsafe { model.gate.crowd().lock().leave(&node) }, "nobody wakes it");
        setter.join().unwrap();
        assert!(!sleeper.word.why().notified);
    });
}

/// Hunts: a sleeper that leaves as a set takes it out, and waits for a wake that does not come, or is woken after it has left.
#[test]
fn who_leaves_as_it_is_served_waits_for_its_wake() {
    check_bounded(3, || {
        let model = Model::new();
        let (node, sleeper) = (Node::with(Cell::new(0)), Sleeper::new());
        let _ = sleeper.word.begin(false);
        // SAFETY: the node lives until its wake has landed, or it has left.
        assert!(unsafe { model.gate.join(&node, sleeper.raw()) });
        let setter = model.spawn(Model::set);
        // SAFETY: the node is in this crowd or in none.
        let has_left = unsafe { model.gate.crowd().lock().leave(&node) };
        if !has_left {
            sleeper.await_landing();
        }
        setter.join().unwrap();
        assert_eq!(sleeper.word.why().notified, !has_left);
        sleeper.assert_even();
    });
}

/// Hunts: an arm of a select that is served by a set though another arm was chosen; one that is chosen by nobody.
#[test]
fn a_set_claims_an_arm_or_leaves_it() {
    check(|| {
        let model = Model::new();
        let (node, sleeper, claim) = (Node::with(Cell::new(0)), Sleeper::new(), Claim::new());
        assert_eq!(claim.taken(), None);
        let _ = sleeper.word.begin(false);
        // SAFETY: the node and the claim live until it has left, or its wake has landed.
        assert!(unsafe { model.gate.join_for(&node, sleeper.raw(), &claim, 1) });
        let setter = model.spawn(Model::set);
        let claimed = claim.close();
        // SAFETY: the node is in this crowd or in none.
        let has_left = unsafe { model.gate.crowd().lock().leave(&node) };
        if claimed.is_some() {
            sleeper.await_landing();
        }
        setter.join().unwrap();
        assert!(claimed.is_none_or(|arm| arm == 1 && !has_left));
        assert_eq!(sleeper.word.why().notified, claimed.is_some());
    });
}
