//! Thousands of tasks that are suspended while they unwind. What they take is the process's, so the test has one to itself.

#[path = "common/hang.rs"]
mod hang;
#[path = "common/rest.rs"]
mod rest;

use std::fs;

use fibra_runtime::{self as fibra, Runtime, StackGuards, task};
use hang::hang_guard;
use rest::until_others_sleep;

const TASKS: usize = 5000;

/// More than the regions of so many stacks, and what an allocator may want beside them.
const FEW: usize = 200;

struct ParksInDrop;

impl Drop for ParksInDrop {
    fn drop(&mut self) {
        task::park();
    }
}

fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

#[test]
fn thousands_of_tasks_suspended_while_they_unwind_take_few_mappings() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).stack_guards(StackGuards::Page).build().unwrap();
    if let Err(error) = runtime.spawn(|| ()).join() {
        return eprintln!("skipped: {error}");
    }
    let before = mappings();
    runtime.run(|| {
        let unwinds = || {
            let _parks = ParksInDrop;
            task::park();
        };
        let tasks: Vec<_> = (0..TASKS).map(|_| fibra::spawn(unwinds)).collect();
        until_others_sleep();
        tasks.iter().for_each(|task| task.cancel());
        until_others_sleep();
        assert!(tasks.iter().all(|task| !task.is_finished()) && !std::thread::panicking());
        let taken = mappings() - before;
        assert!(taken < FEW, "{taken}");
        tasks.iter().for_each(|task| task.task().unpark());
        tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
    });
    drop(runtime);
    let kept = mappings().saturating_sub(before);
    assert!(kept < FEW, "{kept}");
}
