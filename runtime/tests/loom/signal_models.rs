//! The flag of a `block_on`, and the wake that stands behind it.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::primitive::check;
use crate::wait::Sleeper;
use crate::wake_signal::Signal;

struct Model {
    signal: Signal,
    sleeper: Arc<Sleeper>,
    /// Written by the waker before its wake.
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over by the flag, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new() -> Arc<Self> {
        let model = Model { signal: Signal::new(), sleeper: Sleeper::new(), data: UnsafeCell::new(0) };
        let _ = model.sleeper.word.begin(true);
        let _ = model.signal.leave();
        Arc::new(model)
    }

    /// As the `Wake` of a signal.
    fn wake(&self) {
        if let Some(wake) = self.signal.raise() {
            wake.wake();
        }
    }

    /// As `sleep` with the strategy of `block_on`; `cancelled` if something else ends it.
    fn sleep(&self, cancelled: bool) -> bool {
        let _ = self.sleeper.word.begin(false);
        if !self.signal.enter(self.sleeper.raw()) {
            assert!(self.signal.leave(), "the flag stays up until it is taken");
            return true;
        }
        self.sleeper.leave_stack_and(|| {
            if cancelled {
                self.sleeper.settle(self.sleeper.word.cancel());
            }
        });
        let raised = self.signal.leave();
        if raised {
            self.sleeper.await_landing();
        }
        raised
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model))
    }
}

/// Hunts: a wake before, while or after the sleep begins that is lost, or that does not publish what came before it.
#[test]
fn a_wake_ends_the_wait() {
    check(|| {
        let model = Model::new();
        let waker = model.spawn(|model| {
            // SAFETY: read only once the flag was raised.
            model.data.with_mut(|data| unsafe { *data = 1 });
            model.wake();
        });
        assert!(model.signal.take() || model.sleep(false));
        // SAFETY: the waker wrote before its wake, and writes no more.
        assert_eq!(model.data.with(|data| unsafe { *data }), 1);
        waker.join().unwrap();
        assert!(!model.signal.take(), "the flag was taken down");
        model.sleeper.assert_even();
    });
}

/// Hunts: two wakers that both take the wake, or one that touches it while the sleeper leaves the next; a wake that lands in
/// the sleep after.
#[test]
fn two_wakers_and_two_sleeps() {
    check(|| {
        let model = Model::new();
        let wakers = [model.spawn(Model::wake), model.spawn(Model::wake)];
        assert!(model.sleep(false));
        let again = model.sleep(true);
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        let _ = model.sleeper.word.begin(true);
        assert!(!model.sleeper.word.why().notified, "nothing lands in the next sleep");
        assert!(!(again && model.signal.take()), "two wakes raise the flag twice at the most");
    });
}

/// Hunts: a waker that is called when the wait is over, or was ended by a cancel, and wakes a stranger's sleep.
#[test]
fn a_late_waker_wakes_nobody() {
    check(|| {
        let model = Model::new();
        let waker = model.spawn(Model::wake);
        let raised = model.sleep(true);
        // The next sleep of the same task, of another kind.
        let _ = model.sleeper.word.begin(true);
        waker.join().unwrap();
        assert!(!model.sleeper.word.why().notified);
        assert!(raised != model.signal.take(), "raised once");
        model.sleeper.assert_even();
    });
}
