//! rayon, whose tasks do not suspend.

use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::question::{PIECES, Question};
use super::work::Work;
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(ThreadPoolBuilder::new().num_threads(workers).build().expect("threads for the workers"))
}

impl Rival<Question> for ThreadPool {
    fn answer(&self, question: Question, _: u64) -> Answer {
        let work = Work::new();
        let elapsed = self.install(|| {
            let begin = Instant::now();
            rayon::scope(|scope| {
                (0..PIECES).for_each(|_| scope.spawn(|_| work.work()));
                if question == Question::Stuck {
                    work.outlast();
                }
            });
            work.elapsed_since(begin)
        });
        elapsed.into()
    }
}
