//! The line before a mutex, with the sleeps of those in it.

#[path = "../../src/mutex/line.rs"]
mod line;
#[path = "../../src/mutex/owner_word.rs"]
mod owner_word;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::{RawWake, Sleeper, Waking, waking};
use line::{Given, Line, Manner, Seat};
use owner_word::{Attempt, Comer};

/// A mutex without its clock and its homes.
struct Model {
    line: Line,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is only reached by who has the lock, which is what the models check.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    /// One that is held by number 1, who has yet to unlock.
    fn held() -> Arc<Self> {
        let model = Model { line: Line::new(), value: UnsafeCell::new(0) };
        assert!(model.line.take_free(1));
        assert!(model.line.release(|_| Manner::Wake).is_none());
        assert!(model.line.take_free(1));
        Arc::new(model)
    }

    /// One sleep in the line, from the first to the last line of `sleep_in`. If `expires`, its deadline passes meanwhile.
    fn sleep(&self, node: &Node<Seat>, sleeper: &Arc<Sleeper>, comer: Comer, expires: bool) -> Waking {
        let epoch = sleeper.word.begin(true);
        // SAFETY: the node lives until `acquire` ends, before which it has left the line or its wake has landed.
        if unsafe { self.line.enter(node, RawWake(Arc::clone(sleeper)), comer) } {
            return Waking::Notified;
        }
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        let why = waking(sleeper.word.why());
        // SAFETY: the node is in this line or in none.
        if why == Waking::Notified || unsafe { self.line.leave(node) } {
            return why;
        }
        sleeper.await_landing();
        Waking::Notified
    }

    /// As `RawMutex::acquire`. True if taken.
    fn acquire(&self, me: u64, sleeper: &Arc<Sleeper>, expires: bool) -> bool {
        let node = Node::with(Seat::new(me));
        let mut comer = Comer::New;
        loop {
            if self.line.take(me, comer) == Attempt::Taken {
                return true;
            }
            match (self.sleep(&node, sleeper, comer, expires), node.data().given()) {
                (Waking::Notified, Given::Lock) => return true,
                (Waking::Notified, Given::Wake) => comer = Comer::Woken,
                _ => return false,
            }
        }
    }

    fn release(&self, manner: Manner) {
        let alone = manner == Manner::Wake && self.line.release_alone();
        if !alone && let Some(wake) = self.line.release(|_| manner) {
            wake.wake();
        }
    }

    /// What is done with the lock.
    fn use_value(&self) {
        // SAFETY: the caller has the lock.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn pass(&self, me: u64, expires: bool, manner: Manner) -> u32 {
        let sleeper = Sleeper::new();
        let taken = self.acquire(me, &sleeper, expires);
        if taken {
            assert_eq!(self.line.owner(), me);
            self.use_value();
            self.release(manner);
        }
        u32::from(taken)
    }

    /// Once all have ended: nobody waits, the lock is free, and it was used so often.
    fn assert_over(&self, uses: u32) {
        assert_eq!(self.line.owner(), 0);
        assert!(!self.line.has_waiters());
        assert!(self.line.take_free(9), "no flag is left");
        // SAFETY: this thread has the lock.
        assert_eq!(self.value.with(|value| unsafe { *value }), uses);
    }
}

/// Hunts: a waiter that enters the line as the lock is freed and is woken by nobody; two inside at once; a value not seen.
#[test]
fn an_unlock_is_seen_by_who_enters_the_line() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.pass(2, false, Manner::Wake))
        };
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
    check_bounded(3, || {
        let model = Model::held();
        let waiter = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.pass(2, false, Manner::Wake))
        };
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
    check_bounded(3, || {
        let model = Model::held();
        let waiter = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.pass(2, true, Manner::Wake))
        };
        model.use_value();
        model.release(Manner::HandOver);
        let taken = waiter.join().unwrap();
        model.assert_over(1 + taken);
    });
}

/// Hunts: a wake that went to a waiter whose time ends at that moment, while another waits behind it for ever.
#[test]
fn a_wake_is_not_lost_to_a_deadline() {
    for manner in [Manner::Wake, Manner::HandOver] {
        MANNER.set(manner);
        check_bounded(2, || {
            let model = Model::held();
            let [hurried, patient] = [(2, true), (3, false)].map(|(me, expires)| {
                let model = Arc::clone(&model);
                thread::spawn(move || model.pass(me, expires, Manner::Wake))
            });
            model.use_value();
            model.release(MANNER.get());
            let hurried = hurried.join().unwrap();
            assert_eq!(patient.join().unwrap(), 1);
            model.assert_over(2 + hurried);
        });
    }
}

std::thread_local! {
    // loom runs all threads of a model on one thread of the system.
    static MANNER: std::cell::Cell<Manner> = const { std::cell::Cell::new(Manner::Wake) };
}

/// Hunts: a waiter that leaves the line when its time ends, while the unlock has seen it there.
#[test]
fn an_unlock_finds_the_line_left() {
    check_bounded(3, || {
        let model = Model::held();
        let waiter = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.pass(2, true, Manner::HandOver))
        };
        model.release(Manner::Wake);
        let third = model.pass(3, false, Manner::HandOver);
        assert_eq!(third, 1);
        let taken = waiter.join().unwrap();
        model.assert_over(1 + taken);
    });
}
