//! Work that is born on one worker: how near the runtimes come to sharing it out evenly.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | the questions |
//! | `work.rs` | the work of a task, and the count of pieces left |
//! | `even.rs` | the lower bound: threads of the system, one for each worker, that have even shares |
//! | `rayon.rs` | a library that spreads tasks that do not suspend |

mod even;
pub(super) mod question;
mod rayon;
pub(super) mod work;

use super::entrant::{Entrant, always};
use super::worlds::{fibra, may, smol, tokio};
use question::Question;

pub(super) const ENTRANTS: [Entrant<Question>; 7] = [
    Entrant::ours("fibra", fibra::start_staying, always),
    Entrant::ours("fibra migr.", fibra::start_migratable, always),
    Entrant::theirs("may", may::start, as_may_can),
    Entrant::theirs("tokio multi", tokio::start_multi, always),
    Entrant::theirs("smol", smol::start, always),
    Entrant::theirs("rayon", rayon::start, not_started),
    Entrant::floor("even shares", even::start, always),
];

fn not_started(question: Question, _: usize) -> bool {
    question != Question::Started
}

/// Coroutines of may that yield keep others from ever beginning.
fn as_may_can(question: Question, workers: usize) -> bool {
    not_started(question, workers)
}
