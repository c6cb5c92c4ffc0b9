//! The same questions about fibra's primitives and about those whom its users would take instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `crowd.rs` | the questions about what many tasks want, one generic function each |
//! | `pairs.rs` | the questions about what passes between two tasks, or from some to one |
//! | `tasks.rs` | what such a function needs to know of the tasks that it runs in |
//! | `fibra.rs`, `may.rs` | tasks that block, and their primitives |
//! | `threads.rs` | threads, in which primitives of others wait |
//! | `standard.rs`, `parking_lot.rs`, `channels.rs` | those others |
//! | `tokio.rs`, `flume_in_tokio.rs` | the same questions for tasks that wait by `await` |
//! | `cache_lines.rs` | what the machine itself needs |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any figure.

mod cache_lines;
mod channels;
mod crowd;
mod fibra;
mod flume_in_tokio;
mod may;
mod pairs;
mod parking_lot;
mod question;
mod standard;
mod tasks;
mod threads;
mod tokio;

use crate::comparison::{self, Entrant};

use channels::{Crossbeam, Flume};
use fibra::Fibra;
use parking_lot::ParkingLot;
use question::Question;
use standard::Standard;

const ENTRANTS: [Entrant<Question>; 11] = [
    Entrant { name: "fibra", is_rival: false, start: fibra::start, enters: fibra::enters },
    Entrant {
        name: "fibra, threads",
        is_rival: false,
        start: threads::start::<Fibra>,
        enters: threads::enters::<Fibra>,
    },
    Entrant { name: "may", is_rival: true, start: may::start, enters: may::enters },
    Entrant { name: "tokio", is_rival: true, start: tokio::start_current, enters: tokio::current_enters },
    Entrant { name: "tokio multi", is_rival: true, start: tokio::start_multi, enters: tokio::multi_enters },
    Entrant {
        name: "flume, tokio",
        is_rival: true,
        start: flume_in_tokio::start,
        enters: flume_in_tokio::enters,
    },
    Entrant {
        name: "crossbeam",
        is_rival: true,
        start: threads::start::<Crossbeam>,
        enters: threads::enters::<Crossbeam>,
    },
    Entrant {
        name: "flume",
        is_rival: true,
        start: threads::start::<Flume>,
        enters: threads::enters::<Flume>,
    },
    Entrant {
        name: "parking_lot",
        is_rival: true,
        start: threads::start::<ParkingLot>,
        enters: threads::enters::<ParkingLot>,
    },
    Entrant {
        name: "std",
        is_rival: true,
        start: threads::start::<Standard>,
        enters: threads::enters::<Standard>,
    },
    Entrant { name: "cache lines", is_rival: false, start: cache_lines::start, enters: cache_lines::enters },
];

/// Asks every question of every entrant, and prints where fibra stands.
pub(crate) fn compare(workers: usize) {
    comparison::compare(&ENTRANTS, workers);
}
