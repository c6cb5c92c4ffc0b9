//! The cancel flags of a task beside its wait word, and the count of its owners.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::primitive::check;
use crate::task::refs::Refs;
use crate::task::{Header, TaskRef};

/// Finds: a cancel as the task leaves its stack: the canceller finds it awake, the task finds no flag, and it sleeps for ever.
#[test]
fn a_mark_meets_the_falling_asleep() {
    check(|| {
        let header = Arc::new(Header::new());
        let canceller = {
            let header = Arc::clone(&header);
            thread::spawn(move || TaskRef::of(&header).cancel())
        };
        header.sleep_until_cancelled();
        canceller.join().unwrap();
        header.sleeper.assert_even();
        assert!(header.cancel_flags.is_cancelled());
    });
}

/// Finds: a flag that is lost while another flag is set or cleared.
#[test]
fn marks_leave_each_other_alone() {
    check(|| {
        let header = Arc::new(Header::new());
        let others = [TaskRef::cancel, TaskRef::fire].map(|mark| {
            let header = Arc::clone(&header);
            thread::spawn(move || mark(TaskRef::of(&header)))
        });
        header.cancel_flags.clear_fired();
        others.into_iter().for_each(|other| other.join().unwrap());
        header.cancel_flags.clear_fired();
        assert!(header.cancel_flags.is_cancelled());
    });
}

/// Finds: a forked task that its worker and its owner both claim, or neither.
#[test]
fn a_forked_task_is_claimed_once() {
    check(|| {
        let header = Arc::new(Header::new());
        // The spawner writes the closure, then queues the task.
        header.state.with_mut(|state| {
            // SAFETY: no thread has the task yet.
            unsafe { *state = 1 }
        });
        let worker = {
            let header = Arc::clone(&header);
            thread::spawn(move || claim(&header))
        };
        let owner = claim(&header);
        let worker = worker.join().unwrap();
        assert!(owner != worker, "one of the two");
        assert!(header.cancel_flags.is_begun());
    });
}

/// As `claims` and `take_back`: the first claimant takes the closure.
fn claim(header: &Header) -> bool {
    let is_first = header.cancel_flags.begin();
    if is_first {
        header.state.with_mut(|state| {
            // SAFETY: the stage is the first claimant's; that is what the model checks.
            assert_eq!(unsafe { std::mem::take(&mut *state) }, 1);
        });
    }
    is_first
}

/// What its owners do to a task before they let go of it.
struct Owned {
    refs: Refs,
    touched: [UnsafeCell<bool>; 3],
}

// SAFETY: each owner has a cell of its own, and the last one all of them, which is what the models check.
unsafe impl Sync for Owned {}
// SAFETY: as above.
unsafe impl Send for Owned {}

impl Owned {
    fn new() -> Arc<Self> {
        let owned = Owned { refs: Refs::two(), touched: [false; 3].map(UnsafeCell::new) };
        // Each of loom's objects is made by its first use.
        owned.refs.retain();
        assert!(!owned.refs.release());
        Arc::new(owned)
    }

    fn touch(&self, index: usize) {
        // SAFETY: it is this owner's.
        self.touched[index].with_mut(|touched| unsafe { *touched = true });
    }

    /// True for the last, which then frees what all have touched.
    fn let_go(&self) -> bool {
        let last = self.refs.release();
        if last {
            for touched in &self.touched {
                // SAFETY: there is no other count.
                touched.with_mut(|touched| assert!(unsafe { *touched }));
            }
        }
        last
    }
}

/// Finds: a task that is freed twice, never, or before another owner has done with it.
#[test]
fn the_last_owner_frees_what_all_have_done_with() {
    check(|| {
        let owned = Owned::new();
        owned.refs.retain();
        let others = [1, 2].map(|index| {
            let owned = Arc::clone(&owned);
            thread::spawn(move || {
                owned.touch(index);
                owned.let_go()
            })
        });
        owned.touch(0);
        let frees = others.len() as u32 + 1;
        let mut last = u32::from(owned.let_go());
        last += others.into_iter().map(|other| u32::from(other.join().unwrap())).sum::<u32>();
        assert_eq!(last, 1, "of {frees} owners");
    });
}

/// Finds: an owner that takes itself for the last one, while an owner is there that the previous owner has counted.
#[test]
fn owner_counted_by_a_leaving_owner_keeps_the_task() {
    check(|| {
        let owned = Owned::new();
        let other = {
            let owned = Arc::clone(&owned);
            thread::spawn(move || {
                owned.touch(1);
                owned.refs.retain();
                let early = owned.let_go();
                owned.touch(2);
                (early, owned.let_go())
            })
        };
        owned.touch(0);
        let here = owned.let_go();
        let (early, late) = other.join().unwrap();
        assert!(!early && here != late, "one frees it, and not before the third was done");
    });
}
