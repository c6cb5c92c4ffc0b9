//! The same questions for fibra and for those whom its users would take instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `blocking.rs` | the questions for libraries whose tasks block, one generic function each |
//! | `fibra.rs`, `may.rs`, `threads.rs` | such libraries |
//! | `parking_lot.rs` | threads that wait by that crate, which are asked to park alone |
//! | `tokio.rs` | the same questions for tokio, whose tasks wait by `await` |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any figure.

mod blocking;
mod fibra;
mod may;
mod parking_lot;
mod question;
mod threads;
mod tokio;

use crate::comparison::{self, Entrant};
use question::Question;

const ENTRANTS: [Entrant<Question>; 7] = [
    Entrant { name: "fibra", is_rival: false, start: fibra::start_at_home, enters: always },
    Entrant { name: "fibra migratable", is_rival: false, start: fibra::start_migratable, enters: always },
    Entrant { name: "may", is_rival: true, start: may::start, enters: where_it_ends },
    Entrant { name: "tokio current", is_rival: true, start: tokio::start_current, enters: on_one_worker },
    Entrant { name: "tokio multi", is_rival: true, start: tokio::start_multi, enters: always },
    Entrant { name: "std threads", is_rival: true, start: threads::start, enters: without_yields },
    Entrant { name: "parking_lot", is_rival: true, start: parking_lot::start, enters: to_park },
];

fn always(_: Question, _: usize) -> bool {
    true
}

/// On more than one worker two coroutines of may 0.3.51 that park and unpark each other now and then do so for ever: one of
/// its threads goes on yielding the processor, and nothing else runs.
fn where_it_ends(question: Question, workers: usize) -> bool {
    question != Question::Park || workers == 1
}

fn on_one_worker(_: Question, workers: usize) -> bool {
    workers == 1
}

/// Threads are not asked to take turns, nor for ten thousand of them.
fn without_yields(question: Question, _: usize) -> bool {
    matches!(question, Question::SpawnOne | Question::Park)
}

/// What parking_lot offers is made to wait by; its threads are those of std.
fn to_park(question: Question, _: usize) -> bool {
    question == Question::Park
}

/// Asks every question of every entrant, and prints where fibra stands.
pub(crate) fn compare(workers: usize) {
    comparison::compare(&ENTRANTS, workers);
}
