//! The questions of `blocking.rs`, asked of tasks that wait by `await`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::{Awaiting, Awaits, EnterAsync, Signal};

use super::question::Question;
use super::share;

impl<T: Awaiting, E: EnterAsync> Rival<Question> for Awaits<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        self.door.ask(answer::<T>(question, operations)).into()
    }
}

async fn answer<T: Awaiting>(question: Question, operations: u64) -> Duration {
    match question {
        Question::Switch => take_turns::<T>(1, operations).await,
        Question::Yield(tasks) => take_turns::<T>(tasks.into(), operations).await,
        Question::SpawnOne => spawn_one_by_one::<T>(operations).await,
        Question::SpawnMany(tasks) => spawn_many::<T>(tasks.into(), operations).await,
        Question::Chain => spawn_in_a_chain::<T>(operations).await,
        Question::Park => hand_to_and_fro::<T>(operations).await,
    }
}

async fn take_turns<T: Awaiting>(tasks: u64, operations: u64) -> Duration {
    let turns = operations.div_ceil(tasks);
    let begin = Instant::now();
    let yielding = || async move {
        for _ in 0..turns {
            T::yield_now().await;
        }
    };
    let handles: Vec<_> = (0..tasks).map(|_| T::spawn(yielding())).collect();
    for handle in handles {
        T::join(handle).await;
    }
    share(begin.elapsed(), operations, turns * tasks)
}

async fn spawn_one_by_one<T: Awaiting>(operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        T::join(T::spawn(async {})).await;
    }
    begin.elapsed()
}

async fn spawn_many<T: Awaiting>(tasks: u64, operations: u64) -> Duration {
    let rounds = operations.div_ceil(tasks);
    let mut handles = Vec::with_capacity(tasks as usize);
    let begin = Instant::now();
    for _ in 0..rounds {
        handles.extend((0..tasks).map(|_| T::spawn(async {})));
        for handle in handles.drain(..) {
            T::join(handle).await;
        }
    }
    share(begin.elapsed(), operations, rounds * tasks)
}

async fn spawn_in_a_chain<T: Awaiting>(operations: u64) -> Duration {
    let end = Arc::new(T::Signal::default());
    let begin = Instant::now();
    link::<T>(operations, Arc::clone(&end));
    end.wait().await;
    begin.elapsed()
}

fn link<T: Awaiting>(left: u64, end: Arc<T::Signal>) {
    match left {
        0 => end.set(),
        _ => T::detach(T::spawn(async move { link::<T>(left - 1, end) })),
    }
}

/// Parks and unparks by a signal for each of the two.
async fn hand_to_and_fro<T: Awaiting>(operations: u64) -> Duration {
    let (ours, theirs) = (Arc::new(T::Signal::default()), Arc::new(T::Signal::default()));
    let (asking, asked) = (Arc::clone(&ours), Arc::clone(&theirs));
    let other = T::spawn(async move {
        for _ in 0..operations {
            asked.wait().await;
            asking.set();
        }
    });
    let begin = Instant::now();
    for _ in 0..operations {
        theirs.set();
        ours.wait().await;
    }
    let elapsed = begin.elapsed();
    T::join(other).await;
    elapsed
}
