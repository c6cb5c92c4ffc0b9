//! What tasks cost: switches, turns, spawns, parks.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | the questions |
//! | `bare.rs` | coroutines without a scheduler, which are asked to switch alone |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any
//! figure.

mod bare;
pub(super) mod question;

use std::time::Duration;

use super::entrant::{Entrant, always, on_one_worker};
use super::worlds::{fibra, may, smol, threads, tokio};
use question::Question;

pub(super) const ENTRANTS: [Entrant<Question>; 9] = [
    Entrant::ours("fibra", fibra::start_staying, always),
    Entrant::ours("fibra migr.", fibra::start_migratable, always),
    Entrant::theirs("may", may::start, as_may_can),
    Entrant::theirs("tokio current", tokio::start_current, on_one_worker),
    Entrant::theirs("tokio multi", tokio::start_multi, always),
    Entrant::theirs("smol", smol::start, always),
    Entrant::theirs("std threads", threads::start, by_few),
    Entrant::floor("corosensei", bare::start_corosensei, to_switch),
    Entrant::floor("generator", bare::start_generator, to_switch),
];

fn as_may_can(question: Question, workers: usize) -> bool {
    let ends = workers == 1 || question != Question::Park;
    ends && question.tasks() <= may::MOST
}

/// Threads are not asked to take turns, nor for thousands of them.
fn by_few(question: Question, _: usize) -> bool {
    matches!(question, Question::SpawnOne | Question::Chain | Question::Park)
}

/// Coroutines without a scheduler cannot take turns.
fn to_switch(question: Question, _: usize) -> bool {
    question == Question::Switch
}

/// The share of `asked` operations in the time that `done` of them took; where they come in rounds more may
/// be done.
pub(super) fn share(elapsed: Duration, asked: u64, done: u64) -> Duration {
    elapsed.mul_f64(asked as f64 / done as f64)
}
