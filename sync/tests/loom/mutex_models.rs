//! The word of a mutex and its waiters, over the wait queue.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::mutex::core::{Core, Given, HandOff, Policy, Waiter};
use crate::mutex::state::{Arrival, Attempt, Owner};
use crate::primitive::check_bounded;
use crate::wait::{self, Tickets};

/// A mutex whose waiters name no worker.
pub(crate) struct Model {
    pub(crate) core: Core,
    value: UnsafeCell<u32>,
    /// Counts the waiters that have entered the queue, for models that begin then.
    pub(crate) queued: Tickets,
}

/// What the unlocks of a model do about waiters.
#[derive(Clone, Copy)]
pub(crate) enum Unlock {
    /// The longest waiter competes.
    Wake,
    /// The longest waiter competes, and each woken waiter counts as overdue at once.
    WakeOverdue,
    HandOver,
}

impl Policy for Unlock {
    fn hand_off(&self, _first: &Waiter) -> HandOff {
        match self {
            Unlock::Wake | Unlock::WakeOverdue => HandOff::Wake,
            Unlock::HandOver => HandOff::Direct,
        }
    }

    fn wakes_another(&self, _since: Option<Instant>) -> bool {
        matches!(self, Unlock::WakeOverdue)
    }
}

/// The address of number `me`.
pub(crate) fn owner(me: u64) -> Owner {
    NonNull::new(ptr::without_provenance_mut(me as usize * 8)).expect("numbers begin with 1")
}

// SAFETY: the value is only reached by the owner, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    /// A mutex that number 1 holds and has yet to unlock.
    pub(crate) fn held() -> Arc<Self> {
        let model = Model { core: Core::new(), value: UnsafeCell::new(0), queued: Tickets::new() };
        let first = owner(1);
        assert!(model.core.word().take_free(first));
        // Each of loom's objects is made by its first use: the queue, and the count of unlocks past a woken waiter.
        let _ = model.core.word().add_waiters();
        model.core.release(&Unlock::Wake);
        assert!(model.take(1, Arrival::Woken));
        Arc::new(model)
    }

    pub(crate) fn take(&self, me: u64, arrival: Arrival) -> bool {
        self.core.word().take(owner(me), arrival) == Attempt::Taken
    }

    pub(crate) fn owner(&self) -> Option<Owner> {
        self.core.word().look().owner()
    }

    /// As `RawMutex::compete`, after a first look. True if taken. A woken waiter whose time is over looks once.
    pub(crate) fn compete(
        &self,
        mut waiter: Waiter,
        mut arrival: Arrival,
        is_hurried: bool,
        published: impl Fn(),
    ) -> bool {
        let (me, word) = (waiter.owner(), self.core.word());
        loop {
            let given;
            (given, waiter) = self.core.wait(waiter, arrival, is_hurried.then(wait::over), &published);
            match given {
                Some(Given::Lock) => return true,
                Some(Given::Wake) => arrival = Arrival::Woken,
                None => return word.take(me, Arrival::New) == Attempt::Taken,
            }
            if word.take(me, arrival) == Attempt::Taken {
                return true;
            }
            if is_hurried {
                return self.core.arrive_late(me);
            }
        }
    }

    pub(crate) fn release(&self, unlock: Unlock) {
        self.core.release(&unlock);
    }

    /// Uses the value. By the owner.
    pub(crate) fn use_value(&self) {
        // SAFETY: the caller has the mutex.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    pub(crate) fn pass(&self, me: u64, is_hurried: bool, unlock: Unlock) -> u32 {
        let is_taken = self.take(me, Arrival::New)
            || self.compete(Waiter::new(owner(me), None), Arrival::New, is_hurried, || ());
        self.use_and_release(me, is_taken, unlock)
    }

    /// As [`pass`](Model::pass), by another thread.
    fn pass_beside(self: &Arc<Self>, me: u64, is_hurried: bool, unlock: Unlock) -> thread::JoinHandle<u32> {
        let model = Arc::clone(self);
        thread::spawn(move || model.pass(me, is_hurried, unlock))
    }

    /// As [`pass_beside`](Model::pass_beside), of a thread that is in the queue when this returns.
    fn pass_in_queue(self: &Arc<Self>, me: u64, is_hurried: bool) -> thread::JoinHandle<u32> {
        let model = Arc::clone(self);
        let passing = thread::spawn(move || {
            let waiter = Waiter::new(owner(me), None);
            let is_taken = model.compete(waiter, Arrival::New, is_hurried, || model.queued.put());
            model.use_and_release(me, is_taken, Unlock::Wake)
        });
        self.queued.take();
        passing
    }

    fn use_and_release(&self, me: u64, is_taken: bool, unlock: Unlock) -> u32 {
        if is_taken {
            assert_eq!(self.owner(), Some(owner(me)));
            self.use_value();
            self.release(unlock);
        }
        u32::from(is_taken)
    }

    /// Once all have ended: the mutex is free without flags, it was used so often, and no waiter is in the queue.
    pub(crate) fn assert_over(&self, uses: u32) {
        assert!(self.core.word().take_free(owner(9)), "{:?}", self.core.word().look());
        // SAFETY: this thread has the mutex.
        assert_eq!(self.value.with(|value| unsafe { *value }), uses);
        self.core.release_to_queue(&Unlock::Wake);
        assert!(self.core.word().take_free(owner(9)), "{:?}", self.core.word().look());
    }
}

