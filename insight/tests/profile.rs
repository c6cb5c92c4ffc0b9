//! What profiles tell.

mod common;

use std::collections::HashMap;
use std::hint;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use common::{deep, until_asleep};
use fibra_insight::{Profile, Profiler, profile};
use fibra_runtime::task::{Builder, TaskState};
use fibra_runtime::{self as fibra, Runtime};
use fibra_sync::Mutex;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(200);

fn runtime() -> Runtime {
    Runtime::builder().workers(1).build().expect("a runtime")
}

/// Returns the folded stack that begins with that task, with its weight.
fn line(profile: &Profile, task: &str) -> (String, Duration) {
    let folded = profile.to_folded();
    let mut lines = folded.lines().filter(|line| line.starts_with(&format!("{task};")));
    let (stack, weight) = lines.next().and_then(|line| line.rsplit_once(' ')).expect(&folded);
    assert_eq!(lines.next(), None, "{folded}");
    (stack.into(), Duration::from_micros(weight.parse().expect("a number")))
}

#[test]
fn a_profile_tells_where_sleepers_wait() {
    let runtime = runtime();
    let handle = runtime.handle();
    let lock = Arc::new(Mutex::new(()));
    let held = lock.lock();
    let theirs = Arc::clone(&lock);
    let tasks = [
        Builder::new().name("waiter; of a lock").spawn_on(&handle, move || {
            deep(2, &mut || drop(theirs.lock()));
        }),
        Builder::new().name("sleeper").spawn_on(&handle, || {
            deep(3, &mut || fibra::sleep(LONG));
        }),
    ];
    tasks.iter().for_each(|task| until_asleep(task.task()));
    let found = profile(&handle, SHORT);

    for (name, calls, wait) in [("waiter: of a lock", 3, "mutex"), ("sleeper", 4, "sleep")] {
        let (stack, time) = line(&found, name);
        assert_eq!(stack.matches("common::deep;").count(), calls, "{stack}");
        assert!(stack.ends_with(&format!(";[suspended: {wait}]")), "{stack}");
        // A library's function comes once: the public call that waits.
        let of_library = stack.split(';').filter(|function| function.contains("fibra_")).count();
        assert!(!stack.contains("catch_unwind") && of_library <= 1, "{stack}");
        assert!(time >= SHORT - Duration::from_micros(1), "{time:?}");
    }
    assert!(found.time(TaskState::Suspended) >= 2 * SHORT);
    drop(held);
}

#[test]
fn a_profile_of_running_tasks_shows_what_computes() {
    let runtime = runtime();
    let handle = runtime.handle();
    let parked = handle.spawn(fibra::task::park);
    until_asleep(parked.task());
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let (begun, has_begun) = mpsc::channel();
    let computing = Builder::new().name("computing").spawn_on(&handle, move || {
        begun.send(()).unwrap();
        deep(2, &mut || {
            while !theirs.load(Ordering::Relaxed) {
                hint::spin_loop();
            }
        });
    });
    has_begun.recv().unwrap();
    let found = Profiler::new().rate(50).state(TaskState::Running).run(&handle, SHORT);
    stop.store(true, Ordering::Relaxed);
    computing.join().unwrap();

    assert!(found.to_folded().contains("common::deep;"), "{}", found.to_folded());
    assert!(found.to_folded().lines().all(|line| line.starts_with("computing;")), "{}", found.to_folded());
    assert_eq!(found.time(TaskState::Suspended), Duration::ZERO);
    assert!(found.time(TaskState::Running) >= SHORT);
}

#[test]
fn a_profile_shows_ready_tasks_and_closures_on_the_pool() {
    let runtime = runtime();
    let handle = runtime.handle();
    let (end, is_over) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let blocking = Builder::new().name("blocking").spawn_blocking_on(&handle, move || {
        begun.send(()).unwrap();
        _ = is_over.recv();
    });
    has_begun.recv().unwrap();
    // Asleep, then woken while another task has the worker.
    let ready = Builder::new().name("ready").spawn_on(&handle, fibra::task::park);
    until_asleep(ready.task());
    let stop = Arc::new(AtomicBool::new(false));
    let (theirs, woken) = (Arc::clone(&stop), ready.task().clone());
    let (begun, has_begun) = mpsc::channel();
    let computing = handle.spawn(move || {
        woken.unpark();
        begun.send(()).unwrap();
        while !theirs.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    });
    has_begun.recv().unwrap();
    let found = profile(&handle, SHORT);
    stop.store(true, Ordering::Relaxed);
    drop(end);
    computing.join().unwrap();
    ready.join().unwrap();
    blocking.join().unwrap();

    assert_eq!(line(&found, "ready").0, "ready;[ready]");
    let (stack, _) = line(&found, "blocking");
    assert!(stack.ends_with(";[blocking]") && stack.contains("recv"), "{stack}");
}

