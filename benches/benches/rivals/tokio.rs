//! tokio, in both flavours: the questions of `blocking.rs`, asked of tasks that wait by `await`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};

use crate::comparison::{Answer, Rival};

use super::blocking::share;
use super::question::{BACKLOG, Question, THOUSAND};

pub(super) fn start_current(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Builder::new_current_thread().build().expect("a runtime on this thread"))
}

pub(super) fn start_multi(workers: usize) -> Box<dyn Rival<Question>> {
    let runtime = Builder::new_multi_thread().worker_threads(workers).build();
    Box::new(runtime.expect("threads for the workers"))
}

impl Rival<Question> for Runtime {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        // In a task, as with the others: what `block_on` itself runs is no task and, with several threads, on none of them.
        let asked = self.spawn(answer(question, operations));
        self.block_on(asked).expect("no task panics").into()
    }
}

async fn answer(question: Question, operations: u64) -> Duration {
    match question {
        Question::YieldTwo => take_turns(2, operations).await,
        Question::YieldThousand => take_turns(THOUSAND, operations).await,
        Question::SpawnOne => spawn_one_by_one(operations).await,
        Question::SpawnMany => spawn_many(operations).await,
        Question::Park => hand_to_and_fro(operations).await,
    }
}

async fn join(handle: JoinHandle<()>) {
    handle.await.expect("no task panics");
}

async fn take_turns(tasks: u64, operations: u64) -> Duration {
    let turns = operations.div_ceil(tasks);
    let begin = Instant::now();
    let yielding = move || async move {
        for _ in 0..turns {
            yield_now().await;
        }
    };
    let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(yielding())).collect();
    for handle in handles {
        join(handle).await;
    }
    share(begin.elapsed(), operations, turns * tasks)
}

async fn spawn_one_by_one(operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        join(tokio::spawn(async {})).await;
    }
    begin.elapsed()
}

async fn spawn_many(operations: u64) -> Duration {
    let rounds = operations.div_ceil(BACKLOG);
    let mut handles = Vec::with_capacity(BACKLOG as usize);
    let begin = Instant::now();
    for _ in 0..rounds {
        handles.extend((0..BACKLOG).map(|_| tokio::spawn(async {})));
        for handle in handles.drain(..) {
            join(handle).await;
        }
    }
    share(begin.elapsed(), operations, rounds * BACKLOG)
}

/// Parks and unparks by a `Notify` for each of the two.
async fn hand_to_and_fro(operations: u64) -> Duration {
    let (ours, theirs) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (asking, asked) = (Arc::clone(&ours), Arc::clone(&theirs));
    let other = tokio::spawn(async move {
        for _ in 0..operations {
            asked.notified().await;
            asking.notify_one();
        }
    });
    let begin = Instant::now();
    for _ in 0..operations {
        theirs.notify_one();
        ours.notified().await;
    }
    let elapsed = begin.elapsed();
    join(other).await;
    elapsed
}
