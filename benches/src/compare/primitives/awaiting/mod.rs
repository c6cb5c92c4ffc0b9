//! The same questions for tasks that wait by `await`.
//!
//! | file | holds |
//! | --- | --- |
//! | `crowd.rs`, `pairs.rs`, `spread.rs`, `alone.rs` | the questions, one generic function each |
//! | `library.rs` | what a library has to have for them |
//! | `tokio.rs`, `flume.rs`, `smol.rs` | those who are asked |

mod alone;
mod crowd;
mod flume;
mod library;
mod pairs;
mod smol;
mod spread;
mod tokio;

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use super::question::{Place, Question};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::smol::{Smol, Threads};
use crate::compare::worlds::tokio::{Tokio, current, multi};
use crate::compare::worlds::{Awaiting, EnterAsync, threads};

use library::way;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What is asked of a runtime.
enum Asked {
    /// Of one task, which may spawn others.
    Task(Boxed<Answer>),
    /// Of two; the answer is the first one's.
    Pair(Boxed<Duration>, Boxed<()>),
}

/// A way to ask.
type Way = fn(operations: u64) -> Asked;

/// A runtime for all tasks that are together; pairs that are apart have one on a thread of its own each.
struct Started<T, E> {
    door: E,
    way: fn(Question) -> Option<Way>,
    tasks: PhantomData<T>,
}

pub(super) fn start_tokio_current(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started { door: current(), way: way::<Tokio>, tasks: PhantomData::<Tokio> })
}

pub(super) fn start_tokio_multi(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started { door: multi(workers), way: way::<Tokio>, tasks: PhantomData::<Tokio> })
}

pub(super) fn start_flume(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started { door: current(), way: flume::way, tasks: PhantomData::<Tokio> })
}

pub(super) fn start_smol(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started { door: Threads::start(workers), way: way::<Smol>, tasks: PhantomData::<Smol> })
}

pub(super) fn tokio_current_enters(question: Question, workers: usize) -> bool {
    is_for_one_thread(question, workers) && way::<Tokio>(question).is_some()
}

pub(super) fn tokio_multi_enters(question: Question, _workers: usize) -> bool {
    question.place() == Place::Together && way::<Tokio>(question).is_some()
}

pub(super) fn flume_enters(question: Question, workers: usize) -> bool {
    is_for_one_thread(question, workers) && flume::way(question).is_some()
}

pub(super) fn smol_enters(question: Question, _workers: usize) -> bool {
    way::<Smol>(question).is_some()
}

/// Whether every task has a runtime that runs on one thread.
fn is_for_one_thread(question: Question, workers: usize) -> bool {
    workers == 1 || question.place() == Place::Apart
}

impl<T: Awaiting, E: EnterAsync> Rival<Question> for Started<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let way = (self.way)(question).expect("it has entered for no other");
        match (way(operations), question.place()) {
            (Asked::Pair(first, second), Place::Apart) => {
                threads::apart(|| E::alone(first), || E::alone(second)).into()
            }
            (Asked::Pair(first, second), Place::Together) => self.door.ask(both::<T>(first, second)).into(),
            (Asked::Task(task), _) => self.door.ask(task),
        }
    }
}

async fn both<T: Awaiting>(first: Boxed<Duration>, second: Boxed<()>) -> Duration {
    let second = T::spawn(second);
    let elapsed = first.await;
    T::join(second).await;
    elapsed
}

/// One future that times itself, as [`Asked`] has it.
fn task<A: Into<Answer>>(asked: impl Future<Output = A> + Send + 'static) -> Asked {
    Asked::Task(Box::pin(async move { asked.await.into() }))
}

/// A pair of futures, as [`Asked`] has them.
fn pair(
    first: impl Future<Output = Duration> + Send + 'static,
    second: impl Future<Output = ()> + Send + 'static,
) -> Asked {
    Asked::Pair(Box::pin(first), Box::pin(second))
}
