//! fibra's primitives, and those whom its users would take instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `crowd.rs` | the questions about what many tasks want, one generic function each |
//! | `pairs.rs` | the questions about what passes between two tasks, or from some to one |
//! | `library.rs` | what a library offers to be asked about, and where pairs of tasks run |
//! | `started.rs` | where operations that block run: tasks, coroutines, threads |
//! | `fibra.rs`, `may.rs`, `standard.rs`, `parking_lot.rs`, `channels.rs` | such operations |
//! | `awaiting/` | the same questions for tasks that wait by `await` |
//! | `cache_lines.rs` | what the machine itself needs |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any figure.

mod awaiting;
mod cache_lines;
mod channels;
mod crowd;
mod fibra;
mod library;
mod may;
mod pairs;
mod parking_lot;
mod question;
mod standard;
mod started;

use super::entrant::{Contest, Entrant, Kind};

use channels::{Crossbeam, Flume};
use fibra::Fibra;
use parking_lot::ParkingLot;
use question::Question;
use standard::Standard;
use started::Among;

const ENTRANTS: [Entrant<Question>; 13] = [
    Entrant {
        name: "fibra",
        kind: Kind::Ours,
        start: started::start_at_home,
        enters: started::at_home_enters,
    },
    Entrant {
        name: "fibra migr.",
        kind: Kind::Ours,
        start: started::start_migratable,
        enters: started::migratable_enters,
    },
    Entrant { name: "may", kind: Kind::Theirs, start: started::start_may, enters: started::may_enters },
    Entrant {
        name: "tokio current",
        kind: Kind::Theirs,
        start: awaiting::start_tokio_current,
        enters: awaiting::tokio_current_enters,
    },
    Entrant {
        name: "tokio multi",
        kind: Kind::Theirs,
        start: awaiting::start_tokio_multi,
        enters: awaiting::tokio_multi_enters,
    },
    Entrant {
        name: "flume tokio",
        kind: Kind::Theirs,
        start: awaiting::start_flume,
        enters: awaiting::flume_enters,
    },
    Entrant { name: "smol", kind: Kind::Theirs, start: awaiting::start_smol, enters: awaiting::smol_enters },
    Entrant {
        name: "fibra threads",
        kind: Kind::Ours,
        start: Among::<Fibra>::start,
        enters: Among::<Fibra>::enters,
    },
    Entrant {
        name: "crossbeam",
        kind: Kind::Theirs,
        start: Among::<Crossbeam>::start,
        enters: Among::<Crossbeam>::enters,
    },
    Entrant {
        name: "flume",
        kind: Kind::Theirs,
        start: Among::<Flume>::start,
        enters: Among::<Flume>::enters,
    },
    Entrant {
        name: "parking_lot",
        kind: Kind::Theirs,
        start: Among::<ParkingLot>::start,
        enters: Among::<ParkingLot>::enters,
    },
    Entrant {
        name: "std",
        kind: Kind::Theirs,
        start: Among::<Standard>::start,
        enters: Among::<Standard>::enters,
    },
    Entrant {
        name: "cache lines",
        kind: Kind::Floor,
        start: cache_lines::start,
        enters: cache_lines::enters,
    },
];

/// All questions with so many workers.
pub(super) fn contests(workers: usize) -> Vec<Contest> {
    Contest::all(&ENTRANTS, workers)
}
