//! The word and the list under the semaphore and the auto-reset event.
//!
//! No more than two threads meet at a time: of three, two may wait for the lock of the third, and the explorer then follows
//! those two as they give way to each other for ever. Who is to be there as a third one waits already.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::permits::{Permits, Served};
use crate::primitive::{AtomicBool, Ordering, check, check_bounded};
use crate::wait::list::Node;
use crate::wait::word::Fallen;
use crate::wait::{Claim, Sleeper};

struct Model {
    permits: Permits,
    /// Written before a permit is given, and read by who has taken it.
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over with a permit, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(free: usize) -> Arc<Self> {
        let model = Model { permits: Permits::new(free), data: UnsafeCell::new(0) };
        model.wake(model.permits.serve());
        assert_eq!(model.permits.free(), free);
        Arc::new(model)
    }

    fn wake(&self, served: Served) {
        let Some(first) = served.first else { return };
        first.wake();
        if served.more {
            self.wake(self.permits.serve());
        }
    }

    fn put(&self, count: usize) {
        let served = self.permits.put(|free| free + count);
        self.wake(served.expect("not over the maximum"));
    }

    fn set(&self) {
        let served = self.permits.put(|_| 1);
        self.wake(served.expect("not over the maximum"));
    }

    /// What an acquisition does.
    fn acquire(&self, wanted: usize) {
        if self.permits.take(wanted) {
            return;
        }
        assert!(self.sleep(wanted, false), "only a deadline ends it otherwise");
    }

    /// What an acquisition does whose deadline comes while it sleeps. True if it was served.
    fn sleep(&self, wanted: usize, expires: bool) -> bool {
        let (node, sleeper) = (Node::with(wanted), Sleeper::new());
        let epoch = sleeper.word.begin(false);
        // SAFETY: the node lives until this ends, before which it is withdrawn or its wake has landed.
        if !unsafe { self.permits.enlist(&node, sleeper.raw()) } {
            return true;
        }
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        if sleeper.word.why().notified {
            return true;
        }
        // SAFETY: the node is in this queue or in none.
        if unsafe { self.permits.withdraw(&node) } {
            self.wake(self.permits.serve());
            return false;
        }
        sleeper.await_landing();
        true
    }
}

/// Hunts: a permit that is put into the word while the sleeper goes to the list, so that nobody wakes it; what was done before
/// the permit was given and is not seen by who has it.
#[test]
fn a_permit_is_seen_by_whoever_goes_to_sleep() {
    check(|| {
        let model = Model::new(0);
        let giver = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                // SAFETY: nobody else has a permit.
                model.data.with_mut(|data| unsafe { *data = 7 });
                model.put(1);
            })
        };
        model.acquire(1);
        // SAFETY: the giver writes no more.
        assert_eq!(model.data.with(|data| unsafe { *data }), 7);
        giver.join().unwrap();
        assert_eq!(model.permits.free(), 0);
    });
}

/// Hunts: a permit that one holder gives to the next without what was done under it, by way of the word or of the list.
#[test]
fn a_permit_passes_on_what_was_done_under_it() {
    check_bounded(3, || {
        let model = Model::new(1);
        let holders = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.acquire(1);
                // SAFETY: of one permit there is one holder.
                model.data.with_mut(|data| unsafe { *data += 1 });
                model.put(1);
            })
        });
        holders.into_iter().for_each(|holder| holder.join().unwrap());
        model.acquire(1);
        // SAFETY: as above.
        assert_eq!(model.data.with(|data| unsafe { *data }), 2);
        assert_eq!(model.permits.free(), 0);
    });
}

/// Hunts: a request for two that is left asleep by two gifts of one.
#[test]
fn a_big_request_is_served_by_several_gifts() {
    check_bounded(3, || {
        let model = Model::new(0);
        let giver = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.put(1);
                model.put(1);
            })
        };
        model.acquire(2);
        giver.join().unwrap();
        assert_eq!(model.permits.free(), 0);
    });
}

/// Hunts: a permit that is lost to a request whose time runs out as it is served.
#[test]
fn a_request_that_leaves_loses_nothing() {
    check_bounded(3, || {
        let model = Model::new(1);
        let giver = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.put(1))
        };
        if model.sleep(2, true) {
            model.put(2);
        }
        giver.join().unwrap();
        assert!(model.permits.take(2), "nobody is in the queue");
        assert_eq!(model.permits.free(), 0);
    });
}

