//! fibra's primitives, and those whom its users would take instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `crowd.rs` | the questions about what many tasks want, one generic function each |
//! | `pairs.rs` | the questions about what passes between two tasks, or from some to one |
//! | `spread.rs` | the questions about what one task sends and many receive |
//! | `meeting.rs` | the question about many tasks that meet |
//! | `waking.rs` | the questions about many tasks that wait for one |
//! | `alone.rs` | the question about what a task does with a primitive of its own |
//! | `library.rs` | what a library offers to be asked about, and where pairs of tasks run |
//! | `started.rs` | where operations that block run: tasks, coroutines, threads |
//! | `fibra.rs`, `may.rs`, `standard.rs`, `parking_lot.rs`, `channels.rs` | such operations |
//! | `awaiting/` | the same questions for tasks that wait by `await` |
//! | `cache_lines.rs` | what the machine itself needs |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any figure.

mod alone;
mod awaiting;
mod cache_lines;
mod channels;
mod crowd;
mod fibra;
mod library;
mod may;
mod meeting;
mod pairs;
mod parking_lot;
mod question;
mod spread;
mod standard;
mod started;
mod waking;

use super::entrant::{Contest, Entrant};

use channels::{Crossbeam, Flume};
use fibra::Fibra;
use parking_lot::ParkingLot;
use question::Question;
use standard::Standard;
use started::Among;

const ENTRANTS: [Entrant<Question>; 14] = [
    Entrant::ours("fibra", started::start_at_home, started::at_home_enters),
    Entrant::ours("fibra migr.", started::start_migratable, started::migratable_enters),
    Entrant::ours("fibra writer first", started::start_writer_first, started::writer_first_enters),
    Entrant::theirs("may", started::start_may, started::may_enters),
    Entrant::theirs("tokio current", awaiting::start_tokio_current, awaiting::tokio_current_enters),
    Entrant::theirs("tokio multi", awaiting::start_tokio_multi, awaiting::tokio_multi_enters),
    Entrant::theirs("flume tokio", awaiting::start_flume, awaiting::flume_enters),
    Entrant::theirs("smol", awaiting::start_smol, awaiting::smol_enters),
    Entrant::ours("fibra threads", Among::<Fibra>::start, Among::<Fibra>::enters),
    Entrant::theirs("crossbeam", Among::<Crossbeam>::start, Among::<Crossbeam>::enters),
    Entrant::theirs("flume", Among::<Flume>::start, Among::<Flume>::enters),
    Entrant::theirs("parking_lot", Among::<ParkingLot>::start, Among::<ParkingLot>::enters),
    Entrant::theirs("std", Among::<Standard>::start, Among::<Standard>::enters),
    Entrant::floor("cache lines", cache_lines::start, cache_lines::enters),
];

/// All questions with so many workers.
pub(super) fn contests(workers: usize) -> Vec<Contest> {
    Contest::all(&ENTRANTS, workers)
}
