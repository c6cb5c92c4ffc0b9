//! Dumps beside tasks that switch, end, start and are stolen all the time.

mod common;

use std::env;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{deep, deep_calls};
use fibra_runtime::task::{self, TaskState};
use fibra_runtime::{self as fibra, Handle, Runtime};
use fibra_sync::Mutex;
use fibra_sync::channel::{self, Receiver, Sender};

/// How long a storm lasts in seconds, which `ci/stress.sh` sets, and on how many workers.
const SECONDS: &str = "FIBRA_STORM_SECONDS";
const WORKERS: &str = "FIBRA_STORM_WORKERS";

const TASKS: usize = 64;

/// What the tasks of a storm share.
struct Storm {
    over: AtomicBool,
    lock: Mutex<usize>,
    messages: (Sender<usize>, Receiver<usize>),
}

/// Returns the number in a variable of the environment.
fn given<T: FromStr>(variable: &str) -> Option<T> {
    env::var(variable).ok().map(|value| value.parse().ok().expect("a number"))
}

/// Runs a storm on so many workers, and shows `see` a dump after the other.
fn storm(workers: usize, mut see: impl FnMut(&task::Dump)) {
    let time = given(SECONDS).map_or(Duration::from_millis(300), Duration::from_secs);
    fibra_insight::install();
    let runtime = Runtime::builder().workers(workers).build().expect("a runtime");
    let storm = Storm { over: false.into(), lock: Mutex::new(0), messages: channel::bounded(8) };
    let storm = Arc::new(storm);
    let handle = runtime.handle();
    let tasks: Vec<_> = (0..TASKS).map(|number| spawn(&handle, &storm, number)).collect();
    let begin = Instant::now();
    while begin.elapsed() < time {
        see(&handle.dump());
    }
    storm.over.store(true, Ordering::Relaxed);
    tasks.into_iter().for_each(|task| task.join().expect("it ends"));
}

/// Spawns a task whose name tells how many calls of `deep` are on its stack whenever it sleeps.
fn spawn(handle: &Handle, storm: &Arc<Storm>, number: usize) -> fibra::JoinHandle<()> {
    let (calls, storm) = (number % 13, Arc::clone(storm));
    let named = |calls: usize| task::Builder::new().name(format!("{}", calls + 1));
    let builder = named(calls);
    let run = move || {
        while !storm.over.load(Ordering::Relaxed) {
            deep(calls, &mut || match number % 7 {
                0 => fibra::sleep(Duration::from_micros(50)),
                1 => {
                    let mut value = storm.lock.lock();
                    *value += 1;
                    fibra::yield_now();
                }
                2 => _ = storm.messages.0.send_timeout(number, Duration::from_micros(100)),
                3 => _ = storm.messages.1.recv_timeout(Duration::from_micros(100)),
                4 => {
                    let calls = number % 5;
                    let child = named(calls).spawn(move || _ = deep(calls, &mut fibra::yield_now));
                    child.join().expect("it ends");
                }
                5 => _ = fibra::timeout(Duration::from_micros(30), || fibra::sleep(Duration::from_secs(1))),
                _ => task::on_big_stack(1 << 18, || fibra::sleep(Duration::from_micros(20))),
            });
        }
    };
    match number % 3 {
        // SAFETY: what the task keeps over a switch is tied to no thread.
        0 => unsafe { builder.migratable() }.spawn_on(handle, run),
        _ => builder.spawn_on(handle, run),
    }
}

#[test]
fn dumps_under_a_storm_of_switches_never_crash() {
    for workers in given(WORKERS).map_or(vec![1, 2, 4], |workers| vec![workers]) {
        let mut dumps = 0;
        storm(workers, |dump| {
            dumps += 1;
            assert!(dump.to_string().contains("task"));
        });
        assert!(dumps > 0);
    }
}

/// A wrong address would break off the walk, or lead to other functions than are on the stack.
#[test]
fn every_frame_of_a_storm_is_a_real_return_address() {
    let seen = AtomicUsize::new(0);
    storm(given(WORKERS).unwrap_or(2), |dump| {
        for found in dump.tasks().iter().filter(|found| found.state() == TaskState::Suspended) {
            let Some(stack) = found.backtrace() else { continue };
            assert!(stack.is_complete(), "{found}\n{stack:#}");
            let expected: usize = found.task().name().and_then(|name| name.parse().ok()).expect("a number");
            // A task that starts or ends sleeps nowhere else.
            assert_eq!(deep_calls(&stack), expected, "{found}\n{stack:#}");
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(seen.into_inner() > 0, "no stack was seen");
}
