//! Initialization: one runs, nobody sleeps for ever.

use std::num::NonZeroU64;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::gate_in_small::assert_no_wake_is_left;
use crate::once::{Begun, End, Phase, RawOnce, Role};
use crate::primitive::check_bounded;
use crate::typed;
use crate::wait::list::Node;
use crate::wait::{Sleeper, over, own_as};

struct Cell {
    raw: RawOnce,
    value: UnsafeCell<u32>,
    sleepers: [Arc<Sleeper>; 2],
}

// SAFETY: what the model checks: the value is written by who runs, and read once it is complete.
unsafe impl Sync for Cell {}
// SAFETY: as above.
unsafe impl Send for Cell {}

impl Cell {
    fn new() -> Arc<Self> {
        let cell = Cell {
            raw: RawOnce::new(),
            value: UnsafeCell::new(0),
            sleepers: std::array::from_fn(|_| Sleeper::new()),
        };
        drop(cell.raw.waiters().lock());
        assert_eq!(cell.raw.phase(), Phase::Incomplete);
        Arc::new(cell)
    }

    fn sleep(&self, index: usize, role: Role) {
        let node = Node::with(role);
        let sleeper = &self.sleepers[index];
        let _ = sleeper.word.begin(true);
        // SAFETY: the node lives until the wake has landed, which `leave_stack` waits for.
        if unsafe { self.raw.enter(&node, sleeper.raw()) } {
            sleeper.leave_stack();
        }
    }

    /// As `Once::call` with force, and a run that ends so. True if it ran.
    fn call(&self, index: usize, how: End) -> bool {
        let me = NonZeroU64::new(index as u64 + 1).unwrap();
        loop {
            match self.raw.begin(me, true) {
                Begun::Run { .. } => break,
                Begun::Complete => return false,
                Begun::Busy => self.sleep(index, Role::Successor),
                Begun::Poisoned | Begun::Recursive => unreachable!(),
            }
        }
        // SAFETY: one runs at a time.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.end(how);
        true
    }

    /// As the drop of a `Run`.
    fn end(&self, how: End) {
        self.raw.end(how);
        let mut successor = false;
        loop {
            let wake = self.raw.next_after(&mut self.raw.waiters().lock(), &mut successor);
            let Some(wake) = wake else { return };
            wake.wake();
        }
    }

    /// As `Once::wait_force`.
    fn wait(&self, index: usize) {
        while !self.raw.is_complete() {
            self.sleep(index, Role::Finisher);
        }
    }

    fn value(&self) -> u32 {
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
        thread::spawn(move || first(&cell))
    };
    let second = second(&cell);
    let first = other.join().unwrap();
    (cell, first, second)
}

/// Hunts: two runs at once; a caller that sleeps for ever, or goes on before it sees what the run wrote.
#[test]
fn one_runs_and_the_other_sees_it() {
    check_bounded(3, || {
        let call = |index| {
            move |cell: &Cell| {
                let ran = cell.call(index, End::Complete);
                assert_eq!(cell.value(), 1);
                ran
            }
        };
        let (_, first, second) = beside(call(0), call(1));
        assert!(first != second);
    });
}

/// Hunts: one who waits for the completion and is not woken by it, or does not see what the run wrote.
#[test]
fn a_completion_ends_a_wait() {
    check_bounded(3, || {
        let call = |cell: &Cell| cell.call(0, End::Complete);
        let wait = |cell: &Cell| {
            cell.wait(1);
            cell.value() == 1
        };
        let (_, ran, saw) = beside(call, wait);
        assert!(ran && saw);
    });
}

/// Hunts: a failed run whose successor sleeps for ever, or does not see what it left behind.
#[test]
fn a_failed_run_has_a_successor() {
    check_bounded(3, || {
        let (cell, failed, ran) =
            beside(|cell| cell.call(0, End::Poisoned), |cell| cell.call(1, End::Complete));
        assert!(ran || failed);
        // Where the one that completes came first, the other did not run.
        assert_eq!(cell.value(), 1 + u32::from(failed));
    });
}

/// Hunts: one who waits for the completion only, lost between a run that failed and the one that completes.
#[test]
fn a_wait_outlasts_a_failed_run() {
    check_bounded(3, || {
        let calls = |cell: &Cell| cell.call(0, End::Poisoned) && cell.call(0, End::Complete);
        let wait = |cell: &Cell| {
            cell.wait(1);
            cell.value() == 2
        };
        let (_, ran, saw) = beside(calls, wait);
        assert!(ran && saw);
    });
}

/// An initialization by what users call, where waits have deadlines.
struct Timed {
    once: typed::once::Once,
    value: UnsafeCell<u32>,
}

// SAFETY: as of `Cell`.
unsafe impl Sync for Timed {}
// SAFETY: as above.
unsafe impl Send for Timed {}

impl Timed {
    fn new() -> Arc<Self> {
        let timed = Timed { once: typed::once::Once::new(), value: UnsafeCell::new(0) };
        // Each of loom's objects is made by its first use.
        assert!(!timed.once.wait_deadline(over()));
        Arc::new(timed)
    }

    /// Runs.
    fn call(&self) {
        self.once.call_once(|| {
            // SAFETY: one runs at a time.
            self.value.with_mut(|value| unsafe { *value += 1 });
        });
    }

    fn assert_complete(&self) {
        assert!(self.once.is_completed());
        // SAFETY: it is complete.
        assert!(self.value.with(|value| unsafe { *value }) > 0);
    }
}

/// Hunts: a wait whose time runs out as the run ends: it leaves a node behind that is woken, or takes itself for told and does not
/// see what the run wrote; its wake lands in the next sleep.
#[test]
fn a_wait_whose_time_runs_out_has_left_or_is_told() {
    check_bounded(3, || {
        let timed = Timed::new();
        let runner = {
            let timed = Arc::clone(&timed);
            thread::spawn(move || {
                own_as(2);
                timed.call();
            })
        };
        if timed.once.wait_deadline(over()) {
            timed.assert_complete();
        }
        assert_no_wake_is_left();
        timed.once.wait();
        timed.assert_complete();
        runner.join().unwrap();
    });
}

/// Hunts: the wake of a failed run that is given to one whose time runs out, so that its successor sleeps on; one that has left and
/// is woken all the same, or waits for a wake that does not come.
#[test]
fn a_failed_run_wakes_its_successor_beside_one_whose_time_runs_out() {
    check_bounded(3, || {
        let cell = Cell::new();
        assert_eq!(cell.raw.begin(NonZeroU64::new(3).unwrap(), true), Begun::Run { poisoned: false });
        let nodes = [Role::Successor, Role::Listener].map(Node::with);
        for (node, sleeper) in nodes.iter().zip(&cell.sleepers) {
            let _ = sleeper.word.begin(true);
            // SAFETY: the node is in no list, and stays until it has left or its wake has landed.
            assert!(unsafe { cell.raw.enter(node, sleeper.raw()) });
        }
        let fails = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.end(End::Incomplete))
        };
        // SAFETY: it was entered there.
        let left = unsafe { cell.raw.leave(&nodes[1]) };
        if !left {
            cell.sleepers[1].await_landing();
        }
        cell.sleepers[0].leave_stack();
        assert_eq!(cell.raw.phase(), Phase::Incomplete);
        fails.join().unwrap();
        assert_eq!(cell.sleepers[1].word.why().notified, !left);
    });
}