#[test]
fn a_look_walks_a_thousand_sleepers_and_counts_all() {
    let runtime = runtime();
    let handle = runtime.handle();
    let sleepers: Vec<_> = (0..1500).map(|_| handle.spawn(|| fibra::sleep(LONG))).collect();
    sleepers.iter().for_each(|sleeper| until_asleep(sleeper.task()));
    let begin = Instant::now();
    let one_look = profile(&handle, Duration::from_millis(1));
    let time = begin.elapsed();
    let folded = one_look.to_folded();
    let weight = |end: &str| {
        let lines =
            folded.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(stack, _)| stack.ends_with(end));
        lines.map(|(_, weight)| weight.parse::<u64>().unwrap()).sum::<u64>()
    };
    // Lines are cut to whole microseconds.
    assert!(weight("[suspended: sleep]").abs_diff(2 * weight("[suspended]")) <= 2, "{folded}");
    let all = one_look.time(TaskState::Suspended);
    assert!(all >= 1500 * Duration::from_millis(1) && all <= 1500 * time, "{all:?}");

    // Each sleep is walked once. After two looks all stacks are known, and the time of the first look is theirs.
    let folded = Profiler::new().rate(1000).run(&handle, Duration::from_secs(2)).to_folded();
    assert!(!folded.contains("[suspended] "), "{folded}");
}

/// The fields of a protobuf message: their numbers, with numbers or bytes.
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Reads a message as the documentation of protobuf says.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let len = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(len);
                bytes = rest;
                Field::Bytes(value.to_vec())
            }
            kind => panic!("field {} of kind {kind}", key >> 3),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
    let (number, rest) = bytes.split_at(len);
    *bytes = rest;
    number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// The bytes of all fields of that number.
fn all(fields: &[(u64, Field)], wanted: u64) -> Vec<&[u8]> {
    let bytes = fields.iter().map(|(number, field)| match field {
        Field::Bytes(bytes) if *number == wanted => Some(bytes.as_slice()),
        _ => None,
    });
    bytes.flatten().collect()
}

fn number(fields: &[(u64, Field)], wanted: u64) -> u64 {
    let numbers = fields.iter().map(|(number, field)| match field {
        Field::Number(value) if *number == wanted => Some(*value),
        _ => None,
    });
    numbers.flatten().next().unwrap_or(0)
}

fn packed(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes));
    }
    numbers
}

#[test]
fn a_profile_is_a_valid_pprof() {
    let runtime = runtime();
    let handle = runtime.handle();
    let sleeper = Builder::new().name("sleeper").spawn_on(&handle, || {
        deep(3, &mut || fibra::sleep(LONG));
    });
    until_asleep(sleeper.task());
    let pprof = profile(&handle, SHORT).to_pprof();

    let profile = fields(&pprof);
    let strings: Vec<_> =
        all(&profile, 6).into_iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
    let string = |fields: &[(u64, Field)], wanted| strings[number(fields, wanted) as usize];
    assert_eq!(strings[0], "");
    let types: Vec<_> = all(&profile, 1).into_iter().map(fields).collect();
    let types: Vec<_> = types.iter().map(|it| (string(it, 1), string(it, 2))).collect();
    assert_eq!(types, [("wall", "nanoseconds")]);
    let period_type = fields(all(&profile, 11)[0]);
    assert_eq!((string(&period_type, 1), string(&period_type, 2)), types[0]);
    assert_eq!(number(&profile, 12), 1_000_000_000 / 19);
    assert!(number(&profile, 9) > 1_600_000_000_000_000_000);
    let duration = number(&profile, 10);
    assert!(duration >= SHORT.as_nanos() as u64);

    let program = fields(all(&profile, 3)[0]);
    assert_eq!(Path::new(string(&program, 5)), std::env::current_exe().expect("the path of the test binary"));

    let functions: HashMap<_, _> = all(&profile, 5)
        .into_iter()
        .map(|function| {
            let function = fields(function);
            assert!(all(&function, 3).is_empty(), "pprof takes it for a name of C++");
            (number(&function, 1), string(&function, 2))
        })
        .collect();
    let locations: HashMap<_, _> = all(&profile, 4)
        .into_iter()
        .map(|location| {
            let location = fields(location);
            assert_eq!(number(&location, 2), number(&program, 1));
            let line = fields(all(&location, 4)[0]);
            (number(&location, 1), functions[&number(&line, 1)])
        })
        .collect();
    assert!(!functions.contains_key(&0) && !locations.contains_key(&0));

    let samples = all(&profile, 2);
    let [sample] = samples.as_slice() else { panic!("{} samples", samples.len()) };
    let sample = fields(sample);
    assert_eq!(packed(all(&sample, 2)[0]), [duration]);
    let stack: Vec<_> = packed(all(&sample, 1)[0]).iter().map(|location| locations[location]).collect();
    assert_eq!(stack.iter().filter(|name| name.contains("common::deep")).count(), 4, "{stack:?}");
    assert_eq!(stack.last(), Some(&"sleeper"));
    let labels: Vec<_> = all(&sample, 3).into_iter().map(fields).collect();
    let labels: Vec<_> = labels.iter().map(|label| (string(label, 1), string(label, 2))).collect();
    assert_eq!(labels, [("task", "sleeper"), ("state", "suspended"), ("waits_for", "sleep")]);
}
