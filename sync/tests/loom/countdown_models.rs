//! The count under the countdown event and the wait group.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::countdown::{Added, Countdown, Signalled, Zero};
use crate::gate_in_small::assert_no_wake_is_left;
use crate::primitive::check_bounded;
use crate::wait::{Until, over};

struct Model {
    count: Countdown,
    /// One for each signaller, written before its signal.
    data: [UnsafeCell<u32>; 2],
}

// SAFETY: the data is handed over by the signals, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(count: u64) -> Arc<Self> {
        let model = Model { count: Countdown::new(count), data: [0, 0].map(UnsafeCell::new) };
        assert_eq!(model.count.count(), count);
        assert!(!model.count.wait(Until::unwind(Some(over()))));
        Arc::new(model)
    }

    fn signal(&self) {
        assert_ne!(self.count.signal(1), Signalled::TooMany);
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model))
    }
}

/// Finds: a waiter that joins as the last signal comes and is not woken; what was done before one of the signals and is not
/// seen after the wait.
#[test]
fn the_last_signal_wakes_a_task_that_goes_to_sleep() {
    check_bounded(2, || {
        let model = Model::new(2);
        let signallers = [0, 1].map(|at| {
            model.spawn(move |model| {
                // SAFETY: the cell is this signaller's.
                model.data[at].with_mut(|data| unsafe { *data = 7 });
                model.signal();
            })
        });
        assert!(model.count.wait(Until::unwind(None)));
        for data in &model.data {
            // SAFETY: the signallers write no more.
            assert_eq!(data.with(|data| unsafe { *data }), 7);
        }
        signallers.into_iter().for_each(|signaller| signaller.join().unwrap());
    });
}

/// Finds: a waiter that came when the group was used again, and is woken by the signal that ended the use before.
#[test]
fn a_round_that_ends_wakes_no_waiter_of_the_next() {
    check_bounded(3, || {
        let model = Model::new(1);
        let first = model.spawn(Model::signal);
        assert_eq!(model.count.add(1, Zero::Reusable), Added::Counted);
        // One signal is missing, in whichever order the two came.
        assert!(!model.count.wait(Until::unwind(Some(over()))), "the count is not zero");
        assert_no_wake_is_left();
        first.join().unwrap();
        assert_eq!(model.count.count(), 1);
    });
}

/// Finds: a waiter that the step to zero misses, since the step from zero comes at once.
#[test]
fn a_zero_that_ends_at_once_releases_the_waiters() {
    check_bounded(3, || {
        let model = Model::new(1);
        let signaller = model.spawn(|model| {
            model.signal();
            assert_eq!(model.count.add(1, Zero::Reusable), Added::Counted);
            // For a waiter that came too late.
            model.signal();
        });
        assert!(model.count.wait(Until::unwind(None)));
        signaller.join().unwrap();
        assert_eq!(model.count.count(), 0);
    });
}

/// Finds: an addition that succeeds though the count was zero before.
#[test]
fn zero_is_final_for_an_event() {
    check_bounded(3, || {
        let model = Model::new(1);
        let signaller = model.spawn(Model::signal);
        let added = model.count.add(1, Zero::Final) == Added::Counted;
        signaller.join().unwrap();
        assert_eq!(model.count.count(), u64::from(added));
    });
}
