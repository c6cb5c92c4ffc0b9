//! The word of a mutex and its queue, with the sleeps of its waiters.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::mutex::core::{Core, Given, HandOff, Policy, Waiter};
use crate::mutex::state::{Arrival, Attempt, Owner};
use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::word::Epoch;
use crate::wait::{Sleeper, Waking, waking};

/// A mutex without its homes.
pub(crate) struct Model {
    pub(crate) core: Core,
    value: UnsafeCell<u32>,
}

/// A task or thread at the mutex, and whether its deadline passes while it sleeps.
pub(crate) struct Sleep {
    pub(crate) node: Node<Waiter>,
    pub(crate) sleeper: Arc<Sleeper>,
    pub(crate) epoch: Cell<Option<Epoch>>,
    pub(crate) hurried: Cell<bool>,
}

/// What the unlocks of a model do about waiters.
#[derive(Clone, Copy)]
pub(crate) enum Unlock {
    /// The longest waiter competes.
    Wake,
    /// The same, and each woken waiter counts as overdue at once.
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

    fn is_overdue(&self, _since: Instant) -> bool {
        matches!(self, Unlock::WakeOverdue)
    }
}

/// The address of number `me`.
pub(crate) fn owner(me: u64) -> Owner {
    NonNull::new(ptr::without_provenance_mut(me as usize * 8)).expect("numbers begin with 1")
}

// SAFETY: the node is only touched under the lock of the queue, the other cells by the one that sleeps.
unsafe impl Sync for Sleep {}
// SAFETY: as above.
unsafe impl Send for Sleep {}

impl Sleep {
    pub(crate) fn new(me: u64, hurried: bool) -> Self {
        Sleep {
            node: Node::with(Waiter::new(owner(me))),
            sleeper: Sleeper::new(),
            epoch: Cell::new(None),
            hurried: Cell::new(hurried),
        }
    }
}

// SAFETY: the value is only reached by the owner, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    /// A mutex that number 1 holds and has yet to unlock.
    pub(crate) fn held() -> Arc<Self> {
        let model = Model { core: Core::new(), value: UnsafeCell::new(0) };
        let first = owner(1);
        assert!(model.core.word().take_free(first));
        assert!(model.core.release_to_queue(&Unlock::Wake).is_none());
        assert!(model.core.word().take_free(first));
        Arc::new(model)
    }

    pub(crate) fn take(&self, me: u64, arrival: Arrival) -> bool {
        self.core.word().take(owner(me), arrival) == Attempt::Taken
    }

    pub(crate) fn owner(&self) -> Option<Owner> {
        self.core.word().look().owner()
    }

    /// Goes into the queue, with the first lines of `sleep_in`. False if the mutex was free and is taken.
    pub(crate) fn enter(&self, sleep: &Sleep, arrival: Arrival) -> bool {
        let epoch = sleep.sleeper.word.begin(true);
        sleep.epoch.set(Some(epoch));
        // SAFETY: the node lives until `acquire` ends, before which it has left the queue or its wake has landed.
        !unsafe { self.core.enter(&sleep.node, sleep.sleeper.raw(), arrival) }
    }

    /// Sleeps in the queue, to the last line of `sleep_in`. The deadline of a hurried sleep passes meanwhile.
    fn sleep(&self, sleep: &Sleep) -> Waking {
        let sleeper = &sleep.sleeper;
        sleeper.leave_stack_and(|| {
            if sleep.hurried.get() {
                sleeper.settle(sleeper.word.expire(sleep.epoch.get().unwrap()));
            }
        });
        let why = waking(sleeper.word.why());
        // SAFETY: the node is in this queue or in none.
        if why == Waking::Notified || unsafe { self.core.leave(&sleep.node) } {
            return why;
        }
        sleeper.await_landing();
        Waking::Notified
    }

    /// As `RawMutex::compete`. True if taken.
    fn acquire(&self, sleep: &Sleep, me: u64) -> bool {
        self.take(me, Arrival::New) || !self.enter(sleep, Arrival::New) || self.acquire_in_queue(sleep)
    }

    /// As [`acquire`](Model::acquire), from within the queue. A woken waiter whose time is over looks once.
    pub(crate) fn acquire_in_queue(&self, sleep: &Sleep) -> bool {
        let me = sleep.node.data().owner();
        let word = self.core.word();
        loop {
            match (self.sleep(sleep), sleep.node.data().given()) {
                (Waking::Notified, Given::Lock) => return true,
                (Waking::Notified, Given::Wake) => (),
                _ => return word.take(me, Arrival::New) == Attempt::Taken,
            }
            if word.take(me, Arrival::Woken) == Attempt::Taken {
                return true;
            }
            if sleep.hurried.get() {
                return self.core.arrive_late(me);
            }
            if !self.enter(sleep, Arrival::Woken) {
                return true;
            }
        }
    }

    pub(crate) fn release(&self, unlock: Unlock) {
        if let Some(wake) = self.core.release(&unlock) {
            wake.wake();
        }
    }

    /// Uses the value. By the owner.
    pub(crate) fn use_value(&self) {
        // SAFETY: the caller has the mutex.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    pub(crate) fn pass(&self, me: u64, hurried: bool, unlock: Unlock) -> u32 {
        let sleep = Sleep::new(me, hurried);
        let taken = self.acquire(&sleep, me);
        self.use_and_release(&sleep, taken, unlock)
    }

    /// As [`pass`](Model::pass), by another thread.
    fn pass_beside(self: &Arc<Self>, me: u64, hurried: bool, unlock: Unlock) -> thread::JoinHandle<u32> {
        let model = Arc::clone(self);
        thread::spawn(move || model.pass(me, hurried, unlock))
    }

    /// As [`pass`](Model::pass), from within the queue.
    fn pass_in_queue(&self, sleep: &Sleep) -> u32 {
        let taken = self.acquire_in_queue(sleep);
        self.use_and_release(sleep, taken, Unlock::Wake)
    }

    fn use_and_release(&self, sleep: &Sleep, taken: bool, unlock: Unlock) -> u32 {
        if taken {
            assert_eq!(self.owner(), Some(sleep.node.data().owner()));
            self.use_value();
            self.release(unlock);
        }
        u32::from(taken)
    }

    /// Once all have ended: the mutex is free without flags, it was used so often, and the next waiter would be woken.
    pub(crate) fn assert_over(&self, uses: u32) {
        assert!(self.core.word().take_free(owner(9)), "{:?}", self.core.word().look());
        // SAFETY: this thread has the mutex.
        assert_eq!(self.value.with(|value| unsafe { *value }), uses);
        let next = Sleep::new(8, false);
        assert!(self.enter(&next, Arrival::New));
        assert!(self.core.release(&Unlock::Wake).is_some());
    }
}

