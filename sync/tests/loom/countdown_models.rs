//! The count under the countdown event and the wait group.

use std::cell::Cell;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::countdown::{Added, Countdown, Signalled, Zero};
use crate::primitive::{check, check_bounded};
use crate::wait::Sleeper;
use crate::wait::list::Node;

struct Model {
    state: Countdown,
    /// One for each signaller, written before its signal.
    data: [UnsafeCell<u32>; 2],
}

// SAFETY: the data is handed over by the signals, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(count: u64) -> Arc<Self> {
        let model = Model { state: Countdown::new(count), data: [0, 0].map(UnsafeCell::new) };
        drop(model.state.crowd().lock());
        assert_eq!(model.state.count(), count);
        Arc::new(model)
    }

    fn signal(&self) {
        match self.state.signal(1) {
            Signalled::Counted => {}
            Signalled::Last(ended) => loop {
                let next = self.state.crowd().lock().next(ended);
                match next {
                    Some(wake) => wake.wake(),
                    None => return,
                }
            },
            Signalled::TooMany => panic!("below zero"),
        }
    }

    fn wait(&self) {
        if self.state.count() == 0 {
            return;
        }
        let (node, sleeper) = (Node::with(Cell::new(0)), Sleeper::new());
        let _ = sleeper.word.begin(false);
        // SAFETY: the node lives until its wake has landed.
        if unsafe { self.state.join(&node, sleeper.raw()) } {
            sleeper.leave_stack();
        }
    }
}

/// Hunts: a sleeper that joins as the last signal comes and is not woken; what was done before one of the signals and is not
/// seen after the wait.
#[test]
fn the_last_signal_wakes_who_goes_to_sleep() {
    check_bounded(3, || {
        let model = Model::new(2);
        let signallers = [0, 1].map(|at| {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                // SAFETY: the cell is this signaller's.
                model.data[at].with_mut(|data| unsafe { *data = 7 });
                model.signal();
            })
        });
        model.wait();
        for data in &model.data {
            // SAFETY: the signallers write no more.
            assert_eq!(data.with(|data| unsafe { *data }), 7);
        }
        signallers.into_iter().for_each(|signaller| signaller.join().unwrap());
    });
}

/// Hunts: a waiter that came when the group was used again, and is woken by the signal that ended the use before.
#[test]
fn a_round_that_ends_wakes_nobody_of_the_next() {
    check_bounded(3, || {
        let model = Model::new(1);
        let first = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.signal())
        };
        assert_eq!(model.state.add(1, Zero::Reusable), Added::Counted);
        // One signal is missing, whichever of the two came first.
        let (node, sleeper) = (Node::with(Cell::new(0)), Sleeper::new());
        let epoch = sleeper.word.begin(false);
        // SAFETY: the node lives until this ends, before which it has left, or its wake has landed.
        assert!(unsafe { model.state.join(&node, sleeper.raw()) });
        sleeper.leave_stack_and(|| sleeper.settle(sleeper.word.expire(epoch)));
        // SAFETY: the node is in this crowd or in none.
        assert!(unsafe { model.state.crowd().lock().leave(&node) }, "nobody wakes it");
        first.join().unwrap();
        assert!(!sleeper.word.why().notified);
        assert_eq!(model.state.count(), 1);
    });
}

/// Hunts: an addition that succeeds though the count was zero before.
#[test]
fn zero_is_final_for_an_event() {
    check(|| {
        let model = Model::new(1);
        let signaller = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.signal())
        };
        let added = model.state.add(1, Zero::Final) == Added::Counted;
        signaller.join().unwrap();
        assert_eq!(model.state.count(), u64::from(added));
    });
}
