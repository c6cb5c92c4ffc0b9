//! The resident memory of a sleeping task. Each answer has a process of its own, in which nothing was
//! allocated before.

pub(super) mod question;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use super::entrant::{Entrant, always};
use super::question::{Answer, Measure};
use crate::process::Usage;

/// Beyond the end of the process.
pub(super) const FAR: Duration = Duration::from_secs(3600);

/// How long the tasks that were the last to begin have to fall asleep.
pub(super) const MOMENT: Duration = Duration::from_millis(50);

use super::worlds::{fibra, may, smol, threads, tokio};
use question::Question;

pub(super) const ENTRANTS: [Entrant<Question>; 8] = [
    Entrant::ours("fibra", fibra::start_staying, always),
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

/// Measures what is resident when so many tasks sleep, beyond what was before.
pub(super) fn measure(tasks: u64, fall_asleep: impl FnOnce(Arc<AtomicU64>)) -> Answer {
    // The first threads and whatever else there is but once.
    thread::sleep(MOMENT);
    let before = resident();
    fall_asleep(Arc::new(AtomicU64::new(0)));
    let bytes = resident().saturating_sub(before) as f64 / tasks as f64;
    Answer { elapsed: Duration::ZERO, figures: vec![(Measure::Memory, bytes)], is_timed: false }
}

fn resident() -> u64 {
    Usage::of(std::process::id()).expect("the system tells").resident
}
