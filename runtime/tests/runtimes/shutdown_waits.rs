//! What the end of a runtime waits for, what it says about the rest, and which threads learn of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, Runtime, task};

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_task_that_never_ran_does_not_enter_its_body_at_the_end() {
    let _guard = hang_guard();
    let entered = Arc::new(AtomicBool::new(false));
    let enter = Arc::clone(&entered);
    let handle =
        Runtime::builder().workers(1).run(move || fibra::spawn(move || enter.store(true, Ordering::SeqCst)));
    assert!(handle.unwrap().join().unwrap_err().is_cancelled());
    assert!(!entered.load(Ordering::SeqCst));
}

#[test]
fn joins_from_threads_end_with_the_runtime() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let sleeper = runtime.spawn(|| fibra::sleep(LONG));
    let joiner = thread::spawn(move || sleeper.join());
    thread::sleep(Duration::from_millis(1));
    drop(runtime);
    assert!(joiner.join().unwrap().unwrap_err().is_cancelled());
}

#[test]
fn shutdown_timeout_names_what_is_left_which_then_ends_by_itself() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let release = Arc::new(AtomicBool::new(false));
    let started = Arc::new(AtomicUsize::new(0));
    let spin = || {
        let (release, started) = (Arc::clone(&release), Arc::clone(&started));
        move || {
            started.fetch_add(1, Ordering::SeqCst);
            while !release.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_micros(200));
            }
        }
    };
    let (stubborn, blocking) = (spin(), spin());
    let handles = runtime.run(|| {
        let blocking = task::Builder::new().name("blocking").spawn_blocking(blocking);
        let stubborn = task::Builder::new().name("stubborn").spawn(move || {
            stubborn();
        });
        [stubborn, blocking]
    });
    while started.load(Ordering::SeqCst) < 2 {
        thread::yield_now();
    }
    let begin = Instant::now();
    let left = runtime.shutdown_timeout(Duration::from_millis(30));
    assert!(begin.elapsed() >= Duration::from_millis(30));
    let mut names: Vec<_> = left.iter().map(|task| task.name().unwrap_or_default()).collect();
    names.sort_unstable();
    assert_eq!(names, ["blocking", "stubborn"]);
    release.store(true, Ordering::SeqCst);
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[test]
fn a_shutdown_with_a_time_by_a_task_of_its_own_returns_at_once() {
    let _guard = hang_guard();
    for by_closure in [false, true] {
        let runtime = runtime(2);
        let handle = runtime.handle();
        let shut_down = move || {
            let left = runtime.shutdown_timeout(Duration::MAX);
            left.iter().map(|task| task.name().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        let ender = task::Builder::new().name("ender");
        // The task that sleeps for its closure is not told before that has ended.
        let ender = match by_closure {
            true => ender.spawn_on(&handle, || fibra::unblock(shut_down)),
            false => ender.spawn_on(&handle, shut_down),
        };
        assert_eq!(ender.join().unwrap(), ["ender"]);
    }
    let runtime = runtime(1);
    let handle = runtime.handle();
    let ender = handle.spawn_blocking(move || runtime.shutdown_timeout(Duration::MAX).len());
    assert_eq!(ender.join().unwrap(), 1);
}

#[test]
fn shutdown_waits_for_closures_on_the_pool() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let ended = Arc::new(AtomicBool::new(false));
    let (end, started) = (Arc::clone(&ended), Arc::new(AtomicBool::new(false)));
    let start = Arc::clone(&started);
    runtime.run(|| {
        drop(fibra::spawn_blocking(move || {
            start.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            end.store(true, Ordering::SeqCst);
        }));
        while !started.load(Ordering::SeqCst) {
            fibra::sleep(Duration::from_micros(100));
        }
    });
    runtime.shutdown();
    assert!(ended.load(Ordering::SeqCst));
}

#[test]
fn runtimes_come_and_go() {
    let _guard = hang_guard();
    for round in 0..200 {
        let runtime = runtime(1 + round % 3);
        if round % 2 == 0 {
            assert_eq!(runtime.run(|| fibra::spawn(move || round).join().unwrap()), round);
        }
    }
}
