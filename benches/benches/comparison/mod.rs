//! How the same questions are asked of fibra and of those whom its users would take instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `standing.rs` | the table at the end: every median, and where fibra stands |

mod standing;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};

use standing::Standing;

/// One kind of operation that is asked about.
pub(crate) trait Question: Copy + 'static {
    /// All that are asked with so many workers, in the order of the table.
    fn all(workers: usize) -> &'static [Self];

    fn name(self) -> &'static str;

    /// What fibra means to reach, if it means to reach anything.
    fn target(self, workers: usize) -> Option<Target>;

    /// How long each answer is measured.
    fn measured(self) -> Duration {
        Duration::from_secs(1)
    }
}

/// At most `ratio` times the best of the others whose names begin with `of`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Target {
    pub(crate) ratio: f64,
    pub(crate) of: &'static str,
}

/// A library that was started with some number of workers.
pub(crate) trait Rival<Q> {
    /// Does `operations` of the kind that `question` asks about.
    fn answer(&self, question: Q, operations: u64) -> Answer;
}

/// How long it took and, where many tasks wanted the same thing, what the luckiest of them got in proportion to the
/// unluckiest, if they were asked often enough to tell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Answer {
    pub(crate) elapsed: Duration,
    pub(crate) spread: Option<f64>,
}

impl From<Duration> for Answer {
    fn from(elapsed: Duration) -> Self {
        Answer { elapsed, spread: None }
    }
}

/// A library before its start.
pub(crate) struct Entrant<Q: 'static> {
    pub(crate) name: &'static str,
    /// False for fibra itself, and for what the machine itself does.
    pub(crate) is_rival: bool,
    pub(crate) start: fn(workers: usize) -> Box<dyn Rival<Q>>,
    pub(crate) enters: fn(Q, workers: usize) -> bool,
}

/// Asks every question of every entrant, and prints where fibra stands.
pub(crate) fn compare<Q: Question>(entrants: &[Entrant<Q>], workers: usize) {
    let output = output_directory();
    let mut standing = Standing::new(&output, workers, SystemTime::now());
    let mut criterion = Criterion::default()
        .output_directory(&output)
        .warm_up_time(Duration::from_millis(300))
        .sample_size(15)
        .nresamples(5_000)
        .configure_from_args();
    for &question in Q::all(workers) {
        let mut group = criterion.benchmark_group(group(question, workers));
        group.throughput(Throughput::Elements(1)).sampling_mode(SamplingMode::Flat);
        group.measurement_time(question.measured());
        let entering = entrants.iter().filter(|entrant| (entrant.enters)(question, workers));
        entering.for_each(|entrant| ask(&mut group, question, entrant, &mut standing));
        group.finish();
    }
    criterion.final_summary();
    standing.print(Q::all(workers), entrants);
}

fn ask<Q: Question>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    question: Q,
    entrant: &Entrant<Q>,
    standing: &mut Standing<'_>,
) {
    let workers = standing.workers;
    let spreads = standing.spreads(question, entrant.name);
    // Started by the first sample, so not at all where a filter leaves it out; ended after the last.
    let mut rival = None;
    group.bench_function(entrant.name, |bencher| {
        let rival = rival.get_or_insert_with(|| (entrant.start)(workers));
        bencher.iter_custom(|operations| {
            let answer = rival.answer(question, operations);
            spreads.extend(answer.spread);
            answer.elapsed
        });
    });
}

/// The name of a question's group of measurements.
fn group(question: impl Question, workers: usize) -> String {
    let s = if workers == 1 { "" } else { "s" };
    format!("{workers} worker{s}/{}", question.name())
}

fn output_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion")
}
