//! rayon, which spreads loops.

use std::time::Instant;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

use super::question::{ITEMS, Question};
use super::{items, visit};

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(ThreadPoolBuilder::new().num_threads(workers).build().expect("threads for the workers"))
}

impl Rival<Question> for ThreadPool {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        assert_eq!(question, Question::Loop, "the only one that it is asked");
        let items = items();
        self.install(|| {
            let begin = Instant::now();
            for _ in 0..operations {
                (0..ITEMS).into_par_iter().for_each(|number| visit(&items, number));
            }
            begin.elapsed()
        })
        .into()
    }
}
