//! Permits of a semaphore that come as their waiters do, as these leave, or as others take them.

mod common;
#[path = "common/future.rs"]
mod future;

use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{beside, everywhere, give_way, guarded, in_tasks, runtime};
use fibra_runtime as fibra;
use fibra_sync::Semaphore;
use future::poll;

/// Takes permits with timeouts that end about when they are served; the rounds of one waiter.
fn timed_waits(semaphore: &Semaphore, rounds: usize, seed: usize) -> usize {
    let mut got = 0;
    for round in 0..rounds {
        let timeout = Duration::from_micros(((round * 7 + seed * 13) % 50) as u64);
        if let Some(permit) = semaphore.acquire_many_timeout(1 + (round + seed) % 3, timeout) {
            got += 1;
            give_way();
            drop(permit);
        }
    }
    got
}

#[test]
fn served_and_timed_out_at_once_loses_no_permit() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(3));
        let sides: Vec<_> = (0..8)
            .map(|seed| {
                let semaphore = Arc::clone(&semaphore);
                beside(move || timed_waits(&semaphore, 800, seed))
            })
            .collect();
        let got: usize = sides.into_iter().map(common::Side::join).sum();
        assert!(got > 0);
        assert_eq!(semaphore.available_permits(), 3);
        assert_eq!(semaphore.try_acquire_many(3).unwrap().num_permits(), 3, "nobody is in the queue");
    });
}

#[test]
fn served_and_timed_out_at_once_loses_no_permit_between_tasks_and_threads() {
    guarded(|| {
        let semaphore = Semaphore::new(3);
        thread::scope(|threads| {
            (0..2).for_each(|seed| {
                drop(threads.spawn({
                    let semaphore = &semaphore;
                    move || timed_waits(semaphore, 3000, seed)
                }))
            });
            runtime(2).run(|| {
                fibra::scope(|tasks| {
                    for seed in 2..8 {
                        let semaphore = &semaphore;
                        tasks.spawn(move || timed_waits(semaphore, 3000, seed));
                    }
                });
            });
        });
        assert_eq!(semaphore.try_acquire_many(3).unwrap().num_permits(), 3);
    });
}

#[test]
fn served_and_cancelled_at_once_loses_no_permit() {
    in_tasks(|| {
        let semaphore = Arc::new(Semaphore::new(2));
        let mut passed = 0;
        for round in 0..1500 {
            let all = semaphore.acquire_many(2);
            let waiters: Vec<_> = [1, 2, 1]
                .into_iter()
                .map(|count| {
                    let semaphore = Arc::clone(&semaphore);
                    fibra::spawn(move || drop(semaphore.acquire_many(count)))
                })
                .collect();
            (0..round % 4).for_each(|_| fibra::yield_now());
            let victim = waiters[round % 3].task().clone();
            let canceller = fibra::spawn(move || victim.cancel());
            if round % 2 == 0 {
                fibra::yield_now();
            }
            drop(all);
            canceller.join().unwrap();
            passed += waiters.into_iter().filter_map(|waiter| waiter.join().ok()).count();
            assert_eq!(semaphore.available_permits(), 2);
        }
        assert!(passed >= 3000);
    });
}

#[test]
fn served_and_dropped_at_once_loses_no_permit() {
    guarded(|| {
        let semaphore = Semaphore::new(1);
        thread::scope(|threads| {
            for seed in 0..3_usize {
                let semaphore = &semaphore;
                threads.spawn(move || {
                    let woken = Arc::default();
                    for round in 0..4000 {
                        let mut future = pin!(semaphore.acquire_async());
                        for _ in 0..(round + seed) % 4 {
                            if poll(future.as_mut(), &woken).is_ready() {
                                break;
                            }
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.try_acquire().is_ok(), "nobody is in the queue");
    });
}