/// Hunts: a request that stays asleep behind a bigger one that has left.
#[test]
fn a_request_that_leaves_blocks_nobody() {
    check_bounded(3, || {
        let model = Model::new(1);
        let small = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.acquire(1))
        };
        assert!(!model.sleep(2, true), "there are never two");
        small.join().unwrap();
        assert_eq!(model.permits.free(), 0);
        model.put(1);
        assert!(model.permits.take(1), "nobody is in the queue");
    });
}

/// Hunts: a set that is swallowed though somebody waits, and one that lets two through.
#[test]
fn each_set_of_an_event_lets_one_through() {
    check_bounded(3, || {
        let model = Model::new(0);
        let waiter = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.acquire(1))
        };
        model.set();
        model.set();
        waiter.join().unwrap();
        let left = model.permits.free();
        assert!(left <= 1, "two sets without a wait are one");
        assert_eq!(model.permits.remove(1), left);
        assert!(!model.permits.take(1));
    });
}

/// Hunts: a set that finds the event set and leaves it at that, so that who takes the earlier set misses what was done before
/// the later one, and waits for ever: the wake-up that Preshing's first auto-reset event lost.
#[test]
fn a_set_that_finds_the_event_set_is_a_set() {
    check(|| {
        let model = Model::new(0);
        let jobs = Arc::new([0, 1].map(|_| AtomicBool::new(false)));
        assert!(jobs.iter().all(|job| !job.load(Ordering::Relaxed)));
        jobs[0].store(true, Ordering::Relaxed);
        model.set();
        let giver = {
            let (model, jobs) = (Arc::clone(&model), Arc::clone(&jobs));
            thread::spawn(move || {
                jobs[1].store(true, Ordering::Relaxed);
                model.set();
            })
        };
        while !jobs.iter().all(|job| job.load(Ordering::Relaxed)) {
            model.acquire(1);
        }
        giver.join().unwrap();
    });
}

/// Hunts: a set that comes while a reset finds somebody waiting.
#[test]
fn a_reset_takes_nothing_from_who_waits() {
    check_bounded(3, || {
        let model = Model::new(1);
        let waiter = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.acquire(1))
        };
        let taken = model.permits.remove(1);
        if taken == 1 {
            model.set();
        }
        waiter.join().unwrap();
        assert_eq!(model.permits.free(), 0);
    });
}

/// Hunts: a permit that is lost with the arm of a select that goes, or given to one that has gone.
#[test]
fn a_permit_passes_by_an_arm_that_leaves() {
    check(|| {
        let model = Model::new(0);
        let (node, sleeper, claim) = (Node::with(1), Sleeper::new(), Claim::new());
        assert_eq!(claim.taken(), None);
        let _ = sleeper.word.begin(false);
        // SAFETY: node and claim live until this ends, before which the node is withdrawn or its wake has landed.
        assert!(unsafe { model.permits.enlist_for(&node, sleeper.raw(), &claim, 0) });
        let giver = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.put(1))
        };
        let claimed = claim.close().is_some();
        // SAFETY: the node is in this queue or in none.
        if unsafe { model.permits.withdraw(&node) } {
            assert!(!claimed);
            model.wake(model.permits.serve());
        }
        if claimed {
            sleeper.await_landing();
            model.put(1);
        }
        giver.join().unwrap();
        assert_eq!(model.permits.free(), 1);
    });
}

/// Hunts: a permit that is lost between an arm that goes and the waiter behind it, who then sleeps for ever, or is woken twice.
#[test]
fn a_permit_passes_by_an_arm_that_leaves_to_who_waits_behind_it() {
    check(|| {
        let model = Model::new(0);
        let [arm, waiter] = [(); 2].map(|()| (Node::with(1), Sleeper::new()));
        let claim = Claim::new();
        assert_eq!(claim.taken(), None);
        let _ = arm.1.word.begin(false);
        let _ = waiter.1.word.begin(false);
        // SAFETY: nodes and claim live until this ends, before which each node is withdrawn or its wake has landed.
        unsafe {
            assert!(model.permits.enlist_for(&arm.0, arm.1.raw(), &claim, 0));
            assert!(model.permits.enlist(&waiter.0, waiter.1.raw()));
        }
        assert_eq!(waiter.1.word.fall_asleep(), Fallen::Asleep);
        let giver = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.put(1))
        };
        let claimed = claim.close().is_some();
        // SAFETY: the node is in this queue or in none.
        if unsafe { model.permits.withdraw(&arm.0) } {
            assert!(!claimed);
            model.wake(model.permits.serve());
        }
        if claimed {
            arm.1.await_landing();
            model.put(1);
        }
        giver.join().unwrap();
        assert_eq!((waiter.1.queued(), model.permits.free()), (1, 0));
        // SAFETY: as above.
        assert!(!unsafe { model.permits.withdraw(&waiter.0) });
    });
}
