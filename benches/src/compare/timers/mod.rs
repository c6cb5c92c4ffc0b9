//! Many tasks that sleep at the same time: how long all of it takes, what it costs, and how late they wake.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `sleepers.rs` | the one generic function for each kind of tasks |
//! | `lateness.rs` | what the sleepers tell |
//!
//! may has a thread for its timers, smol one for its reactor, and tokio and fibra a wheel in the worker: the processor time is
//! that of the whole process.

mod lateness;
mod question;
mod sleepers;

use super::entrant::{Contest, Entrant, Kind};
use super::worlds::{fibra, may, smol, tokio};
use question::Question;

const ENTRANTS: [Entrant<Question>; 6] = [
    Entrant { name: "fibra", kind: Kind::Ours, start: fibra::start_at_home, enters: always },
    Entrant { name: "fibra migr.", kind: Kind::Ours, start: fibra::start_migratable, enters: always },
    Entrant { name: "may", kind: Kind::Theirs, start: may::start, enters: as_may_can },
    Entrant { name: "tokio current", kind: Kind::Theirs, start: tokio::start_current, enters: on_one_worker },
    Entrant { name: "tokio multi", kind: Kind::Theirs, start: tokio::start_multi, enters: always },
    Entrant { name: "smol", kind: Kind::Theirs, start: smol::start, enters: always },
];

fn always(_: Question, _: usize) -> bool {
    true
}

fn as_may_can(question: Question, _: usize) -> bool {
    u64::from(question.tasks) <= may::MOST
}

fn on_one_worker(_: Question, workers: usize) -> bool {
    workers == 1
}

/// All questions with so many workers.
pub(super) fn contests(workers: usize) -> Vec<Contest> {
    Contest::all(&ENTRANTS, workers)
}
