//! The limit of the end of a runtime: a report of what is left, and an exit.

use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::hang_guard;
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::{self as fibra, Runtime, task};

const LIMIT: Duration = Duration::from_millis(100);

/// Leaves a task of each kind behind that the end does not end.
fn leave_behind() {
    let named = |name: &str| task::Builder::new().name(name);
    let sleeper = named("sleeper").spawn(|| task::shield(task::park));
    let other = sleeper.task().clone();
    let joiner = named("joiner").spawn(|| task::shield(|| sleeper.join())).task().clone();
    static IS_BLOCKED: AtomicBool = AtomicBool::new(false);
    drop(named("blocked").spawn_blocking(|| {
        IS_BLOCKED.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_secs(3600));
    }));
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    drop(fibra::spawn(|| {
        HAS_BEGUN.store(true, Ordering::SeqCst);
        task::shield(|| yield_until(|| IS_OVER.load(Ordering::SeqCst)));
        compute()
    }));
    let waits = |task: &fibra::Task| task.waits_for().is_some();
    yield_until(|| waits(&joiner) && waits(&other));
    yield_until(|| IS_BLOCKED.load(Ordering::SeqCst) && HAS_BEGUN.load(Ordering::SeqCst));
    IS_OVER.store(true, Ordering::SeqCst);
}

fn yield_until(is_over: impl Fn() -> bool) {
    while !is_over() {
        fibra::yield_now();
    }
}

fn compute() {
    loop {
        std::hint::spin_loop();
    }
}

fn check(output: &Output) {
    let text = errors(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let line = |task: &str| {
        let begin = format!("  task {task}");
        let line = text.lines().find(|line| line.starts_with(&begin));
        line.unwrap_or_else(|| panic!("{task} is not in: {text}"))
    };
    assert!(line("'sleeper'").ends_with("waits for park"), "{text}");
    assert!(line("'joiner'").contains("waits for join of task 'sleeper'"));
    assert!(line("'blocked'").ends_with("runs on the blocking pool"));
    let unnamed = line("(id ");
    assert!(unnamed.contains("end_within.rs:") && unnamed.ends_with("computes, or is ready to"), "{text}");
    assert!(text.contains("has not ended within 100ms"), "{text}");
}

#[test]
fn a_run_that_does_not_end_reports_its_tasks_and_exits() {
    if is_child() {
        _ = Runtime::builder().workers(2).end_within(LIMIT).run(leave_behind);
        unreachable!("the process exits");
    }
    let _guard = hang_guard();
    check(&rerun("end_within::a_run_that_does_not_end_reports_its_tasks_and_exits"));
}

#[test]
fn a_dropped_runtime_that_does_not_end_reports_its_tasks_and_exits() {
    if is_child() {
        let runtime = Runtime::builder().workers(2).end_within(LIMIT).build().unwrap();
        runtime.run(leave_behind);
        drop(runtime);
        unreachable!("the process exits");
    }
    let _guard = hang_guard();
    check(&rerun("end_within::a_dropped_runtime_that_does_not_end_reports_its_tasks_and_exits"));
}

#[test]
fn an_end_in_time_exits_nothing() {
    let _guard = hang_guard();
    let begin = Instant::now();
    let late = || drop(fibra::spawn(|| task::shield(|| fibra::sleep(Duration::from_millis(20)))));
    let ends_late = || {
        late();
        fibra::yield_now();
    };
    Runtime::builder().workers(1).end_within(Duration::MAX).run(ends_late).unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(20));
}
