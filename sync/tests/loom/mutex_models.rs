//! The line before a mutex, with the sleeps of those in it.

use std::cell::Cell;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::mutex::line::{Given, Line, Manner, Seat};
use crate::mutex::state::{Attempt, Comer, Unlocked};
use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::word::Epoch;
use crate::wait::{Sleeper, Waking, waking};

/// A mutex without its clock and its homes.
pub(crate) struct Model {
    pub(crate) line: Line,
    value: UnsafeCell<u32>,
}

/// One who waits, and whether its deadline passes while it sleeps.
pub(crate) struct Waiter {
    pub(crate) node: Node<Seat>,
    pub(crate) sleeper: Arc<Sleeper>,
    pub(crate) epoch: Cell<Option<Epoch>>,
    pub(crate) hurried: Cell<bool>,
}

// SAFETY: the node is only touched under the line's lock, the other cells by the one who sleeps.
unsafe impl Sync for Waiter {}
// SAFETY: as above.
unsafe impl Send for Waiter {}

impl Waiter {
    pub(crate) fn new(me: u64, hurried: bool) -> Self {
        Waiter {
            node: Node::with(Seat::new(me)),
            sleeper: Sleeper::new(),
            epoch: Cell::new(None),
            hurried: Cell::new(hurried),
        }
    }
}

// SAFETY: the value is only reached by who has the lock, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    /// One that is held by number 1, who has yet to unlock.
    pub(crate) fn held() -> Arc<Self> {
        let model = Model { line: Line::new(), value: UnsafeCell::new(0) };
        assert!(model.line.take_free(1));
        assert!(model.line.release(|_| Manner::Wake).is_none());
        assert!(model.line.take_free(1));
        Arc::new(model)
    }

    /// The same, with nobody having waited for long, so that the unlock is a plain store.
    pub(crate) fn held_calm() -> Arc<Self> {
        let model = Self::held();
        for unlocked in [Unlocked::Alone, Unlocked::Not] {
            assert_eq!(model.line.release_alone(), unlocked);
            if unlocked == Unlocked::Not {
                assert!(model.line.release(|_| Manner::Wake).is_none());
            }
            assert!(model.line.take_free(1));
        }
        model
    }

    /// Goes into the line, with the first lines of `sleep_in`. False if the lock was free and is taken.
    pub(crate) fn enter(&self, waiter: &Waiter, comer: Comer) -> bool {
        let epoch = waiter.sleeper.word.begin(true);
        waiter.epoch.set(Some(epoch));
        // SAFETY: the node lives until `acquire` ends, before which it has left the line or its wake has landed.
        !unsafe { self.line.enter(&waiter.node, waiter.sleeper.raw(), comer) }
    }

    /// Sleeps in the line, to the last line of `sleep_in`. If the waiter is in a hurry its deadline passes meanwhile.
    fn sleep(&self, waiter: &Waiter) -> Waking {
        let sleeper = &waiter.sleeper;
        sleeper.leave_stack_and(|| {
            if waiter.hurried.get() {
                sleeper.settle(sleeper.word.expire(waiter.epoch.get().unwrap()));
            }
        });
        let why = waking(sleeper.word.why());
        // SAFETY: the node is in this line or in none.
        if why == Waking::Notified || unsafe { self.line.leave(&waiter.node) } {
            return why;
        }
        sleeper.await_landing();
        Waking::Notified
    }

    /// As `RawMutex::compete`. True if taken.
    fn acquire(&self, waiter: &Waiter) -> bool {
        let me = waiter.node.data().number();
        self.line.take(me, Comer::New) == Attempt::Taken
            || !self.enter(waiter, Comer::New)
            || self.acquire_in_line(waiter)
    }

    /// The same, by one that is in the line.
    pub(crate) fn acquire_in_line(&self, waiter: &Waiter) -> bool {
        let seat = waiter.node.data();
        loop {
            match (self.sleep(waiter), seat.given()) {
                (Waking::Notified, Given::Lock) => return true,
                (Waking::Notified, Given::Wake) => (),
                _ => return false,
            }
            if self.line.take(seat.number(), Comer::Woken) == Attempt::Taken
                || !self.enter(waiter, Comer::Woken)
            {
                return true;
            }
        }
    }

    pub(crate) fn release(&self, manner: Manner) {
        let unlocked = match manner {
            Manner::Wake => self.line.release_alone(),
            Manner::HandOver => Unlocked::Not,
        };
        let wake = match unlocked {
            Unlocked::Alone => None,
            Unlocked::Met => self.line.look(|_| Manner::Wake),
            Unlocked::Not => self.line.release(|_| manner),
        };
        if let Some(wake) = wake {
            wake.wake();
        }
    }

    /// What is done with the lock.
    pub(crate) fn use_value(&self) {
        // SAFETY: the caller has the lock.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    pub(crate) fn pass(&self, me: u64, hurried: bool, manner: Manner) -> u32 {
        let waiter = Waiter::new(me, hurried);
        let taken = self.acquire(&waiter);
        self.use_and_release(&waiter, taken, manner)
    }

    /// The same, by another thread.
    fn pass_beside(self: &Arc<Self>, me: u64, hurried: bool, manner: Manner) -> thread::JoinHandle<u32> {
        let model = Arc::clone(self);
        thread::spawn(move || model.pass(me, hurried, manner))
    }

    /// The same, by one that is in the line.
    fn pass_in_line(&self, waiter: &Waiter) -> u32 {
        let taken = self.acquire_in_line(waiter);
        self.use_and_release(waiter, taken, Manner::Wake)
    }

    fn use_and_release(&self, waiter: &Waiter, taken: bool, manner: Manner) -> u32 {
        if taken {
            assert_eq!(self.line.owner(), waiter.node.data().number());
            self.use_value();
            self.release(manner);
        }
        u32::from(taken)
    }

    /// Once all have ended: nobody waits, the lock is free, it was used so often, and the next waiter would be woken.
    pub(crate) fn assert_over(&self, uses: u32) {
        assert_eq!(self.line.owner(), 0);
        assert!(!self.line.has_waiters());
        assert!(self.line.take_free(9));
        // SAFETY: this thread has the lock.
        assert_eq!(self.value.with(|value| unsafe { *value }), uses);
        let next = Waiter::new(8, false);
        assert!(self.enter(&next, Comer::New));
        assert_eq!(self.line.release_alone(), Unlocked::Not, "somebody counts as on its way who is not");
        assert!(self.line.release(|_| Manner::Wake).is_some());
    }
}

