//! The questions about what tasks cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{Enter, Job, Signal, Tasks, hand_to_and_fro};
use super::Host;
use super::pairs::Event;
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::tasks::question::Question;
use crate::compare::tasks::share;

impl<T: Tasks, E: Enter> Rival<Question> for Host<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let elapsed = self.entrance.ask(job!({
            match question {
                Question::Switch => run!(take_turns::<T>(1, operations)),
                Question::Yield(tasks) => run!(take_turns::<T>(tasks.into(), operations)),
                Question::SpawnOne => run!(spawn_one_by_one::<T>(operations)),
                Question::SpawnMany(tasks) => run!(spawn_many::<T>(tasks.into(), operations)),
                Question::Chain => run!(spawn_in_a_chain::<T>(operations)),
                Question::Park => run!(hand_to_and_fro::<T>(operations)),
            }
        }));
        elapsed.into()
    }
}

/// `tasks` tasks yield until all of them together have done so `operations` times.
///
/// No task waits until all are there: coroutines of may that yield keep waiting ones from ever beginning.
fn take_turns<T: Tasks>(tasks: u64, operations: u64) -> impl Job<Duration> {
    let turns = operations.div_ceil(tasks);
    job!({
        let begin = Instant::now();
        let yielding = |_| {
            job!({
                for _ in 0..turns {
                    wait!(T::yield_now());
                }
            })
        };
        let handles: Vec<_> = (0..tasks).map(yielding).map(T::spawn).collect();
        join_all!(T, handles);
        share(begin.elapsed(), operations, turns * tasks)
    })
}

fn spawn_one_by_one<T: Tasks>(operations: u64) -> impl Job<Duration> {
    job!({ timed!(operations, |_| wait!(T::join(T::spawn(job!({}))))) })
}

fn spawn_many<T: Tasks>(tasks: u64, operations: u64) -> impl Job<Duration> {
    let rounds = operations.div_ceil(tasks);
    job!({
        let mut handles = Vec::with_capacity(tasks as usize);
        let begin = Instant::now();
        for _ in 0..rounds {
            handles.extend((0..tasks).map(|_| T::spawn(job!({}))));
            join_all!(T, handles.drain(..));
        }
        share(begin.elapsed(), operations, rounds * tasks)
    })
}

fn spawn_in_a_chain<T: Tasks>(operations: u64) -> impl Job<Duration> {
    job!({
        let end = Arc::new(Signal::<T>::new());
        let begin = Instant::now();
        link::<T>(operations, Arc::clone(&end));
        wait!(end.wait());
        begin.elapsed()
    })
}

fn link<T: Tasks>(left: u64, end: Arc<Signal<T>>) {
    match left {
        0 => end.set(),
        _ => T::detach(T::spawn(job!({ link::<T>(left - 1, end) }))),
    }
}
