//! fibra in scopes, and, to compare those with, by spawns and joins; and scopes of threads.

use std::hint::black_box;
use std::thread;

use fibra::Runtime;

use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::fibra::{Staying, runtime};

use super::question::{ITEMS, Question};
use super::{FAR, blocking, items, timed, visit};

struct Scoped(Runtime);

struct Spawned(Runtime);

struct Threads;

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Scoped(runtime(workers)))
}

pub(super) fn start_spawning(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Spawned(runtime(workers)))
}

pub(super) fn start_threads(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Threads)
}

impl Rival<Question> for Scoped {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        self.0
            .run(|| match question {
                Question::Timeout => timed(operations, || {
                    _ = black_box(fibra::timeout(FAR, || black_box(0)));
                }),
                Question::Scope => timed(operations, || {
                    let (one, other) = (black_box(1), black_box(2));
                    fibra::scope(|scope| {
                        scope.spawn(|| black_box(one));
                        scope.spawn(|| black_box(other));
                    });
                }),
                Question::Skynet(leaves) => blocking::climb::<Staying>(leaves, operations),
                Question::Loop => {
                    let items = items();
                    timed(operations, || fibra::parallel_for(0..ITEMS, |number| visit(&items, number)))
                }
            })
            .into()
    }
}

impl Rival<Question> for Spawned {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        let asked = || {
            timed(operations, || {
                let handles = [1, 2].map(|number| fibra::spawn(move || black_box(number)));
                black_box(handles.map(|handle| handle.join().expect("no task panics")));
            })
        };
        self.0.run(asked).into()
    }
}

impl Rival<Question> for Threads {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        let scope = || {
            let (one, other) = (black_box(1), black_box(2));
            thread::scope(|scope| {
                scope.spawn(|| black_box(one));
                scope.spawn(|| black_box(other));
            });
        };
        timed(operations, scope).into()
    }
}
