//! Two threads of std that wait by parking_lot's mutex and condition variable. They are asked to park, and
//! nothing else.

use std::thread;

use parking_lot::{Condvar, Mutex};

use super::question::Question;
use crate::compare::blocking::asked::Asked;
use crate::compare::blocking::asked::pairs::{Event, set_to_and_fro};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

struct ParkingLot;

/// What one thread parks at: an unpark that comes first leaves the gate open.
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

pub(super) fn start(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(ParkingLot)
}

impl Rival<Question> for ParkingLot {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let (Question::Park, Asked::Pair(first, second, finish)) =
            (question, set_to_and_fro::<Gate>(operations))
        else {
            unreachable!("the table of entrants lets it enter for no other");
        };
        let second = thread::spawn(second);
        let elapsed = first();
        second.join().expect("no thread panics");
        finish(elapsed)
    }
}

impl Event for Gate {
    fn new() -> Self {
        Gate { open: Mutex::new(false), opened: Condvar::new() }
    }

    fn set(&self) {
        *self.open.lock() = true;
        self.opened.notify_one();
    }

    fn wait(&self) {
        let mut open = self.open.lock();
        self.opened.wait_while(&mut open, |open| !*open);
        *open = false;
    }
}
