//! The questions of `compare` that are about time, in a criterion run.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use fibra_bench::compare::{Contest, contests};

/// Asks every question of all its entrants.
pub(crate) fn run(workers: usize) {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
    let mut criterion = Criterion::default()
        .output_directory(&output)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(15)
        .nresamples(5_000)
        .configure_from_args();
    contests(workers)
        .iter()
        .filter(|contest| contest.is_about_time())
        .for_each(|contest| ask(contest, &mut criterion));
    criterion.final_summary();
}

fn ask(contest: &Contest, criterion: &mut Criterion) {
    let s = if contest.workers == 1 { "" } else { "s" };
    let mut group = criterion.benchmark_group(format!("{} worker{s}/{}", contest.workers, contest.title()));
    group.throughput(Throughput::Elements(1)).sampling_mode(SamplingMode::Flat);
    for entrant in &contest.entrants {
        // Started by the first sample, so not at all where a filter leaves it out; ended after the last.
        let mut started = None;
        group.bench_function(entrant.name, |bencher| {
            let started = started.get_or_insert_with(|| entrant.start());
            bencher.iter_custom(|operations| started(operations).elapsed);
        });
    }
    group.finish();
}
