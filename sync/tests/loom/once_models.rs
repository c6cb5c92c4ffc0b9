//! Initialization: one runs, no waiter sleeps for ever.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::gate_in_small::assert_no_wake_is_left;
use crate::primitive::check_bounded;
use crate::typed::once::{End, Name, Once};
use crate::wait::{over, own_as};

/// A value that initializers write to.
struct Cell {
    once: Once,
    value: UnsafeCell<u32>,
}

// SAFETY: what the model checks: the value is written by the initializer, and read once it is complete.
unsafe impl Sync for Cell {}
// SAFETY: as above.
unsafe impl Send for Cell {}

impl Cell {
    fn new() -> Arc<Self> {
        let cell = Cell { once: Once::new(), value: UnsafeCell::new(0) };
        // Each of loom's objects is made by its first use.
        assert!(!cell.once.wait_deadline(over()));
        Arc::new(cell)
    }

    /// Calls with force, and ends a run in the way of `how`. True if it ran.
    fn call(&self, how: End) -> bool {
        let mut has_run = false;
        self.once.call(Name("Once"), true, |_| {
            // SAFETY: one runs at a time.
            self.value.with_mut(|value| unsafe { *value += 1 });
            has_run = true;
            how
        });
        has_run
    }

    fn value(&self) -> u32 {
        assert!(self.once.is_completed());
        // SAFETY: it is complete.
        self.value.with(|value| unsafe { *value })
    }
}

/// Runs `first` beside `second`.
fn beside(
    first: impl FnOnce(&Cell) -> bool + Send + 'static,
    second: impl FnOnce(&Cell) -> bool,
) -> (Arc<Cell>, bool, bool) {
    let cell = Cell::new();
    let other = {
        let cell = Arc::clone(&cell);
        thread::spawn(move || {
            own_as(2);
            first(&cell)
        })
    };
    let second = second(&cell);
    let first = other.join().unwrap();
    (cell, first, second)
}

/// Finds: two runs at once; a caller that sleeps for ever, or goes on before it sees what the run wrote.
#[test]
fn one_runs_and_the_other_sees_it() {
    check_bounded(3, || {
        let call = |cell: &Cell| {
            let ran = cell.call(End::Complete);
            assert_eq!(cell.value(), 1);
            ran
        };
        let (_, first, second) = beside(call, call);
        assert!(first != second);
    });
}

/// Finds: a waiter for the completion that is not woken by it, or does not see what the run wrote.
#[test]
fn a_completion_ends_a_wait() {
    check_bounded(3, || {
        let call = |cell: &Cell| cell.call(End::Complete);
        let wait = |cell: &Cell| {
            cell.once.wait();
            cell.value() == 1
        };
        let (_, ran, saw) = beside(call, wait);
        assert!(ran && saw);
    });
}

/// Finds: a failed run whose successor sleeps for ever, or does not see what it left behind.
#[test]
fn a_failed_run_has_a_successor() {
    for failure in [End::Poisoned, End::Incomplete] {
        check_bounded(3, move || {
            let (cell, failed, ran) = beside(move |cell| cell.call(failure), |cell| cell.call(End::Complete));
            assert!(ran || failed);
            // Where the run that completes came first, the other did not run.
            assert_eq!(cell.value(), 1 + u32::from(failed));
        });
    }
}

/// Finds: a waiter for the completion only, lost between a run that failed and the one that completes.
#[test]
fn a_wait_outlasts_a_failed_run() {
    check_bounded(3, || {
        let calls = |cell: &Cell| cell.call(End::Poisoned) && cell.call(End::Complete);
        let wait = |cell: &Cell| {
            cell.once.wait_force();
            cell.value() == 2
        };
        let (_, ran, saw) = beside(calls, wait);
        assert!(ran && saw);
    });
}

/// Finds: a wait at its deadline as the run ends: it leaves an entry behind that is woken, or takes itself for notified and
/// does not see what the run wrote; its wake lands in the next sleep.
#[test]
fn a_wait_at_its_deadline_has_left_or_is_notified() {
    check_bounded(3, || {
        let wait = |cell: &Cell| {
            if cell.once.wait_deadline(over()) {
                assert_eq!(cell.value(), 1);
            }
            assert_no_wake_is_left();
            cell.once.wait();
            cell.value() == 1
        };
        let (_, ran, saw) = beside(|cell| cell.call(End::Complete), wait);
        assert!(ran && saw);
    });
}

/// Finds: the wake of a failed run that is given to a wait at its deadline, so that the next owner sleeps on.
#[test]
fn a_failed_run_wakes_its_successor_beside_a_wait_at_its_deadline() {
    check_bounded(2, || {
        let cell = Cell::new();
        let other = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                own_as(2);
                let _ = cell.once.wait_deadline(over());
                assert_no_wake_is_left();
                cell.call(End::Complete)
            })
        };
        let failed = cell.call(End::Incomplete);
        assert!(other.join().unwrap());
        assert_eq!(cell.value(), 1 + u32::from(failed));
    });
}
