//! What a task that sleeps keeps resident. Each answer has a process of its own, in which nothing was allocated before.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `sleepers.rs` | the one generic function for each kind of tasks |

mod question;
mod sleepers;

use super::entrant::{Contest, Entrant, Kind};
use super::worlds::{fibra, may, smol, threads, tokio};
use question::Question;

const ENTRANTS: [Entrant<Question>; 6] = [
    Entrant { name: "fibra", kind: Kind::Ours, start: fibra::start_at_home, enters: always },
    Entrant { name: "fibra 64-KiB", kind: Kind::Ours, start: fibra::start_narrow, enters: always },
    Entrant { name: "may", kind: Kind::Theirs, start: may::start_empty, enters: as_may_can },
    Entrant { name: "tokio current", kind: Kind::Theirs, start: tokio::start_current, enters: always },
    Entrant { name: "smol", kind: Kind::Theirs, start: smol::start, enters: always },
    Entrant { name: "std threads", kind: Kind::Theirs, start: threads::start, enters: by_few },
];

fn always(_: Question, _: usize) -> bool {
    true
}

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
