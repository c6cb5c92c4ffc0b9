//! Two threads of std that wait by parking_lot's mutex and condition variable. They are asked to park, and nothing else.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

use super::question::Question;

struct ParkingLot;

/// What one thread parks at: an unpark that comes first leaves the gate open.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

pub(super) fn start(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(ParkingLot)
}

impl Rival<Question> for ParkingLot {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        assert_eq!(question, Question::Park, "the table of entrants lets it enter for no other");
        hand_to_and_fro(operations).into()
    }
}

impl Gate {
    fn park(&self) {
        let mut open = self.open.lock();
        while !*open {
            self.opened.wait(&mut open);
        }
        *open = false;
    }

    fn unpark(&self) {
        *self.open.lock() = true;
        self.opened.notify_one();
    }
}

fn hand_to_and_fro(operations: u64) -> Duration {
    let (here, there) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let (back, forth) = (Arc::clone(&here), Arc::clone(&there));
    let other = thread::spawn(move || {
        for _ in 0..operations {
            forth.park();
            back.unpark();
        }
    });
    let begin = Instant::now();
    for _ in 0..operations {
        there.unpark();
        here.park();
    }
    let elapsed = begin.elapsed();
    other.join().expect("no thread panics");
    elapsed
}
