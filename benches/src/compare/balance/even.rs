//! Threads of the system, one for each worker that is free, that have even shares: no runtime can be done
//! sooner.

use std::thread;
use std::time::Instant;

use super::question::{PIECES, Question};
use super::work::piece;
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

struct Even {
    workers: u64,
}

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Even { workers: workers as u64 })
}

impl Rival<Question> for Even {
    fn answer(&self, question: Question, _: u64) -> Answer {
        let free = match question {
            Question::Stuck => self.workers - 1,
            Question::Born | Question::Started => self.workers,
        };
        let begin = Instant::now();
        thread::scope(|scope| {
            for number in 0..free {
                let share = PIECES / free + u64::from(number < PIECES % free);
                scope.spawn(move || (0..share).for_each(|_| piece()));
            }
        });
        begin.elapsed().into()
    }
}
