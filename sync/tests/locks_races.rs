//! Each lock of one holder at a time where much happens at once: tasks and threads together, and waits whose time runs out as
//! the lock comes free.

mod common;
#[path = "common/exclusive.rs"]
mod exclusive;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{beside, everywhere, guarded, in_tasks, runtime};
use exclusive::{Exclusive, Guarded, suite, work};

suite! {[
    tasks_and_threads_exclude_each_other
    unlocked_and_timed_out_at_once_nobody_is_forgotten
    out_of_time_again_and_again_nobody_is_forgotten
    threads_out_of_time_leave_the_tasks_alone
]}

fn tasks_and_threads_exclude_each_other<L: Exclusive>() {
    guarded(|| {
        for workers in [1, 2] {
            let shared = Guarded::<L>::new();
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || work(&shared, 500))
                })
                .collect();
            runtime(workers).run(|| {
                let tasks: Vec<_> = (0..20)
                    .map(|_| {
                        let shared = Arc::clone(&shared);
                        fibra_runtime::spawn(move || work(&shared, 100))
                    })
                    .collect();
                tasks.into_iter().for_each(|task| task.join().unwrap());
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(shared.counted(), 3 * 500 + 20 * 100);
        }
    });
}

fn unlocked_and_timed_out_at_once_nobody_is_forgotten<L: Exclusive>() {
    in_tasks(|| {
        let pairs: Vec<_> = (0..100)
            .map(|_| fibra_runtime::spawn(|| (0..80).filter(|_| unlock_as_it_times_out::<L>()).count()))
            .collect();
        let _taken: usize = pairs.into_iter().map(|pair| pair.join().unwrap()).sum();
    });
}

/// True if the attempt had the lock.
fn unlock_as_it_times_out<L: Exclusive>() -> bool {
    let shared = Guarded::<L>::new();
    let timeout = Duration::from_micros(300);
    let guard = shared.lock.lock();
    let timed = Arc::clone(&shared);
    let attempt = fibra_runtime::spawn(move || {
        let taken = timed.lock.try_lock_for(timeout);
        if taken.is_some() {
            timed.count(true);
        }
        taken.is_some()
    });
    let behind = Arc::clone(&shared);
    let patient = fibra_runtime::spawn(move || {
        let _guard = behind.lock.lock();
        behind.count(true);
    });
    fibra_runtime::sleep(timeout);
    drop(guard);
    let taken = attempt.join().unwrap();
    patient.join().unwrap();
    assert!(shared.lock.try_lock().is_some(), "all have gone");
    assert_eq!(shared.counted(), 1 + u64::from(taken));
    taken
}

fn out_of_time_again_and_again_nobody_is_forgotten<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let sides: Vec<_> = (0..6_u64)
            .map(|side| {
                let shared = Arc::clone(&shared);
                beside(move || hurried(&shared, side, 400))
            })
            .collect();
        work(&shared, 400);
        let taken: u64 = sides.into_iter().map(|side| side.join()).sum();
        assert_eq!(shared.counted(), taken + 400);
    });
}

/// Attempts of many lengths; how many had the lock.
fn hurried<L: Exclusive>(shared: &Guarded<L>, side: u64, rounds: u64) -> u64 {
    let taken = (0..rounds).filter(|round| {
        let timeout = Duration::from_nanos((round * 7919 + side * 104_729) % 20_000);
        let guard = shared.lock.try_lock_for(timeout);
        if guard.is_some() {
            shared.count(round.is_multiple_of(4));
        }
        guard.is_some()
    });
    taken.count() as u64
}

fn threads_out_of_time_leave_the_tasks_alone<L: Exclusive>() {
    guarded(|| {
        let shared = Guarded::<L>::new();
        let threads: Vec<_> = (0..2)
            .map(|side| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || hurried(&shared, side, 2000))
            })
            .collect();
        let tasks: u64 = runtime(2).run(|| {
            let patient = {
                let shared = Arc::clone(&shared);
                fibra_runtime::spawn(move || work(&shared, 1000))
            };
            let hurried: Vec<_> = (2..8)
                .map(|side| {
                    let shared = Arc::clone(&shared);
                    fibra_runtime::spawn(move || hurried(&shared, side, 300))
                })
                .collect();
            patient.join().unwrap();
            hurried.into_iter().map(|task| task.join().unwrap()).sum()
        });
        let threads: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(shared.counted(), 1000 + tasks + threads);
    });
}
