//! What dumps and profiles of many sleepers cost, and what a recorder. Run it in release: `cargo test --release -p fibra-insight --test cost -- --ignored
//! --nocapture`.

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{deep, until_asleep};
use fibra_insight::FlightRecorder;
use fibra_runtime::{self as fibra, Runtime};
use fibra_sync::AutoResetEvent;

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

/// How long the calling thread has had a processor.
fn used() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("its file");
    Duration::from_nanos(stat.split(' ').next().and_then(|used| used.parse().ok()).expect("a number"))
}

#[test]
#[ignore = "a measurement"]
fn a_profile_of_ten_thousand_sleepers() {
    for (what, nap) in [("in one sleep", None), ("that wake at 20 Hz", Some(Duration::from_millis(50)))] {
        let runtime = Runtime::builder().workers(1).build().expect("a runtime");
        let handle = runtime.handle();
        let sleep = move || match nap {
            None => fibra::sleep(Duration::from_secs(3600)),
            Some(nap) => loop {
                fibra::sleep(nap);
            },
        };
        let sleepers: Vec<_> =
            (0..10_000).map(|_| handle.spawn(move || _ = deep(4, &mut || sleep()))).collect();
        sleepers.iter().for_each(|sleeper| until_asleep(sleeper.task()));
        for rate in [19, 1000] {
            let (begin, before) = (Instant::now(), used());
            _ = fibra_insight::Profiler::new().rate(rate).run(&handle, Duration::from_secs(5));
            let (took, used) = (begin.elapsed(), used() - before);
            println!(
                "10,000 tasks {what}, {rate} looks a second: {used:.1?} of the processor in {took:.1?}, {:.1} %",
                100.0 * used.as_secs_f64() / took.as_secs_f64()
            );
        }
    }
}

/// How many switches one measurement takes.
const SWITCHES: u32 = 1 << 20;

/// Returns what a switch takes of two tasks that yield to each other.
fn yields() -> Duration {
    time_of_two(|_, _| fibra::yield_now())
}

/// Returns what a switch takes of two tasks that wake each other.
fn wakes() -> Duration {
    time_of_two(|own, other| {
        other.set();
        own.wait();
    })
}

fn time_of_two(step: fn(&AutoResetEvent, &AutoResetEvent)) -> Duration {
    let events = [AutoResetEvent::new(false), AutoResetEvent::new(false)];
    let [one, two] = &events;
    let steps = |own, other: &AutoResetEvent| {
        (0..SWITCHES / 2).for_each(|_| step(own, other));
        other.set();
    };
    let begin = Instant::now();
    fibra::join(|| steps(one, two), || steps(two, one));
    begin.elapsed() / SWITCHES
}

#[test]
#[ignore = "a measurement"]
fn a_recorded_switch() {
    let runtime = Runtime::builder().workers(1).stall_limit(Duration::MAX).build().expect("a runtime");
    let measure = || runtime.run(|| [yields(), wakes()]);
    for _ in 0..5 {
        let without = measure();
        let recorder = FlightRecorder::start(&runtime.handle()).expect("a recorder");
        let with = measure();
        drop(recorder);
        println!("a switch by yields, and by wakes: {without:?} without a recorder, {with:?} with one");
    }
}
