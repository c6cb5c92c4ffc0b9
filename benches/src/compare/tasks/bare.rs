//! Coroutines without a scheduler: what a switch costs at the least, by the library that fibra's tasks switch
//! with and by the one that may uses.

use std::time::{Duration, Instant};

use corosensei::Coroutine;
use generator::{Gn, done};

use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

use super::question::Question;

/// Resumes a coroutine so many times, which suspends itself as often, and tells how long that takes.
struct Bare(fn(u64) -> Duration);

pub(super) fn start_corosensei(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Bare(by_corosensei))
}

pub(super) fn start_generator(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Bare(by_generator))
}

impl Rival<Question> for Bare {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        assert_eq!(question, Question::Switch, "the table of entrants lets it enter for no other");
        (self.0)(operations).into()
    }
}

fn by_corosensei(operations: u64) -> Duration {
    let mut coroutine = Coroutine::new(move |yielder, ()| (0..operations).for_each(|_| yielder.suspend(())));
    let begin = Instant::now();
    for _ in 0..operations {
        coroutine.resume(());
    }
    let elapsed = begin.elapsed();
    // It ends by itself, so that nothing is left to be unwound.
    coroutine.resume(());
    elapsed
}

fn by_generator(operations: u64) -> Duration {
    let mut coroutine = Gn::<()>::new_scoped(move |mut scope| {
        (0..operations).for_each(|_| _ = scope.yield_(()));
        done!()
    });
    let begin = Instant::now();
    for _ in 0..operations {
        coroutine.resume();
    }
    let elapsed = begin.elapsed();
    coroutine.resume();
    elapsed
}
