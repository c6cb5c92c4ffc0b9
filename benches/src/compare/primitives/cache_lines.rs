//! The needs of the machine itself: two cache lines that go to and fro between two processors, twice.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Instant;

use super::question::{Place, Question};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::threads;

/// How many round trips are one operation: a message there and back passes two things from one processor to
/// the other.
const TRIPS: u64 = 2;

struct CacheLines;

/// A count with a cache line of its own, and the line that is fetched with it.
#[repr(align(128))]
struct Line(AtomicU64);

pub(super) fn start(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(CacheLines)
}

/// A stream passes nothing back, and a mutex goes to and fro as often as it likes.
pub(super) fn enters(question: Question, _workers: usize) -> bool {
    let is_other = matches!(question, Question::Bounded(_) | Question::Unbounded(_) | Question::MutexApart);
    question.place() == Place::Apart && !is_other
}

impl Rival<Question> for CacheLines {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        let (there, back) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
        let trips = || 1..=TRIPS * operations;
        let asking = || {
            let begin = Instant::now();
            trips().for_each(|trip| {
                there.0.store(trip, Release);
                back.spin_until(trip);
            });
            begin.elapsed()
        };
        let answering = || {
            trips().for_each(|trip| {
                there.spin_until(trip);
                back.0.store(trip, Release);
            });
        };
        threads::apart(asking, answering).into()
    }
}

impl Line {
    fn spin_until(&self, trip: u64) {
        while self.0.load(Acquire) != trip {
            spin_loop();
        }
    }
}
