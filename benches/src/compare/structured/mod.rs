//! The costs of structured concurrency.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | the questions |
//! | `blocking.rs` | tasks that block, in a tree |
//! | `awaiting.rs` | tasks that wait by `await`, in a tree; tokio's timeout |
//! | `fibra.rs` | fibra's scopes, and its spawns and joins to compare them with |
//! | `rayon.rs` | loops |

mod awaiting;
mod blocking;
mod fibra;
mod question;
mod rayon;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::entrant::{Entrant, always};
use super::worlds;
use question::{ITEMS, Question};

/// Beyond every run.
const FAR: Duration = Duration::from_secs(3600);

pub(super) const ENTRANTS: [Entrant<Question>; 9] = [
    Entrant::ours("fibra", fibra::start, always),
    Entrant::ours("fibra migr.", worlds::fibra::start_migratable, to_skynet),
    Entrant::floor("two spawns", fibra::start_spawning, to_scope),
    Entrant::theirs("may", worlds::may::start, to_small_skynet),
    Entrant::theirs("tokio current", awaiting::start_current, without_borrows_on_one),
    Entrant::theirs("tokio multi", awaiting::start_multi, without_borrows),
    Entrant::theirs("smol", worlds::smol::start, to_skynet),
    Entrant::theirs("rayon", rayon::start, to_loop),
    Entrant::theirs("std threads", fibra::start_threads, to_scope),
];

fn to_scope(question: Question, _: usize) -> bool {
    question == Question::Scope
}

fn to_loop(question: Question, _: usize) -> bool {
    question == Question::Loop
}

fn to_skynet(question: Question, _: usize) -> bool {
    matches!(question, Question::Skynet(_))
}

fn to_small_skynet(question: Question, _: usize) -> bool {
    matches!(question, Question::Skynet(leaves) if leaves <= worlds::may::MOST / 2)
}

fn without_borrows(question: Question, _: usize) -> bool {
    matches!(question, Question::Timeout | Question::Skynet(_))
}

fn without_borrows_on_one(question: Question, workers: usize) -> bool {
    without_borrows(question, workers) && workers == 1
}

/// The items of the loop.
fn items() -> Vec<AtomicU32> {
    (0..ITEMS).map(|_| AtomicU32::new(0)).collect()
}

/// Computes with one item: a few nanoseconds of work that cannot be optimized away.
fn visit(items: &[AtomicU32], number: usize) {
    // Relaxed: each item is written by one call, and read by none.
    items[number].store((number as u32).wrapping_mul(0x9e37_79b9), Ordering::Relaxed);
}

fn timed(operations: u64, operation: impl Fn()) -> Duration {
    let begin = Instant::now();
    (0..operations).for_each(|_| operation());
    begin.elapsed()
}
