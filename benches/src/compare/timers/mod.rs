//! Many tasks that sleep at once: how long that takes, what it costs, and how late they wake.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | the questions |
//! | `lateness.rs` | the lateness of the sleepers |
//!
//! may has a thread for its timers, smol one for its reactor, and tokio and fibra a wheel in the worker: the
//! processor time is that of the whole process.

pub(super) mod lateness;
pub(super) mod question;

use super::entrant::{Entrant, always, on_one_worker};
use super::worlds::{fibra, may, smol, tokio};
use question::Question;

pub(super) const ENTRANTS: [Entrant<Question>; 6] = [
    Entrant::ours("fibra", fibra::start_staying, always),
    Entrant::ours("fibra migr.", fibra::start_migratable, always),
    Entrant::theirs("may", may::start, as_may_can),
    Entrant::theirs("tokio current", tokio::start_current, on_one_worker),
    Entrant::theirs("tokio multi", tokio::start_multi, always),
    Entrant::theirs("smol", smol::start, always),
];

fn as_may_can(question: Question, _: usize) -> bool {
    u64::from(question.tasks) <= may::MOST
}