/// Explores what is done with a mutex that number 1 holds, of each phase in which nobody waits.
fn check_held(preemptions: usize, model: impl Fn(Arc<Model>) + Send + Sync + Copy + 'static) {
    check_bounded(preemptions, move || model(Model::held()));
    check_bounded(preemptions, move || model(Model::held_calm()));
}

/// Hunts: a waiter that enters the line as the lock is freed and is woken by nobody; two inside at once; a value not seen.
#[test]
fn an_unlock_is_seen_by_who_enters_the_line() {
    check_held(3, |model| {
        let waiter = model.pass_beside(2, false, Manner::Wake);
        model.use_value();
        model.release(Manner::Wake);
        let taken = waiter.join().unwrap() + model.pass(1, false, Manner::Wake);
        assert_eq!(taken, 2);
        model.assert_over(3);
    });
}

/// Hunts: a woken waiter that loses the race to one who comes by and is forgotten, or a flag that outlives it.
#[test]
fn a_bypassed_waiter_is_woken_again() {
    check_held(3, |model| {
        let waiter = model.pass_beside(2, false, Manner::Wake);
        model.release(Manner::Wake);
        for _ in 0..2 {
            if model.line.take(1, Comer::New) == Attempt::Taken {
                model.release(Manner::Wake);
            }
        }
        assert_eq!(waiter.join().unwrap(), 1);
        model.assert_over(1);
    });
}

/// Hunts: a hand-over to a waiter whose time ends at that moment, which then locks the mutex for ever.
#[test]
fn a_hand_over_is_not_lost_to_a_deadline() {
    check_held(3, |model| {
        let waiter = model.pass_beside(2, true, Manner::Wake);
        model.use_value();
        model.release(Manner::HandOver);
        let taken = waiter.join().unwrap();
        model.assert_over(1 + taken);
    });
}

