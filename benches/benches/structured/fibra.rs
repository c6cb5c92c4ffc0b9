//! fibra: in scopes, and, to compare those with, by spawns and joins.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fibra::Runtime;

use crate::comparison::{Answer, Rival};

use super::question::{BRANCHES, ITEMS, LEAVES, Question};
use super::{items, visit};

/// Beyond every run.
const FAR: Duration = Duration::from_secs(3600);

struct Scoped(Runtime);

struct Spawned(Runtime);

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Scoped(runtime(workers)))
}

pub(super) fn start_spawning(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Spawned(runtime(workers)))
}

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("threads for the workers")
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
                Question::Skynet => {
                    timed(operations, || assert_eq!(skynet(0, LEAVES), LEAVES * (LEAVES - 1) / 2))
                }
                Question::Loop => {
                    let items = items();
                    timed(operations, || fibra::parallel_for(0..ITEMS, |number| visit(&items, number)))
                }
            })
            .into()
    }
}

impl Rival<Question> for Spawned {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        assert_eq!(question, Question::Scope, "this one is there to compare scopes with");
        let asked = || {
            timed(operations, || {
                let handles = [1, 2].map(|number| fibra::spawn(move || black_box(number)));
                black_box(handles.map(|handle| handle.join().expect("no task panics")));
            })
        };
        self.0.run(asked).into()
    }
}

/// The sum of `leaves` numbers that begin with `first`.
fn skynet(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let each = leaves / BRANCHES;
    let children: [_; BRANCHES as usize] =
        std::array::from_fn(|child| fibra::spawn(move || skynet(first + child as u64 * each, each)));
    children.into_iter().map(|child| child.join().expect("no task panics")).sum()
}

fn timed(operations: u64, operation: impl Fn()) -> Duration {
    let begin = Instant::now();
    (0..operations).for_each(|_| operation());
    begin.elapsed()
}
