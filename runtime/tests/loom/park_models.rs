//! `task::park` and `unpark`, and the park of a worker.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::park_state::{Found, ParkState};
use crate::parking::{Entered, Left, Parking, Unparked};
use crate::primitive::{AtomicBool, Ordering, check, check_bounded};
use crate::wait::{Sleeper, Tickets, Waking, waking};

/// A task that parks.
struct Parker {
    sleeper: Arc<Sleeper>,
    parking: Parking,
    /// Written by the unparker before its unpark, read by the unparked task.
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over by the token, which is what the models check.
unsafe impl Sync for Parker {}
// SAFETY: as above.
unsafe impl Send for Parker {}

impl Parker {
    fn new() -> Arc<Self> {
        let parker = Parker { sleeper: Sleeper::new(), parking: Parking::new(), data: UnsafeCell::new(0) };
        let _ = parker.sleeper.word.begin(false);
        let _ = parker.parking.leave();
        Arc::new(parker)
    }

    /// As `Task::unpark`.
    fn unpark(&self) {
        if self.parking.unpark() == Unparked::Wake {
            self.sleeper.settle(self.sleeper.word.notify());
        }
    }

    /// As `park_until`, with the sleep of `wait/sleep.rs`. True if unparked.
    fn park(&self, expires: bool) -> bool {
        self.parking.take_token() || self.sleep(expires) == Waking::Notified
    }

    fn sleep(&self, expires: bool) -> Waking {
        let word = &self.sleeper.word;
        let epoch = word.begin(false);
        if self.parking.enter() == Entered::TokenFirst {
            assert_eq!(self.parking.leave(), Left::Token, "a token stays until it is taken");
            return Waking::Notified;
        }
        self.sleeper.leave_stack_and(|| {
            if expires {
                self.sleeper.settle(word.expire(epoch));
            }
        });
        let why = waking(word.why());
        if self.parking.leave() == Left::Unserved || why == Waking::Notified {
            return why;
        }
        self.sleeper.await_landing();
        Waking::Notified
    }
}

/// Finds: an unpark that comes before, while or after the task parks is lost, or does not publish what came before it.
#[test]
fn an_unpark_may_come_first() {
    check(|| {
        let parker = Parker::new();
        let unparker = {
            let parker = Arc::clone(&parker);
            thread::spawn(move || {
                // SAFETY: the parker reads only once it is unparked.
                parker.data.with_mut(|data| unsafe { *data = 1 });
                parker.unpark();
            })
        };
        assert!(parker.park(false));
        // SAFETY: the unparker wrote before its unpark, and writes no more.
        assert_eq!(parker.data.with(|data| unsafe { *data }), 1);
        unparker.join().unwrap();
        assert!(!parker.parking.take_token(), "the token was taken");
    });
}

/// Finds: an unpark at the moment of the deadline is lost, or its wake lands in the next sleep.
#[test]
fn an_unpark_meets_the_deadline() {
    check(|| {
        let parker = Parker::new();
        let unparker = {
            let parker = Arc::clone(&parker);
            thread::spawn(move || parker.unpark())
        };
        let unparked = parker.park(true);
        let _ = parker.sleeper.word.begin(true);
        unparker.join().unwrap();
        assert!(!parker.sleeper.word.why().notified, "nothing lands in the next sleep");
        assert!(unparked != parker.parking.take_token(), "the token is used once");
    });
}

/// Finds: of two unparks the second one, which finds the token of the first, wakes a task that has gone on.
#[test]
fn two_unparks_are_one_or_two() {
    check(|| {
        let parker = Parker::new();
        let unparker = {
            let parker = Arc::clone(&parker);
            thread::spawn(move || {
                parker.unpark();
                parker.unpark();
            })
        };
        assert!(parker.park(false));
        let again = parker.park(true);
        unparker.join().unwrap();
        let _ = parker.sleeper.word.begin(true);
        let left = parker.parking.take_token();
        assert!(!(again && left), "two unparks end no more than two parks");
    });
}

/// A worker, reduced to its inbox and its park.
struct Worker {
    inbox: AtomicBool,
    state: ParkState,
    driver: Tickets,
}

impl Worker {
    fn new() -> Arc<Self> {
        let worker =
            Worker { inbox: AtomicBool::new(false), state: ParkState::new(), driver: Tickets::new() };
        worker.inbox.load(Ordering::Relaxed);
        let _ = worker.state.is_parked();
        Arc::new(worker)
    }

    /// As `Block::deliver`.
    fn deliver(&self, push: Ordering) {
        self.inbox.store(true, push);
        if self.state.is_parked() {
            self.unpark();
        }
    }

    /// As `Block::unpark`.
    fn unpark(&self) {
        if self.state.unpark() == Found::Parked {
            self.driver.put();
        }
    }

    /// As `Worker::rest`, until something came.
    fn rest(&self, look: Ordering) {
        while !self.inbox.load(look) {
            if self.state.begin_park() && !self.inbox.load(look) {
                self.driver.take();
            }
            self.state.end_park();
        }
    }
}

/// Finds: a task is pushed just as its worker parks; the pusher finds the worker awake, the worker finds its inbox empty,
/// and it parks beside its task (the store-load pair).
#[test]
fn a_delivery_meets_the_park() {
    check(|| a_delivery_with(Ordering::SeqCst, Ordering::SeqCst));
}

/// Shows that the model finds it: a push that is only released may still be under way when the pusher looks.
#[test]
#[should_panic(expected = "deadlock")]
fn a_delivery_that_is_only_released_is_lost() {
    check(|| a_delivery_with(Ordering::Release, Ordering::SeqCst));
}

/// Shows it for the other side: a second look that only acquires may see the past.
#[test]
#[should_panic(expected = "deadlock")]
fn a_second_look_that_only_acquires_misses_the_delivery() {
    check(|| a_delivery_with(Ordering::SeqCst, Ordering::Acquire));
}

fn a_delivery_with(push: Ordering, look: Ordering) {
    let worker = Worker::new();
    let deliverer = {
        let worker = Arc::clone(&worker);
        thread::spawn(move || worker.deliver(push))
    };
    worker.rest(look);
    deliverer.join().unwrap();
}

/// Finds: a deliverer that relies on the unpark of a second deliverer, which the worker has used up already.
#[test]
fn two_deliveries_are_both_seen() {
    check_bounded(3, || {
        let worker = Worker::new();
        let other = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || worker.unpark())
        };
        let deliverer = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || worker.deliver(Ordering::SeqCst))
        };
        worker.rest(Ordering::SeqCst);
        deliverer.join().unwrap();
        other.join().unwrap();
    });
}
