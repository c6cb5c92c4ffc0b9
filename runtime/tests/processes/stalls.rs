//! Promises of the watch over tasks that hold their workers.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::{self as fibra, Builder, Handle, Runtime, task};

const WORKERS: [usize; 3] = [1, 2, 4];

/// Runs `test` for each number of workers, at once: it sleeps for most of its time.
fn on_workers(test: impl Fn(usize) + Sync) {
    let _guard = hang_guard();
    let test = &test;
    thread::scope(|threads| WORKERS.map(|workers| _ = threads.spawn(move || test(workers))));
}

/// Long against what a busy machine takes from a worker now and then.
const LIMIT: Duration = Duration::from_millis(200);

type Seen = Arc<Mutex<Vec<(u64, usize, Duration)>>>;

fn watched(workers: usize) -> (Builder, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let hook = move |stall: &fibra::Stall| {
        log.lock().unwrap().push((stall.task().id(), stall.worker(), stall.held()));
    };
    (Runtime::builder().workers(workers).stall_limit(LIMIT).on_stall(hook), seen)
}

/// Keeps the worker until it was told of: on a busy machine the watch may be late.
fn hold_until(told: impl Fn() -> bool) {
    while !told() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// How often a task was told.
fn told(seen: &Seen, id: u64) -> usize {
    seen.lock().unwrap().iter().filter(|stall| stall.0 == id).count()
}

#[test]
fn a_stall_is_told_once_with_its_task_and_worker() {
    on_workers(|workers| {
        let (builder, seen) = watched(workers);
        let runtime = builder.build().unwrap();
        let log = Arc::clone(&seen);
        let (id, (earlier, before)) = runtime.run(|| {
            let task = fibra::spawn(move || {
                fibra::yield_now();
                let (id, before) = (task::current().id(), Handle::current().stalls());
                // The machine itself may have held its worker before.
                let earlier = told(&log, id);
                hold_until(|| told(&log, id) > earlier);
                thread::sleep(LIMIT * 4);
                (earlier, before)
            });
            (task.task().id(), task.join().unwrap())
        });
        let seen: Vec<_> = seen.lock().unwrap().iter().copied().filter(|stall| stall.0 == id).collect();
        let seen = &seen[earlier..];
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert!(seen[0].1 < workers && seen[0].2 > LIMIT, "{seen:?}");
        assert!(runtime.stalls() > before);
        assert_eq!(runtime.handle().stalls(), runtime.stalls());
    });
}

#[test]
fn each_stall_of_a_task_is_told() {
    let _guard = hang_guard();
    let (builder, seen) = watched(1);
    builder.build().unwrap().run(|| {
        let id = task::current().id();
        for stall in 1..=2 {
            hold_until(|| told(&seen, id) >= stall);
            assert_eq!(told(&seen, id), stall);
            fibra::yield_now();
        }
    });
}

#[test]
fn tasks_that_sleep_or_yield_are_not_told_and_an_idle_worker_neither() {
    on_workers(|workers| {
        let (builder, seen) = watched(workers);
        let sleeper = builder.build().unwrap().run(|| {
            let yielding = fibra::spawn(|| {
                let begin = Instant::now();
                while begin.elapsed() < LIMIT * 2 {
                    fibra::yield_now();
                }
            });
            let sleeping = fibra::spawn(|| fibra::sleep(LIMIT * 3));
            let id = sleeping.task().id();
            yielding.join().unwrap();
            sleeping.join().unwrap();
            id
        });
        assert!(seen.lock().unwrap().iter().all(|stall| stall.0 != sleeper));
    });
}

#[test]
fn the_pool_may_block() {
    let _guard = hang_guard();
    let (builder, seen) = watched(1);
    builder.build().unwrap().run(|| {
        let task = fibra::spawn_blocking(|| thread::sleep(LIMIT * 2));
        let id = task.task().id();
        task.join().unwrap();
        assert!(seen.lock().unwrap().iter().all(|stall| stall.0 != id));
    });
}

#[test]
fn a_hook_that_panics_does_not_end_the_watch() {
    let _guard = hang_guard();
    let hook = |_: &fibra::Stall| std::panic::resume_unwind(Box::new("hook"));
    let builder = Runtime::builder().workers(1).stall_limit(Duration::from_millis(20)).on_stall(hook);
    let runtime = builder.build().unwrap();
    runtime.run(|| {
        for stall in 1..=2 {
            hold_until(|| Handle::current().stalls() >= stall);
            fibra::yield_now();
        }
    });
}

#[test]
fn without_a_limit_nothing_is_counted() {
    let _guard = hang_guard();
    let hooked = Runtime::builder().workers(1).on_stall(|_| unreachable!()).build().unwrap();
    for runtime in [hooked, runtime(1)] {
        runtime.run(|| thread::sleep(Duration::from_millis(20)));
        assert_eq!(runtime.stalls(), 0);
    }
}

#[test]
fn a_runtime_does_not_wait_for_its_watch() {
    let _guard = hang_guard();
    // Were it to wait, the guard would tell.
    let hours = Duration::from_secs(100 * 3600);
    for workers in WORKERS {
        drop(Runtime::builder().workers(workers).stall_limit(hours).build().unwrap());
        Runtime::builder().workers(workers).stall_limit(hours).run(|| ()).unwrap();
        let left = Runtime::builder().workers(workers).stall_limit(hours).build().unwrap();
        assert!(left.shutdown_timeout(Duration::from_secs(60)).is_empty());
    }
}

#[test]
fn migratable_tasks_are_told_as_well() {
    let _guard = hang_guard();
    let (builder, seen) = watched(4);
    builder.build().unwrap().run(|| {
        let body = |seen: Seen| {
            (0..100).for_each(|_| fibra::yield_now());
            hold_until(|| told(&seen, task::current().id()) > 0);
        };
        // SAFETY: it keeps nothing that is tied to a thread over the suspensions.
        let builder = || unsafe { task::Builder::new().migratable() };
        let spawn = |seen| builder().spawn(move || body(seen));
        let tasks: Vec<_> = (0..4).map(|_| spawn(Arc::clone(&seen))).collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn the_default_is_one_line() {
    if is_child() {
        return Runtime::builder()
            .workers(1)
            .stall_limit(Duration::from_millis(100))
            .run(|| {
                let hog = || {
                    let before = Handle::current().stalls();
                    hold_until(|| Handle::current().stalls() > before);
                    thread::sleep(Duration::from_millis(500));
                };
                task::Builder::new().name("hog").spawn(hog).join().unwrap();
            })
            .unwrap();
    }
    let _guard = hang_guard();
    let output = rerun("stalls::the_default_is_one_line");
    let text = errors(&output);
    assert!(output.status.success(), "{text}");
    let told = |line: &&str| line.contains("task 'hog' (id ") && line.contains("worker 0");
    assert_eq!(text.lines().filter(told).count(), 1, "{text}");
}

#[test]
#[should_panic(expected = "no time at all")]
fn a_limit_of_nothing_is_refused() {
    _ = Runtime::builder().stall_limit(Duration::ZERO);
}

#[test]
fn debug_builds_watch_unless_told_not_to() {
    if is_child() {
        let hold =
            |builder: Builder| _ = builder.workers(1).run(|| thread::sleep(Duration::from_millis(1600)));
        return thread::scope(|threads| {
            threads.spawn(|| hold(Runtime::builder().stall_limit(Duration::MAX)));
            hold(Runtime::builder());
        });
    }
    let _guard = hang_guard();
    let output = rerun("stalls::debug_builds_watch_unless_told_not_to");
    let told = errors(&output).lines().filter(|line| line.contains("'main'") && line.contains("1s")).count();
    assert!(output.status.success());
    assert_eq!(told, usize::from(cfg!(debug_assertions)), "{}", errors(&output));
}
