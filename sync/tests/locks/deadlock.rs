//! A runtime that ends above a deadlock says which tasks wait for each other, and exits.

use std::sync::Arc;
use std::time::Duration;

use crate::common::guarded;
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::{Runtime, Task, task, yield_now};
use fibra_sync::{Barrier, Mutex};

/// Leaves two tasks behind, each of which holds the lock that the other one waits for.
fn leave_a_deadlock() {
    let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
    let hold_one_each = Arc::new(Barrier::new(2));
    let takes = |name: &str, first: usize| {
        let (first, second) = (Arc::clone(&locks[first]), Arc::clone(&locks[1 - first]));
        let hold_one_each = Arc::clone(&hold_one_each);
        let both = task::Builder::new().name(name).spawn(move || {
            let _first = first.lock();
            hold_one_each.wait();
            let _second = second.lock();
        });
        both.task().clone()
    };
    let tasks = [takes("left", 0), takes("right", 1)];
    let waits = |task: &Task| task.waits_for().is_some_and(|found| found.kind == "mutex");
    while !tasks.iter().all(waits) {
        yield_now();
    }
}

#[test]
fn the_end_of_a_runtime_reports_two_tasks_in_a_deadlock_and_exits() {
    if is_child() {
        _ = Runtime::builder().workers(2).end_within(Duration::from_millis(100)).run(leave_a_deadlock);
        unreachable!("the process exits");
    }
    guarded(|| {
        let output = rerun("deadlock::the_end_of_a_runtime_reports_two_tasks_in_a_deadlock_and_exits");
        let text = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("has not ended within 100ms"), "{text}");
        for (waiter, owner) in [("left", "right"), ("right", "left")] {
            let begin = format!("  task '{waiter}' (id ");
            let line = text.lines().find(|line| line.starts_with(&begin));
            let line = line.unwrap_or_else(|| panic!("{waiter} is not in: {text}"));
            assert!(line.contains(&format!("waits for mutex of task '{owner}' (id ")), "{text}");
        }
    });
}