/// Puts two waiters into the queue, of which the time of the first one ends.
fn two_in_queue(model: &Model) -> [Arc<Sleep>; 2] {
    [(2, true), (3, false)].map(|(me, hurried)| {
        let sleep = Arc::new(Sleep::new(me, hurried));
        assert!(model.enter(&sleep, Arrival::New));
        sleep
    })
}

/// Hunts: a waiter that enters the queue as the mutex is freed and is not woken; two owners; a value not seen.
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

/// Hunts: a woken waiter that loses the race to an arrival and is forgotten, or a flag that outlives it.
#[test]
fn a_bypassed_waiter_is_woken_again() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = model.pass_beside(2, false, Unlock::Wake);
        model.release(Unlock::Wake);
        for _ in 0..2 {
            if model.take(1, Arrival::New) {
                model.release(Unlock::Wake);
            }
        }
        assert_eq!(waiter.join().unwrap(), 1);
        model.assert_over(1);
    });
}

/// Hunts: a hand-over to a waiter whose time ends at that moment, which then locks the mutex for ever.
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

/// Hunts: a wake that went to a waiter whose time ends at that moment, while another waits behind it for ever.
#[test]
fn a_wake_is_not_lost_to_a_deadline() {
    check_bounded(3, || pass_on_to_both(Unlock::Wake));
}

/// Hunts: a hand-over to such a waiter, after which its own unlock forgets the next one.
#[test]
fn a_hand_over_at_the_deadline_wakes_the_next() {
    check_bounded(3, || pass_on_to_both(Unlock::HandOver));
}

fn pass_on_to_both(unlock: Unlock) {
    let model = Model::held();
    let [hurried, patient] = two_in_queue(&model);
    let hurrying = {
        let model = Arc::clone(&model);
        thread::spawn(move || model.pass_in_queue(&hurried))
    };
    model.use_value();
    model.release(unlock);
    assert_eq!(model.pass_in_queue(&patient), 1);
    let taken = hurrying.join().unwrap();
    model.assert_over(2 + taken);
}

/// Hunts: a waiter that leaves the queue when its time ends, while the unlock has seen it there.
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

/// Hunts: two waiters on their way at once, of which the first arrival clears the flag for both and one is forgotten.
#[test]
fn the_next_waiter_is_woken_beside_an_overdue_one() {
    check_bounded(2, || {
        let model = Model::held();
        let [hurried, patient] = two_in_queue(&model);
        hurried.hurried.set(false);
        let first = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.pass_in_queue(&hurried))
        };
        for _ in 0..2 {
            model.release(Unlock::WakeOverdue);
            if !model.take(1, Arrival::New) {
                break;
            }
        }
        if model.owner() == Some(owner(1)) {
            model.release(Unlock::WakeOverdue);
        }
        assert_eq!(model.pass_in_queue(&patient), 1);
        assert_eq!(first.join().unwrap(), 1);
        model.assert_over(2);
    });
}

/// Hunts: a third waiter that comes or gives up while the second one gets the mutex handed over.
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