/// Finds: a waiter that enters the queue as the mutex is freed and is not woken; two owners; a value not seen.
#[test]
fn an_unlock_is_seen_by_an_arrival() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = model.pass_beside(2, false, Unlock::Wake);
        model.use_value();
        model.release(Unlock::Wake);
        let taken = waiter.join().unwrap() + model.pass(1, false, Unlock::Wake);
        assert_eq!(taken, 2);
        model.assert_over(3);
    });
}

/// Finds: a woken waiter that loses the race to an arrival and is forgotten, or a flag that outlives it. The third unlock
/// after the wake passes the queue over.
#[test]
fn a_bypassed_waiter_is_woken_again() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = model.pass_beside(2, false, Unlock::Wake);
        model.release(Unlock::Wake);
        for _ in 0..3 {
            if model.take(1, Arrival::New) {
                model.release(Unlock::Wake);
            }
        }
        assert_eq!(waiter.join().unwrap(), 1);
        model.assert_over(1);
    });
}

/// Finds: a hand-over to a waiter at its deadline, after which the mutex stays locked for ever.
#[test]
fn a_hand_over_is_not_lost_to_a_deadline() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = model.pass_beside(2, true, Unlock::Wake);
        model.use_value();
        model.release(Unlock::HandOver);
        let taken = waiter.join().unwrap();
        model.assert_over(1 + taken);
    });
}

/// Finds: a wake that went to a waiter at its deadline, while another waits behind it for ever.
#[test]
fn a_wake_is_not_lost_to_a_deadline() {
    check_bounded(3, || pass_on_to_both(Unlock::Wake));
}

/// Finds: a hand-over to a waiter at its deadline, after which its own unlock forgets the next waiter.
#[test]
fn a_hand_over_at_the_deadline_wakes_the_next() {
    check_bounded(3, || pass_on_to_both(Unlock::HandOver));
}

fn pass_on_to_both(unlock: Unlock) {
    let model = Model::held();
    let hurried = model.pass_in_queue(2, true);
    let patient = model.pass_in_queue(3, false);
    model.use_value();
    model.release(unlock);
    assert_eq!(patient.join().unwrap(), 1);
    let taken = hurried.join().unwrap();
    model.assert_over(2 + taken);
}

/// Finds: a waiter that leaves the queue when its time ends, while the unlock has seen it there.
#[test]
fn an_unlock_finds_the_queue_left() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = model.pass_beside(2, true, Unlock::HandOver);
        model.release(Unlock::Wake);
        let third = model.pass(3, false, Unlock::HandOver);
        assert_eq!(third, 1);
        let taken = waiter.join().unwrap();
        model.assert_over(1 + taken);
    });
}

/// Finds: two woken waiters at once, of which the first clears the flag for both and the second is forgotten.
#[test]
fn the_next_waiter_is_woken_beside_an_overdue_one() {
    check_bounded(2, || {
        let model = Model::held();
        let [first, second] = [2, 3].map(|me| model.pass_in_queue(me, false));
        for _ in 0..2 {
            model.release(Unlock::WakeOverdue);
            if !model.take(1, Arrival::New) {
                break;
            }
        }
        if model.owner() == Some(owner(1)) {
            model.release(Unlock::WakeOverdue);
        }
        assert_eq!(second.join().unwrap(), 1);
        assert_eq!(first.join().unwrap(), 1);
        model.assert_over(2);
    });
}

/// Finds: a third waiter that comes or gives up while the mutex is handed over to the second one.
#[test]
fn a_hand_over_meets_arrivals() {
    check_bounded(2, || {
        let model = Model::held();
        let waiters =
            [(2, true), (3, false)].map(|(me, hurried)| model.pass_beside(me, hurried, Unlock::HandOver));
        model.use_value();
        model.release(Unlock::HandOver);
        let taken: u32 = waiters.map(|waiter| waiter.join().unwrap()).iter().sum();
        model.assert_over(1 + taken);
    });
}
