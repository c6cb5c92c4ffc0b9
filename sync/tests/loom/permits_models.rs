//! The permits of the semaphore, and the auto-reset event.
//!
//! At most two threads meet: of three, two may wait for the lock of the third, and the explorer follows them for ever.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::cell::UnsafeCell;
use loom::thread;

use crate::auto_reset_event::AutoResetEvent;
use crate::choice_models::event;
use crate::primitive::{AtomicBool, Ordering, check, check_bounded};
use crate::semaphore::Semaphore;
use crate::wait::{Arm, Chosen, Until, over, wait_any};

struct Model {
    permits: Semaphore,
    /// Written by the holder of a permit, or before it is given.
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over with a permit, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(free: usize) -> Arc<Self> {
        let model = Model { permits: Semaphore::new(free), data: UnsafeCell::new(0) };
        assert_eq!(model.permits.available_permits(), free);
        Arc::new(model)
    }

    fn put(&self, count: usize) {
        self.permits.add_permits(count);
    }

    fn take(&self, count: usize) {
        self.permits.acquire_many(count).unwrap().forget();
    }

    /// Takes permits, if they come before a time that is over.
    fn take_in_time(&self, count: usize) -> bool {
        self.permits.acquire_many_deadline(count, over()).map(|taken| taken.forget()).is_ok()
    }

    fn free(&self) -> usize {
        self.permits.available_permits()
    }

    fn write(&self) {
        // SAFETY: the caller has the only permit, or none is given yet.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) -> u32 {
        // SAFETY: as above.
        self.data.with(|data| unsafe { *data })
    }

    fn spawn<R: 'static>(self: &Arc<Self>, f: impl FnOnce(&Model) -> R + 'static) -> thread::JoinHandle<R> {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model))
    }
}

fn spawn_set(event: &Arc<AutoResetEvent>) -> thread::JoinHandle<()> {
    let event = Arc::clone(event);
    thread::spawn(move || event.set())
}

fn poll_once(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Waits as the only arm of a select, to a deadline that is over. True if it was served.
fn is_served_in_time(arm: &dyn Arm) -> bool {
    match wait_any([(arm, 0)].into_iter(), Until::unwind(Some(over()))) {
        Chosen::Served(number) => number == 0,
        Chosen::TimedOut | Chosen::Ready => false,
        Chosen::Cancelled => unreachable!("a thread is not cancelled"),
    }
}

/// Finds: a permit that is given while a waiter goes to the queue, so that no wake comes; what was done before the permit was
/// given and is not seen by its holder.
#[test]
fn a_permit_is_seen_by_a_task_that_goes_to_sleep() {
    check_bounded(3, || {
        let model = Model::new(0);
        let giver = model.spawn(|model| {
            model.write();
            model.put(1);
        });
        model.take(1);
        assert_eq!(model.read(), 1);
        giver.join().unwrap();
        assert_eq!(model.free(), 0);
    });
}

/// Finds: two holders of one permit; a holder that does not see what the previous holder did; a waiter that sleeps on.
#[test]
fn one_permit_has_one_holder() {
    check_bounded(3, || {
        let model = Model::new(1);
        let hold = |model: &Model| {
            let permit = model.permits.acquire().unwrap();
            model.write();
            drop(permit);
        };
        let other = model.spawn(hold);
        hold(&model);
        other.join().unwrap();
        model.take(1);
        assert_eq!((model.read(), model.free()), (2, 0));
    });
}

/// Finds: a request for two that is left asleep by two gifts of one.
#[test]
fn a_big_request_is_served_by_several_gifts() {
    check_bounded(3, || {
        let model = Model::new(0);
        let giver = model.spawn(|model| {
            model.put(1);
            model.put(1);
        });
        model.take(2);
        giver.join().unwrap();
        assert_eq!(model.free(), 0);
    });
}

/// Finds: a permit that is lost to a request that is served at its deadline.
#[test]
fn a_request_that_leaves_loses_nothing() {
    check_bounded(3, || {
        let model = Model::new(1);
        let giver = model.spawn(|model| model.put(1));
        if model.take_in_time(2) {
            model.put(2);
        }
        giver.join().unwrap();
        assert!(model.permits.try_acquire_many(2).is_ok(), "no request is in the queue");
        assert_eq!(model.free(), 2);
    });
}

/// Finds: a request that stays asleep behind a bigger one that has left.
#[test]
fn a_request_that_leaves_blocks_no_waiter() {
    check_bounded(3, || {
        let model = Model::new(1);
        let small = model.spawn(|model| model.take(1));
        assert!(!model.take_in_time(2), "there are never two");
        small.join().unwrap();
        assert_eq!(model.free(), 0);
        model.put(1);
        assert!(model.permits.try_acquire().is_ok(), "no request is in the queue");
    });
}

/// Finds: a set that is swallowed though a waiter is there, and a set that lets two through.
#[test]
fn each_set_of_an_event_lets_one_through() {
    check_bounded(3, || {
        let event = event();
        let waiter = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.wait())
        };
        event.set();
        event.set();
        waiter.join().unwrap();
        // Two sets without a wait between them are one.
        let _ = event.try_wait();
        assert!(!event.try_wait());
    });
}

