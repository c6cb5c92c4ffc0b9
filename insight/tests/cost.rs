//! What a dump of many sleepers costs. Run it in release: `cargo test --release -p fibra-insight --test cost -- --ignored
//! --nocapture`.

mod common;

use std::time::{Duration, Instant};

use common::{deep, until_asleep};
use fibra_runtime::{self as fibra, Runtime};

const SLEEPERS: usize = 100_000;

#[test]
#[ignore = "a measurement"]
fn a_dump_of_a_hundred_thousand_sleepers() {
    fibra_insight::install();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let handle = runtime.handle();
    let sleep = || _ = deep(4, &mut || fibra::sleep(Duration::from_secs(3600)));
    let sleepers: Vec<_> = (0..SLEEPERS).map(|_| handle.spawn(sleep)).collect();
    sleepers.iter().for_each(|sleeper| until_asleep(sleeper.task()));
    for _ in 0..3 {
        let begin = Instant::now();
        let dump = handle.dump();
        let captured = begin.elapsed();
        let frames: usize = dump.tasks().iter().map(|task| task.addresses().count()).sum();
        let begin = Instant::now();
        let grouped = dump.grouped().to_string().len();
        let to_groups = begin.elapsed();
        let begin = Instant::now();
        let full = dump.to_string().len();
        let to_text = begin.elapsed();
        println!(
            "{} tasks, {frames} frames: captured in {captured:.0?}; {grouped} bytes grouped in {to_groups:.0?}, \
             {full} bytes in full in {to_text:.0?}",
            dump.tasks().len()
        );
    }
}
