//! Promises of `park` and `unpark`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::rounds::rounds;
use fibra_runtime::{self as fibra, CancelToken, task};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

#[test]
fn an_unpark_before_the_park_makes_it_return_at_once() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        task::current().unpark();
        task::park();
        task::current().unpark();
        assert!(task::park_timeout(LONG));
    });
}

#[test]
fn an_unpark_of_a_task_that_has_not_started_is_kept() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let parked = fibra::spawn(task::park);
        parked.task().unpark();
        parked.join().unwrap();
    });
}

#[test]
fn a_park_that_is_cancelled_leaves_the_token_to_the_next() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let over = CancelToken::new();
        over.cancel();
        task::current().unpark();
        assert!(over.scope(task::park).is_err());
        assert!(fibra::timeout(Duration::ZERO, || task::park_timeout(LONG)).is_err());
        assert!(task::park_timeout(Duration::ZERO));
        assert!(!task::park_timeout(SHORT));
    });
}

#[test]
fn many_unparks_count_once() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        (0..10).for_each(|_| task::current().unpark());
        assert!(task::park_timeout(LONG));
        assert!(!task::park_timeout(SHORT));
    });
}

#[test]
fn a_park_times_out_and_not_early() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let begin = Instant::now();
        assert!(!task::park_timeout(SHORT));
        assert!(begin.elapsed() >= SHORT);
        assert!(!task::park_timeout(Duration::ZERO));
    });
}

#[test]
fn a_park_of_more_than_the_clock_can_tell_waits_for_the_unpark() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let parked = fibra::spawn(|| task::park_timeout(Duration::MAX));
        fibra::sleep(SHORT);
        assert!(!parked.is_finished());
        parked.task().unpark();
        assert!(parked.join().unwrap());
    });
}

#[test]
fn nothing_but_an_unpark_ends_a_park() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let woken = Arc::new(AtomicBool::new(false));
        let wake = Arc::clone(&woken);
        let parked = fibra::spawn(move || {
            fibra::spawn(|| ()).join().unwrap();
            fibra::unblock(|| ());
            fibra::sleep(Duration::from_micros(50));
            fibra::yield_now();
            task::park();
            assert!(wake.load(Ordering::SeqCst));
        });
        // Ends of others, timers and jobs of the pool happen all around it.
        for _ in 0..50 {
            fibra::spawn(|| fibra::sleep(Duration::from_micros(100))).join().unwrap();
            fibra::unblock(|| ());
            assert!(!parked.is_finished());
        }
        woken.store(true, Ordering::SeqCst);
        parked.task().unpark();
        parked.join().unwrap();
    });
}

#[test]
fn sleeps_joins_and_jobs_of_the_pool_leave_the_token_alone() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        task::current().unpark();
        fibra::sleep(Duration::from_micros(100));
        fibra::spawn(|| fibra::sleep(Duration::from_micros(100))).join().unwrap();
        fibra::unblock(|| thread::sleep(Duration::from_micros(100)));
        fibra::yield_now();
        assert!(task::park_timeout(LONG), "the token is still there");
        assert!(!task::park_timeout(Duration::from_micros(100)), "and there is one");
    });
}

#[test]
fn an_unpark_ends_neither_a_sleep_nor_a_join() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let sleeper = fibra::spawn(|| {
            let begin = Instant::now();
            fibra::sleep(SHORT);
            assert!(begin.elapsed() >= SHORT);
            fibra::spawn(|| fibra::sleep(SHORT)).join().unwrap();
            begin.elapsed() >= 2 * SHORT
        });
        let task = sleeper.task().clone();
        while !task.is_finished() {
            task.unpark();
            fibra::yield_now();
        }
        assert!(sleeper.join().unwrap());
    });
}

#[test]
fn a_thread_wakes_a_parked_task() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let rounds = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&rounds);
        let parked = runtime.spawn(move || {
            for _ in 0..2000 {
                task::park();
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        for round in 0..2000 {
            parked.task().unpark();
            while rounds.load(Ordering::SeqCst) <= round {
                thread::yield_now();
            }
        }
        parked.join().unwrap();
    }
}

#[test]
fn a_timer_and_an_unpark_of_a_thread_at_one_moment_have_one_result() {
    const ROUNDS: usize = 20_000;
    let _guard = hang_guard();
    let runtime = runtime(1);
    let turn = Arc::new(AtomicUsize::new(0));
    let (asks, given) = (Arc::clone(&turn), Arc::new(AtomicUsize::new(0)));
    let gift = Arc::clone(&given);
    let parked = runtime.spawn(move || {
        let mut results = [0_usize; 2];
        for round in rounds(ROUNDS) {
            asks.store(round, Ordering::SeqCst);
            let by_unpark = task::park_timeout(Duration::from_micros(16 + (round % 8) as u64 * 4));
            while gift.load(Ordering::SeqCst) != round {
                thread::yield_now();
            }
            results[usize::from(by_unpark)] += 1;
            assert_ne!(
                task::park_timeout(Duration::ZERO),
                by_unpark,
                "one token, taken once (round {round})"
            );
        }
        results
    });
    let task = parked.task().clone();
    for round in 1..=ROUNDS {
        while turn.load(Ordering::SeqCst) != round && !task.is_finished() {
            thread::yield_now();
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros((round % 64) as u64) {
            std::hint::spin_loop();
        }
        task.unpark();
        given.store(round, Ordering::SeqCst);
    }
    println!("[timed out, unparked]: {:?}", parked.join().unwrap());
}

#[test]
fn a_timer_and_an_unpark_of_a_task_at_one_moment_have_one_result() {
    const ROUNDS: usize = 10_000;
    let _guard = hang_guard();
    for workers in [1, 2] {
        let results = runtime(workers).run(|| {
            let mut results = [0_usize; 2];
            for round in rounds(ROUNDS).map(|round| round as u64) {
                let me = task::current();
                let unparker = fibra::spawn(move || {
                    fibra::sleep(Duration::from_micros(16 + round % 3 * 16));
                    me.unpark();
                });
                let by_unpark = task::park_timeout(Duration::from_micros(16 + round % 5 * 16));
                unparker.join().unwrap();
                results[usize::from(by_unpark)] += 1;
                assert_ne!(task::park_timeout(Duration::ZERO), by_unpark, "round {round}");
            }
            results
        });
        println!("{workers} workers, [timed out, unparked]: {results:?}");
    }
}

#[test]
fn two_tasks_hand_the_processor_to_and_fro() {
    const ROUNDS: usize = 5000;
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let me = task::current();
            let other = fibra::spawn(move || {
                for _ in 0..ROUNDS {
                    task::park();
                    me.unpark();
                }
            });
            for _ in 0..ROUNDS {
                other.task().unpark();
                task::park();
            }
            other.join().unwrap();
        });
    }
}

#[test]
fn a_plain_thread_parks_as_in_std() {
    let _guard = hang_guard();
    let parked = thread::spawn(task::park);
    parked.thread().unpark();
    parked.join().unwrap();
    task::park_timeout(SHORT);
}
