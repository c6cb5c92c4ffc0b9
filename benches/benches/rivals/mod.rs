//! The same questions for fibra and for those whom its users would take instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | what is asked, and what fibra means to reach |
//! | `blocking.rs` | the questions for libraries whose tasks block, one generic function each |
//! | `fibra.rs`, `may.rs`, `threads.rs` | such libraries |
//! | `parking_lot.rs` | threads that wait by that crate, which are asked to park alone |
//! | `tokio.rs` | the same questions for tokio, whose tasks wait by `await` |
//! | `standing.rs` | the table at the end |
//!
//! Each answer is timed inside the runtime, by a task of it, so that entering the runtime is no part of any figure.

mod blocking;
mod fibra;
mod may;
mod parking_lot;
mod question;
mod standing;
mod threads;
mod tokio;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use criterion::{Criterion, SamplingMode, Throughput};

use question::Question;

/// A library that was started with some number of workers.
trait Rival {
    /// How long `operations` of the kind that `question` asks about took.
    fn answer(&self, question: Question, operations: u64) -> Duration;
}

/// A library before its start.
struct Entrant {
    name: &'static str,
    start: fn(workers: usize) -> Box<dyn Rival>,
    enters: fn(Question, workers: usize) -> bool,
}

const ENTRANTS: [Entrant; 7] = [
    Entrant { name: "fibra", start: fibra::start_at_home, enters: always },
    Entrant { name: "fibra migratable", start: fibra::start_migratable, enters: always },
    Entrant { name: "may", start: may::start, enters: where_it_ends },
    Entrant { name: "tokio current", start: tokio::start_current, enters: on_one_worker },
    Entrant { name: "tokio multi", start: tokio::start_multi, enters: always },
    Entrant { name: "std threads", start: threads::start, enters: without_yields },
    Entrant { name: "parking_lot", start: parking_lot::start, enters: to_park },
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
    let output = output_directory();
    let begin = SystemTime::now();
    let mut criterion = Criterion::default()
        .output_directory(&output)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(15)
        .nresamples(5_000)
        .configure_from_args();
    for question in Question::ALL {
        ask(&mut criterion, question, workers);
    }
    criterion.final_summary();
    standing::print(&output, workers, begin);
}

fn ask(criterion: &mut Criterion, question: Question, workers: usize) {
    let mut group = criterion.benchmark_group(question.group(workers));
    group.throughput(Throughput::Elements(1)).sampling_mode(SamplingMode::Flat);
    for entrant in ENTRANTS.iter().filter(|entrant| (entrant.enters)(question, workers)) {
        // Started by the first sample, so not at all where a filter leaves it out; ended after the last.
        let mut rival = None;
        group.bench_function(entrant.name, |bencher| {
            let rival = rival.get_or_insert_with(|| (entrant.start)(workers));
            bencher.iter_custom(|operations| rival.answer(question, operations));
        });
    }
    group.finish();
}

fn output_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion")
}
