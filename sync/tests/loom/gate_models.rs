//! The flag of the manual-reset event.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::gate_in_small::assert_no_wake_is_left;
use crate::manual_reset_event::ManualResetEvent;
use crate::primitive::check_bounded;
use crate::wait::{Chosen, Until, over, wait_any};

struct Model {
    event: ManualResetEvent,
    /// Written before the set.
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over by the set, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new() -> Arc<Self> {
        let model = Model { event: ManualResetEvent::new(false), data: UnsafeCell::new(0) };
        model.event.reset();
        assert!(!model.event.is_set());
        Arc::new(model)
    }

    fn publish(&self) {
        // SAFETY: it is not read before the set.
        self.data.with_mut(|data| unsafe { *data = 7 });
        self.event.set();
    }

    fn assert_published(&self) {
        // SAFETY: it is not written after the set.
        assert_eq!(self.data.with(|data| unsafe { *data }), 7);
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model))
    }
}

/// Finds: a waiter that joins as the set comes and is not woken; what was done before the set and is not seen after the wait,
/// with a lock and without.
#[test]
fn a_set_wakes_a_task_that_goes_to_sleep_and_publishes_earlier_writes() {
    check_bounded(3, || {
        let model = Model::new();
        let setter = model.spawn(Model::publish);
        model.event.wait();
        model.assert_published();
        setter.join().unwrap();
    });
}

/// Finds: a waiter that joined before a set, kept back by the reset that follows at once.
#[test]
fn a_reset_that_follows_keeps_no_joined_waiter_back() {
    check_bounded(3, || {
        let model = Model::new();
        let pulse = model.spawn(|model| {
            model.publish();
            model.event.reset();
            // For a waiter that came too late.
            model.event.set();
        });
        model.event.wait();
        model.assert_published();
        pulse.join().unwrap();
        assert_no_wake_is_left();
    });
}

/// Finds: a waiter that came after the reset, and is woken by the set before it, which is still under way.
#[test]
fn a_set_wakes_no_waiter_that_came_after_the_reset() {
    check_bounded(3, || {
        let model = Model::new();
        let setter = model.spawn(Model::publish);
        while !model.event.is_set() {
            thread::yield_now();
        }
        model.event.reset();
        assert!(!model.event.wait_deadline(over()), "no set comes after the reset");
        assert_no_wake_is_left();
        setter.join().unwrap();
    });
}

/// Finds: a waiter that leaves as a set serves it: it waits for a wake that does not come, or is woken after it has left.
#[test]
fn a_waiter_that_leaves_as_it_is_served_waits_for_its_wake() {
    check_bounded(3, || {
        let model = Model::new();
        let setter = model.spawn(Model::publish);
        if model.event.wait_deadline(over()) {
            model.assert_published();
        }
        assert_no_wake_is_left();
        setter.join().unwrap();
    });
}

/// Finds: an arm of a select that is served by a set though another arm was chosen; an arm that is chosen and not woken.
#[test]
fn a_set_claims_an_arm_or_leaves_it() {
    check_bounded(2, || {
        let models = [Model::new(), Model::new()];
        let setters = models.each_ref().map(|model| model.spawn(Model::publish));
        let arms = models.each_ref().map(|model| model.event.queue_arm());
        let numbered = arms.iter().enumerate().map(|(number, arm)| (arm as &_, number));
        match wait_any(numbered, Until::unwind(None)) {
            Chosen::Served(number) => models[number].assert_published(),
            Chosen::Ready => assert!(models.iter().any(|model| model.event.is_set())),
            chosen => unreachable!("{chosen:?}"),
        }
        assert_no_wake_is_left();
        setters.into_iter().for_each(|setter| setter.join().unwrap());
    });
}
