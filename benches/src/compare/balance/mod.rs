//! Work that is born on one worker: how near the runtimes come to sharing it out evenly.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `work.rs` | what a task computes, and who counts what is left to do |
//! | `blocking.rs`, `awaiting.rs` | the questions, one generic function each |
//! | `even.rs` | what cannot be bettered: threads of the system, one for each worker, that have even shares |
//! | `rayon.rs` | who spreads tasks that do not suspend |

mod awaiting;
mod blocking;
mod even;
mod question;
mod rayon;
mod work;

use super::entrant::{Contest, Entrant, Kind};
use super::worlds::{fibra, may, smol, tokio};
use question::Question;

const ENTRANTS: [Entrant<Question>; 7] = [
    Entrant { name: "fibra", kind: Kind::Ours, start: fibra::start_at_home, enters: always },
    Entrant { name: "fibra migr.", kind: Kind::Ours, start: fibra::start_migratable, enters: always },
    Entrant { name: "may", kind: Kind::Theirs, start: may::start, enters: as_may_can },
    Entrant { name: "tokio multi", kind: Kind::Theirs, start: tokio::start_multi, enters: always },
    Entrant { name: "smol", kind: Kind::Theirs, start: smol::start, enters: always },
    Entrant { name: "rayon", kind: Kind::Theirs, start: rayon::start, enters: not_started },
    Entrant { name: "even shares", kind: Kind::Floor, start: even::start, enters: always },
];

fn always(_: Question, _: usize) -> bool {
    true
}

fn not_started(question: Question, _: usize) -> bool {
    question != Question::Started
}

/// Those of may's coroutines that yield keep others from ever beginning.
fn as_may_can(question: Question, workers: usize) -> bool {
    not_started(question, workers)
}

/// All questions with so many workers.
pub(super) fn contests(workers: usize) -> Vec<Contest> {
    Contest::all(&ENTRANTS, workers)
}
