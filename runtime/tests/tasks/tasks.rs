//! Promises of tasks: spawning, joining, yielding, parking, panics.

use std::time::{Duration, Instant};

use fibra_runtime::{self as fibra, Runtime, task};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("a runtime")
}

#[test]
fn a_spawned_task_returns_its_value() {
    for workers in [1, 2, 4] {
        let value = runtime(workers).run(|| fibra::spawn(|| 6 * 7).join().unwrap());
        assert_eq!(value, 42);
    }
}

#[test]
fn many_tasks_are_joined() {
    for workers in [1, 2, 4] {
        let sum = runtime(workers).run(|| {
            let tasks: Vec<_> = (0..10_000_u64).map(|i| fibra::spawn(move || i)).collect();
            tasks.into_iter().map(|task| task.join().unwrap()).sum::<u64>()
        });
        assert_eq!(sum, 49_995_000);
    }
}

#[test]
fn a_sleep_lasts() {
    let begin = Instant::now();
    runtime(1).run(|| fibra::sleep(Duration::from_millis(5)));
    assert!(begin.elapsed() >= Duration::from_millis(5));
}

#[test]
fn unpark_before_park_is_kept() {
    runtime(1).run(|| {
        let parked = fibra::spawn(task::park);
        parked.task().unpark();
        parked.join().unwrap();
    });
}
