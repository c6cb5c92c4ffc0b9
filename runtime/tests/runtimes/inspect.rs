//! What can be seen of a runtime from outside: its started tasks, and how many have not started.

use std::collections::HashSet;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, JoinHandle, Task, task};

/// Tasks that stay through a storm: they fill more than one chunk of each worker's table.
const PERMANENT: usize = 2500;

/// Rounds of a storm, each of which starts and ends many tasks.
const ROUNDS: usize = 40;

/// Waits until a condition holds.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn every_started_task_is_found_from_another_thread_in_a_storm_of_spawns_and_ends() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let handle = runtime.handle();
    let started = Arc::new(AtomicU64::new(0));
    let spawn_permanent = |_| {
        let started = Arc::clone(&started);
        handle.spawn(move || {
            started.fetch_add(1, Ordering::Relaxed);
            task::park();
        })
    };
    let permanent: Vec<JoinHandle<()>> = (0..PERMANENT).map(spawn_permanent).collect();
    until(|| started.load(Ordering::Relaxed) == PERMANENT as u64);
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let walker = threads.spawn(|| {
            let mut walks = 0;
            // The last walk begins after the storm.
            loop {
                let last = over.load(Ordering::Relaxed);
                let tasks = handle.started_tasks();
                let seen: HashSet<u64> = tasks.iter().map(Task::id).collect();
                assert_eq!(seen.len(), tasks.len(), "no task is seen twice");
                assert!(permanent.iter().all(|handle| seen.contains(&handle.task().id())));
                walks += 1;
                if last {
                    return walks;
                }
            }
        });
        for _ in 0..ROUNDS {
            runtime.run(|| {
                let many: Vec<_> = (0..2000).map(|_| fibra::spawn(fibra::yield_now)).collect();
                many.into_iter().for_each(|one| one.join().unwrap());
            });
        }
        over.store(true, Ordering::Relaxed);
        assert!(walker.join().unwrap() > 1);
    });
    permanent.iter().for_each(|handle| handle.task().unpark());
    permanent.into_iter().for_each(|handle| handle.join().unwrap());
    until(|| handle.started_tasks().is_empty());
}

#[test]
fn unstarted_tasks_are_counted() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    let (begun, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let busy = handle.spawn({
        let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
        move || {
            begun.store(true, Ordering::Relaxed);
            while !over.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
    });
    until(|| begun.load(Ordering::Relaxed));
    let behind: Vec<_> = (0..1000).map(|_| handle.spawn(|| ())).collect();
    assert_eq!((handle.started_tasks().len(), handle.unstarted_tasks()), (1, 1000));
    over.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    behind.into_iter().for_each(|one| one.join().unwrap());
    until(|| handle.started_tasks().is_empty());
    assert_eq!(handle.unstarted_tasks(), 0);
}
