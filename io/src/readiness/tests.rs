//! The moves of the word, one by one; then two threads against each other. The loom model is in `tests/loom.rs`.

#![forbid(unsafe_code)]

use super::{Clearing, Edge, Readiness};
use crate::sys::Direction;

fn read_edge() -> Edge {
    Edge::new().ready(Direction::Read, true)
}

#[test]
fn a_new_word_says_try_both_ways() {
    let word = Readiness::new();
    assert!(word.load().is_ready(Direction::Read));
    assert!(word.load().is_ready(Direction::Write));
}

#[test]
fn blocked_clears_its_own_direction_only() {
    let word = Readiness::new();
    let seen = word.load();
    assert_eq!(word.blocked(Direction::Read, seen), Clearing::Cleared);
    assert!(!word.load().is_ready(Direction::Read));
    assert!(word.load().is_ready(Direction::Write));
}

#[test]
fn an_edge_after_the_look_defeats_the_clear() {
    let word = Readiness::new();
    let seen = word.load();
    word.edge(read_edge());
    assert_eq!(word.blocked(Direction::Read, seen), Clearing::Overtaken);
    assert!(word.load().is_ready(Direction::Read));
}

#[test]
fn the_other_direction_may_clear_in_between() {
    let word = Readiness::new();
    let seen = word.load();
    assert_eq!(word.blocked(Direction::Write, seen), Clearing::Cleared);
    assert_eq!(word.blocked(Direction::Read, seen), Clearing::Cleared);
}

#[test]
fn a_short_transfer_is_believed() {
    let word = Readiness::new();
    word.drained(Direction::Read, word.load());
    assert!(!word.load().is_ready(Direction::Read));
}

#[test]
fn a_short_transfer_is_not_believed_after_a_hang_up() {
    let word = Readiness::new();
    word.edge(read_edge().hung_up(true));
    word.drained(Direction::Read, word.load());
    assert!(word.load().is_ready(Direction::Read));
}

#[test]
fn a_short_transfer_is_not_believed_after_urgent_data() {
    let word = Readiness::new();
    word.edge(read_edge().urgent(true));
    word.edge(read_edge());
    word.drained(Direction::Read, word.load());
    assert!(word.load().is_ready(Direction::Read));
}

#[test]
fn would_block_clears_even_after_a_hang_up() {
    let word = Readiness::new();
    word.edge(Edge::ALL.hung_up(true));
    let seen = word.load();
    assert_eq!(word.blocked(Direction::Read, seen), Clearing::Cleared);
    assert!(!word.load().is_ready(Direction::Read));
}

#[test]
fn an_edge_wakes_the_directions_that_it_names() {
    assert!(read_edge().wakes(Direction::Read));
    assert!(!read_edge().wakes(Direction::Write));
    assert!(!Edge::new().hung_up(true).wakes(Direction::Read));
}

#[test]
fn debug_decodes_the_word() {
    let word = Readiness::new();
    word.edge(read_edge().hung_up(true));
    let text = format!("{:?}", word.load());
    assert!(text.contains("hung_up: true") && text.contains("tick: 1"), "{text}");
}

/// A kernel of one counter: the reactor's thread adds a byte and raises an edge, the reader takes what is there.
/// Were an edge lost, the reader would wait for ever.
#[test]
fn no_edge_is_lost_between_two_threads() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const BYTES: u64 = 200_000;
    let shared = Arc::new((Readiness::new(), AtomicU64::new(0)));
    let kernel = std::thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            for _ in 0..BYTES {
                shared.1.fetch_add(1, Ordering::SeqCst);
                shared.0.edge(read_edge());
            }
        }
    });
    let (word, bytes) = &*shared;
    let mut taken = 0;
    while taken < BYTES {
        let seen = word.load();
        if !seen.is_ready(Direction::Read) {
            std::thread::yield_now();
            continue;
        }
        match bytes.swap(0, Ordering::SeqCst) {
            0 => drop(word.blocked(Direction::Read, seen)),
            some => {
                taken += some;
                word.drained(Direction::Read, seen);
            }
        }
    }
    kernel.join().unwrap();
}
