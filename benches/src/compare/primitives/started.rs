//! Libraries whose operations block, started: fibra's tasks, may's, and threads.

use std::cell::OnceCell;
use std::marker::PhantomData;
use std::sync::mpsc;
use std::time::Duration;

use fibra::Runtime;

use super::fibra::{Fibra, WriterFirst};
use super::library::{Anywhere, Library, Pair, Way, way};
use super::may::Coroutines;
use super::question::{Place, Question};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::fibra::{AtHome, Migratable};
use crate::compare::worlds::may::{self, May, Process};
use crate::compare::worlds::threads::{Here, Threads, apart};
use crate::compare::worlds::{Blocking, Enter};

/// A way in, and how questions are answered there.
struct Started<E> {
    door: E,
    way: fn(Question) -> Option<Way>,
}

/// Two of fibra's tasks on one worker.
struct Beside;

/// Two of fibra's tasks on two workers.
struct Apart;

/// Two threads, pinned to the first two processors.
struct Pinned;

/// Threads with the operations of a library.
pub(super) struct Among<L>(PhantomData<L>);

impl<E: Enter> Rival<Question> for Started<E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let way = (self.way)(question).expect("it has entered for no other");
        self.door.ask(move || way(operations))
    }
}

/// fibra, whose runtime is made for the first question: its workers are pinned where two tasks are to be apart, as whoever
/// else is asked that is.
struct Ours {
    workers: usize,
    way: fn(Question) -> Option<Way>,
    runtime: OnceCell<Runtime>,
}

impl Ours {
    fn boxed(workers: usize, way: fn(Question) -> Option<Way>) -> Box<dyn Rival<Question>> {
        Box::new(Ours { workers, way, runtime: OnceCell::new() })
    }

    fn start(&self, place: Place) -> Runtime {
        let runtime = Runtime::builder().workers(self.workers).pin_workers(place == Place::Apart).build();
        runtime.expect("threads for the workers")
    }
}

impl Rival<Question> for Ours {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let runtime = self.runtime.get_or_init(|| self.start(question.place()));
        let way = (self.way)(question).expect("it has entered for no other");
        runtime.run(move || way(operations))
    }
}

pub(super) fn start_at_home(workers: usize) -> Box<dyn Rival<Question>> {
    Ours::boxed(workers, at_home)
}

pub(super) fn start_migratable(workers: usize) -> Box<dyn Rival<Question>> {
    Ours::boxed(workers, migratable)
}

pub(super) fn start_writer_first(workers: usize) -> Box<dyn Rival<Question>> {
    Ours::boxed(workers, writer_first)
}

pub(super) fn at_home_enters(question: Question, _workers: usize) -> bool {
    at_home(question).is_some()
}

pub(super) fn writer_first_enters(question: Question, _workers: usize) -> bool {
    writer_first(question).is_some()
}

/// Two tasks that go where they please cannot be kept apart.
pub(super) fn migratable_enters(question: Question, _workers: usize) -> bool {
    question.place() == Place::Together && migratable(question).is_some()
}

fn at_home(question: Question) -> Option<Way> {
    way::<Fibra, AtHome, Beside, Apart>(question)
}

fn migratable(question: Question) -> Option<Way> {
    Fibra::way::<Migratable, Anywhere<Migratable>>(question)
}

fn writer_first(question: Question) -> Option<Way> {
    WriterFirst::way::<AtHome, Beside>(question)
}

pub(super) fn start_may(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Started::<Process> { door: may::configure(workers), way: coroutines })
}

/// Its coroutines go where they please, so none is asked to stay apart; and those that park and unpark each other need not
/// come to an end.
pub(super) fn may_enters(question: Question, workers: usize) -> bool {
    let ends = workers == 1 || !matches!(question, Question::Event(_));
    ends && question.place() == Place::Together && coroutines(question).is_some()
}

fn coroutines(question: Question) -> Option<Way> {
    Coroutines::way::<May, Anywhere<May>>(question)
}

impl<L: Library> Among<L> {
    pub(super) fn start(_workers: usize) -> Box<dyn Rival<Question>> {
        Box::new(Started { door: Here, way: Self::way })
    }

    /// What needs many tasks that take turns is not asked of threads.
    pub(super) fn enters(question: Question, _workers: usize) -> bool {
        !question.takes_turns() && Self::way(question).is_some()
    }

    fn way(question: Question) -> Option<Way> {
        way::<L, Threads, Anywhere<Threads>, Pinned>(question)
    }
}

impl Pair for Beside {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        let second = fibra::spawn_local(second);
        let elapsed = first();
        AtHome::join(second);
        elapsed
    }
}

impl Pair for Apart {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        let (started, starts) = mpsc::channel();
        let second = fibra::spawn(move || {
            started.send(()).expect("the first waits for it");
            second();
        });
        // Stops this worker, so that it is another one that starts the second.
        starts.recv().expect("the second starts");
        let elapsed = first();
        AtHome::join(second);
        elapsed
    }
}

impl Pair for Pinned {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        apart(first, second)
    }
}
