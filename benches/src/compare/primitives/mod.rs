//! The primitives of fibra and of its rivals.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | the questions |
//! | `cache_lines.rs` | the needs of the machine itself |
//! | `shares.rs` | the shares of many tasks |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any
//! figure.

mod cache_lines;
pub(super) mod question;
pub(super) mod shares;

use std::cell::OnceCell;

use super::awaiting::asked::library as awaited;
use super::blocking::asked::library as blocked;
use super::blocking::{Coroutines, Crossbeam, Fibra, Flume, ParkingLot, Standard, WriterFirst};
use super::entrant::{Entrant, Rival};
use super::worlds::fibra::{Lazy, Migratable, Staying};
use super::worlds::may::{self, May};
use super::worlds::smol::{self, Smol};
use super::worlds::threads::{Here, Threads};
use super::worlds::tokio::{Tokio, current, multi};
use super::{awaiting, blocking};
use question::{Place, Question};

pub(super) const ENTRANTS: [Entrant<Question>; 14] = [
    Entrant::ours("fibra", ours::<Staying, Fibra>, |question, _| has::<Staying, Fibra>(question)),
    Entrant::ours("fibra migr.", ours::<Migratable, Fibra>, |question, _| {
        is_together(question) && has::<Migratable, Fibra>(question)
    }),
    Entrant::ours("fibra writer first", ours::<Staying, WriterFirst>, |question, _| {
        matches!(question, Question::ReadWrite | Question::ReadWriteTiny(_))
    }),
    Entrant::theirs("may", |n| blocked::Using::<Coroutines, May, _>::boxed(may::configure(n)), may_enters),
    Entrant::theirs(
        "tokio current",
        |_| awaited::Using::<Tokio, Tokio, _>::boxed(current()),
        |question, n| is_for_one_thread(question, n) && awaits::<Tokio, Tokio>(question),
    ),
    Entrant::theirs(
        "tokio multi",
        |n| awaited::Using::<Tokio, Tokio, _>::boxed(multi(n)),
        |question, _| is_together(question) && awaits::<Tokio, Tokio>(question),
    ),
    Entrant::theirs(
        "flume tokio",
        |_| awaited::Using::<awaiting::Flume, Tokio, _>::boxed(current()),
        |question, n| is_for_one_thread(question, n) && awaits::<Tokio, awaiting::Flume>(question),
    ),
    Entrant::theirs(
        "smol",
        |n| awaited::Using::<Smol, Smol, _>::boxed(smol::Threads::start(n)),
        |question, _| awaits::<Smol, Smol>(question),
    ),
    Entrant::ours("fibra threads", threads::<Fibra>, threads_enter::<Fibra>),
    Entrant::theirs("crossbeam", threads::<Crossbeam>, threads_enter::<Crossbeam>),
    Entrant::theirs("flume", threads::<Flume>, threads_enter::<Flume>),
    Entrant::theirs("parking_lot", threads::<ParkingLot>, threads_enter::<ParkingLot>),
    Entrant::theirs("std", threads::<Standard>, threads_enter::<Standard>),
    Entrant::floor("cache lines", cache_lines::start, cache_lines::enters),
];

fn ours<T: blocking::Tasks, L: blocked::Library<T>>(workers: usize) -> Box<dyn Rival<Question>> {
    blocked::Using::<L, T, _>::boxed(Lazy { workers, runtime: OnceCell::new() })
}

fn threads<L: blocked::Library<Threads>>(_workers: usize) -> Box<dyn Rival<Question>> {
    blocked::Using::<L, Threads, _>::boxed(Here)
}

/// Threads are not asked questions about many tasks that take turns.
fn threads_enter<L: blocked::Library<Threads>>(question: Question, _workers: usize) -> bool {
    !question.takes_turns() && has::<Threads, L>(question)
}

/// Its coroutines go where they please, so none is asked to stay apart; and those that park and unpark each
/// other need not come to an end.
fn may_enters(question: Question, workers: usize) -> bool {
    let ends = workers == 1 || !matches!(question, Question::Event(_));
    ends && is_together(question) && has::<May, Coroutines>(question)
}

fn has<T: blocking::Tasks, L: blocked::Library<T>>(question: Question) -> bool {
    blocked::ask::<T, L>(question, 1).is_some()
}

fn awaits<T: awaiting::Tasks, L: awaited::Library<T>>(question: Question) -> bool {
    awaited::ask::<T, L>(question, 1).is_some()
}

fn is_together(question: Question) -> bool {
    question.place() == Place::Together
}

/// Returns true if every task has a runtime that runs on one thread.
fn is_for_one_thread(question: Question, workers: usize) -> bool {
    workers == 1 || !is_together(question)
}