/// Finds: a set that finds the event set and leaves it at that, so that a wait takes the earlier set, misses what was done
/// before the later one, and waits for ever: the wake-up that Preshing's first auto-reset event lost.
#[test]
fn a_set_that_finds_the_event_set_is_a_set() {
    check(|| {
        let event = event();
        let jobs = Arc::new([0, 1].map(|_| AtomicBool::new(false)));
        assert!(jobs.iter().all(|job| !job.load(Ordering::Relaxed)));
        jobs[0].store(true, Ordering::Relaxed);
        event.set();
        let giver = {
            let (event, jobs) = (Arc::clone(&event), Arc::clone(&jobs));
            thread::spawn(move || {
                jobs[1].store(true, Ordering::Relaxed);
                event.set();
            })
        };
        while !jobs.iter().all(|job| job.load(Ordering::Relaxed)) {
            event.wait();
        }
        giver.join().unwrap();
    });
}

/// Finds: permits that are forgotten and given to a waiter as well.
#[test]
fn a_reset_takes_nothing_from_a_waiter() {
    check_bounded(3, || {
        let model = Model::new(1);
        let waiter = model.spawn(|model| model.take(1));
        let forgotten = model.permits.forget_permits(1);
        model.put(forgotten);
        waiter.join().unwrap();
        assert_eq!(model.free(), 0);
    });
}

/// Finds: a permit that is lost with the arm of a leaving select, or given to a select that has left.
#[test]
fn a_permit_passes_by_an_arm_that_leaves() {
    check_bounded(3, || {
        let model = Model::new(0);
        let giver = model.spawn(|model| model.put(1));
        let arm = model.permits.queue_arm();
        let is_served = is_served_in_time(&arm);
        giver.join().unwrap();
        assert_eq!(model.free(), usize::from(!is_served));
    });
}

/// Finds: a waiter behind an arm that leaves, which then sleeps for ever.
#[test]
fn a_permit_passes_from_an_arm_that_leaves_to_the_next_waiter() {
    check_bounded(3, || {
        let model = Model::new(0);
        let giver = model.spawn(|model| {
            let arm = model.permits.queue_arm();
            let is_served = is_served_in_time(&arm);
            model.put(if is_served { 2 } else { 1 });
        });
        model.put(1);
        model.take(2);
        giver.join().unwrap();
        assert_eq!(model.free(), 0);
    });
}

/// Finds: a set that was given to a dropped future, and is lost with it; a set that is given to a future after its drop.
#[test]
fn a_set_for_a_future_that_goes_away_is_the_next_ones() {
    check_bounded(3, || {
        let event = event();
        let sets = spawn_set(&event);
        let passed = {
            let mut wait = pin!(event.wait_async());
            poll_once(wait.as_mut())
        };
        sets.join().unwrap();
        assert!(passed != event.try_wait());
    });
}

/// Finds: a waiter behind a dropped future that is passed over, and sleeps on.
#[test]
fn the_waiter_behind_a_dropped_future_is_woken() {
    check_bounded(3, || {
        let event = event();
        let mut wait = Box::pin(event.wait_async());
        assert!(!poll_once(wait.as_mut()));
        let waiter = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.wait())
        };
        event.set();
        drop(wait);
        waiter.join().unwrap();
        assert!(!event.is_set());
    });
}

/// Finds: a set that was given to a dropped future, and comes back after a reset has taken it.
#[test]
fn a_reset_takes_the_set_of_a_future_that_goes_away() {
    check_bounded(3, || {
        let event = event();
        let mut wait = Box::pin(event.wait_async());
        assert!(!poll_once(wait.as_mut()));
        event.set();
        let resets = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.reset())
        };
        drop(wait);
        resets.join().unwrap();
        assert!(!event.is_set());
    });
}
