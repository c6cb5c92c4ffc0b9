//! What a task that sleeps keeps resident. Each answer has a process of its own, in which nothing was allocated before.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `sleepers.rs` | the one generic function for each kind of tasks |

mod question;
mod sleepers;

use super::entrant::{Contest, Entrant, always};
use super::worlds::{fibra, may, smol, threads, tokio};
use question::Question;

const ENTRANTS: [Entrant<Question>; 8] = [
    Entrant::ours("fibra", fibra::start_at_home, always),
    Entrant::ours("fibra migr.", fibra::start_migratable, always),
    Entrant::ours("fibra 64-KiB", fibra::start_narrow, always),
    Entrant::theirs("may", may::start_empty, as_may_can),
    Entrant::theirs("tokio current", tokio::start_current, always),
    Entrant::theirs("tokio multi", tokio::start_multi, always),
    Entrant::theirs("smol", smol::start, always),
    Entrant::theirs("std threads", threads::start, by_few),
];

fn as_may_can(question: Question, _: usize) -> bool {
    u64::from(question.tasks) <= may::MOST
}

/// The system lets no process have more threads than some thousands.
fn by_few(question: Question, _: usize) -> bool {
    question.tasks <= question::FEW
}

/// All questions with so many workers.
pub(super) fn contests(workers: usize) -> Vec<Contest> {
    Contest::all(&ENTRANTS, workers)
}