/// Hunts: a wake that went to a waiter whose time ends at that moment, while another waits behind it for ever.
#[test]
fn a_wake_is_not_lost_to_a_deadline() {
    check_held(3, |model| two_in_line(&model, Manner::Wake));
}

/// Hunts: the same with a hand-over, after which the next unlock is the waiter's.
#[test]
fn who_got_it_at_the_last_moment_wakes_the_next() {
    check_held(3, |model| two_in_line(&model, Manner::HandOver));
}

fn two_in_line(model: &Arc<Model>, manner: Manner) {
    let [hurried, patient] = [(2, true), (3, false)].map(|(me, hurried)| {
        let waiter = Arc::new(Waiter::new(me, hurried));
        assert!(model.enter(&waiter, Comer::New));
        waiter
    });
    let hurrying = {
        let model = Arc::clone(model);
        thread::spawn(move || model.pass_in_line(&hurried))
    };
    model.use_value();
    model.release(manner);
    assert_eq!(model.pass_in_line(&patient), 1);
    let taken = hurrying.join().unwrap();
    model.assert_over(2 + taken);
}

/// Hunts: a waiter that leaves the line when its time ends, while the unlock has seen it there.
#[test]
fn an_unlock_finds_the_line_left() {
    check_held(3, |model| {
        let waiter = model.pass_beside(2, true, Manner::HandOver);
        model.release(Manner::Wake);
        let third = model.pass(3, false, Manner::HandOver);
        assert_eq!(third, 1);
        let taken = waiter.join().unwrap();
        model.assert_over(1 + taken);
    });
}

/// Hunts: a second waiter that finds the lock loud already and its owner still there, whose unlock began calm.
#[test]
fn an_unlock_that_began_calm_is_met_by_two() {
    check_bounded(2, || {
        let model = Model::held_calm();
        let waiters = [2, 3].map(|me| model.pass_beside(me, false, Manner::Wake));
        model.use_value();
        model.release(Manner::Wake);
        let taken: u32 = waiters.map(|waiter| waiter.join().unwrap()).iter().sum();
        assert_eq!(taken, 2);
        model.assert_over(3);
    });
}

/// Hunts: one who comes while an owner makes the lock calm, and neither finds the owner gone nor is found.
#[test]
fn a_lock_grows_calm_as_one_comes() {
    check_bounded(2, || {
        let model = Model::held();
        let waiter = model.pass_beside(2, false, Manner::Wake);
        model.release(Manner::Wake);
        let taken = (0..2).map(|_| model.pass(1, false, Manner::Wake)).sum::<u32>() + waiter.join().unwrap();
        assert_eq!(taken, 3);
        model.assert_over(3);
    });
}

/// Hunts: an unlock that began in one calm time and ends in the next one, and somebody who comes then.
#[test]
fn a_lock_is_calm_again_while_an_unlock_is_under_way() {
    check_bounded(1, || {
        let model = Model::held_calm();
        let many = {
            let model = Arc::clone(&model);
            thread::spawn(move || (0..3).map(|_| model.pass(2, false, Manner::Wake)).sum::<u32>())
        };
        let one = model.pass_beside(3, false, Manner::Wake);
        model.release(Manner::Wake);
        assert_eq!(many.join().unwrap() + one.join().unwrap(), 4);
        model.assert_over(4);
    });
}

/// Hunts: an unlock that meets a waiter and hands the lock over to it, while another one comes or its time ends.
#[test]
fn who_is_met_may_get_the_lock() {
    check_held(2, |model| {
        let waiters =
            [(2, true), (3, false)].map(|(me, hurried)| model.pass_beside(me, hurried, Manner::Wake));
        model.use_value();
        let wake = match model.line.release_alone() {
            Unlocked::Alone => None,
            Unlocked::Met => model.line.look(|_| Manner::HandOver),
            Unlocked::Not => model.line.release(|_| Manner::HandOver),
        };
        if let Some(wake) = wake {
            wake.wake();
        }
        let taken: u32 = waiters.map(|waiter| waiter.join().unwrap()).iter().sum();
        model.assert_over(1 + taken);
    });
}
