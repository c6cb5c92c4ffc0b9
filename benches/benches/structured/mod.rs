//! What structured concurrency costs.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `fibra.rs` | fibra, and its spawns and joins, to compare its scopes with |
//! | `tokio.rs`, `rayon.rs` | whom its users would take instead |

mod fibra;
mod question;
mod rayon;
mod tokio;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::comparison::{self, Entrant};
use question::{ITEMS, Question};

const ENTRANTS: [Entrant<Question>; 5] = [
    Entrant { name: "fibra", is_rival: false, start: fibra::start, enters: always },
    Entrant { name: "two spawns", is_rival: true, start: fibra::start_spawning, enters: to_scope },
    Entrant {
        name: "tokio current",
        is_rival: true,
        start: tokio::start_current,
        enters: without_borrows_on_one,
    },
    Entrant { name: "tokio multi", is_rival: true, start: tokio::start_multi, enters: without_borrows },
    Entrant { name: "rayon", is_rival: true, start: rayon::start, enters: to_loop },
];

fn always(_: Question, _: usize) -> bool {
    true
}

fn to_scope(question: Question, _: usize) -> bool {
    question == Question::Scope
}

fn to_loop(question: Question, _: usize) -> bool {
    question == Question::Loop
}

fn without_borrows(question: Question, _: usize) -> bool {
    matches!(question, Question::Timeout | Question::Skynet)
}

fn without_borrows_on_one(question: Question, workers: usize) -> bool {
    without_borrows(question, workers) && workers == 1
}

/// What the loop goes over.
fn items() -> Vec<AtomicU32> {
    (0..ITEMS).map(|_| AtomicU32::new(0)).collect()
}

/// What the loop does with each: a few nanoseconds' work that cannot be left out.
fn visit(items: &[AtomicU32], number: usize) {
    // Relaxed: each item is written by one call, and read by none.
    items[number].store((number as u32).wrapping_mul(0x9e37_79b9), Ordering::Relaxed);
}

/// Asks every question of every entrant, and prints where fibra stands.
pub(crate) fn compare(workers: usize) {
    comparison::compare(&ENTRANTS, workers);
}
