//! Promises of sleeps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::paused::{TICK, is_about, paused, taken};
use fibra_runtime as fibra;
use fibra_runtime::time::now;

#[test]
fn a_sleep_does_not_end_early() {
    let _guard = hang_guard();
    let durations = [0, 1, 15, 16, 17, 50, 333, 1000, 4095, 4096, 4097].map(Duration::from_micros);
    for workers in [1, 2] {
        runtime(workers).run(|| {
            for duration in durations {
                assert!(taken(|| fibra::sleep(duration)) >= duration, "{duration:?}");
            }
        });
    }
    paused(|| {
        for duration in durations {
            assert!(is_about(taken(|| fibra::sleep(duration)), duration), "{duration:?}");
        }
    });
}

#[test]
fn ten_thousand_sleeps_of_all_lengths_do_not_end_early() {
    let _guard = hang_guard();
    // How late the latest one is.
    let latest = || {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let sleeps: Vec<_> = (0..10_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // From nanoseconds to 300 ms, each order of magnitude as likely as the next.
                let duration = Duration::from_nanos((300_000_000 >> (state >> 59)) + (state >> 40) % 1000);
                fibra::spawn(move || taken(|| fibra::sleep(duration)).checked_sub(duration))
            })
            .collect();
        sleeps.into_iter().map(|sleep| sleep.join().unwrap().expect("not early")).max().unwrap()
    };
    println!("latest: {:?}", runtime(2).run(latest));
    assert!(paused(latest) <= TICK);
}

#[test]
fn sleeps_end_in_the_order_of_their_deadlines() {
    paused(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        let begin = now();
        let sleeps: Vec<_> = [5, 1, 4, 2, 3]
            .into_iter()
            .map(|number| {
                let order = Rc::clone(&order);
                fibra::spawn_local(move || {
                    fibra::sleep_until(begin + Duration::from_millis(1) * number);
                    order.borrow_mut().push(number);
                })
            })
            .collect();
        sleeps.into_iter().for_each(|sleep| sleep.join().unwrap());
        assert_eq!(order.take(), [1, 2, 3, 4, 5]);
    });
}

#[test]
fn a_sleep_until_the_past_lets_others_run_and_returns() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let turns = Rc::new(Cell::new(0));
        let count = Rc::clone(&turns);
        let beside = fibra::spawn_local(move || {
            loop {
                count.set(count.get() + 1);
                fibra::yield_now();
            }
        });
        let past = Instant::now();
        (0..10).for_each(|_| fibra::sleep_until(past));
        (0..10).for_each(|_| fibra::sleep(Duration::ZERO));
        assert!(turns.get() >= 10);
        beside.task().cancel();
    });
}

#[test]
fn a_sleep_of_more_than_the_clock_can_tell_is_for_ever() {
    let _guard = hang_guard();
    let beside = |time| {
        let durations = [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_secs(1 << 40)];
        let sleeps: Vec<_> =
            durations.into_iter().map(|duration| fibra::spawn(move || fibra::sleep(duration))).collect();
        fibra::sleep(time);
        for sleep in sleeps {
            assert!(!sleep.is_finished());
            sleep.task().cancel();
            assert!(sleep.join().unwrap_err().is_cancelled());
        }
    };
    for workers in [1, 2] {
        runtime(workers).run(|| beside(Duration::from_millis(3)));
    }
    // A century.
    paused(|| beside(Duration::from_secs(100 * 365 * 24 * 3600)));
}

#[test]
fn a_far_deadline_does_not_hold_up_a_near_one() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let far = fibra::spawn(|| fibra::sleep(Duration::from_secs(36_000)));
        fibra::yield_now();
        (0..20).for_each(|_| fibra::sleep(Duration::from_micros(300)));
        far.task().cancel();
    });
}

#[test]
fn sleeps_on_a_plain_thread_are_those_of_std() {
    let begin = Instant::now();
    fibra::sleep(Duration::from_millis(1));
    fibra::sleep_until(begin + Duration::from_millis(2));
    fibra::sleep_until(begin);
    assert!(begin.elapsed() >= Duration::from_millis(2));
}

#[test]
fn a_task_may_sleep_for_long_while_its_worker_computes() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let sleeper = fibra::spawn(|| {
            let begin = Instant::now();
            fibra::sleep(Duration::from_millis(1));
            begin.elapsed()
        });
        fibra::sleep(Duration::from_micros(200));
        thread::sleep(Duration::from_millis(10));
        assert!(sleeper.join().unwrap() >= Duration::from_millis(1));
    });
}

#[test]
fn a_lone_sleep_of_50_microseconds_is_not_early() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let duration = Duration::from_micros(50);
        let late = |sleep: fn(Duration)| {
            let begin = Instant::now();
            sleep(duration);
            begin.elapsed().checked_sub(duration).expect("not early")
        };
        // In turns with the thread's own, which are as late as the machine is busy.
        let (mut ours, mut own): (Vec<_>, Vec<_>) =
            (0..500).map(|_| (late(fibra::sleep), late(thread::sleep))).unzip();
        ours.sort_unstable();
        own.sort_unstable();
        println!("a lone sleep(50 µs): median {:?} late, worst {:?}", ours[250], ours[499]);
        // Nothing about speed, which depends on the machine: this finds a tick that is not kept.
        let most = Duration::from_millis(10) + own[250] * 10;
        assert!(
            ours[250] < most,
            "half of the sleeps were later than {:?}, the thread's than {:?}",
            ours[250],
            own[250]
        );
    });
}

#[test]
fn sleeps_that_are_cancelled_leave_the_clock_in_order() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        for round in 0..200_u64 {
            let sleeps: Vec<_> = (0..20)
                .map(|i| {
                    fibra::spawn(move || fibra::sleep(Duration::from_micros(20 + (i * 7 + round) % 200)))
                })
                .collect();
            fibra::sleep(Duration::from_micros(60));
            sleeps.iter().step_by(2).for_each(|sleep| sleep.task().cancel());
            for (number, sleep) in sleeps.into_iter().enumerate() {
                let result = sleep.join();
                assert!(result.is_ok() || number % 2 == 0);
            }
        }
    });
}

/// Computes until the flag is set. Returns false if that takes too long.
fn compute_until(set: &AtomicBool) -> bool {
    let begin = Instant::now();
    while !set.load(Ordering::Relaxed) {
        if begin.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

#[test]
fn timers_are_on_time_beside_a_child_that_computes_while_a_worker_is_idle() {
    let _guard = hang_guard();
    type Case = (&'static str, fn(Arc<AtomicBool>) -> bool);
    let cases: [Case; 5] = [
        ("sleep", |on_time| {
            let told = Arc::clone(&on_time);
            let child = fibra::spawn(move || compute_until(&told));
            fibra::sleep(Duration::from_millis(5));
            on_time.store(true, Ordering::Relaxed);
            child.join().unwrap()
        }),
        ("sleep before a join", |on_time| {
            let told = Arc::clone(&on_time);
            let sleeper = fibra::spawn(move || {
                fibra::sleep(Duration::from_millis(5));
                told.store(true, Ordering::Relaxed);
            });
            fibra::yield_now();
            let in_time = fibra::spawn(move || compute_until(&on_time)).join().unwrap();
            sleeper.join().unwrap();
            in_time
        }),
        ("timeout of a join", |on_time| {
            let (told, (tell, verdict)) = (Arc::clone(&on_time), std::sync::mpsc::channel());
            let child = fibra::spawn(move || tell.send(compute_until(&told)));
            assert!(fibra::timeout(Duration::from_millis(20), || child.join()).is_err());
            on_time.store(true, Ordering::Relaxed);
            verdict.recv().unwrap()
        }),
        ("sleep in a scope", |on_time| {
            fibra::scope(|scope| {
                let child = scope.spawn(|| compute_until(&on_time));
                fibra::sleep(Duration::from_millis(5));
                on_time.store(true, Ordering::Relaxed);
                child.join().unwrap()
            })
        }),
        ("join of two closures", |on_time| {
            let sleep = || {
                fibra::sleep(Duration::from_millis(5));
                on_time.store(true, Ordering::Relaxed);
            };
            fibra::join(sleep, || compute_until(&on_time)).1
        }),
    ];
    for (name, case) in cases {
        for workers in [2, 4] {
            let in_time = runtime(workers).run(|| {
                until_all_have_parked();
                case(Arc::default())
            });
            assert!(in_time, "{name}: the child has held up the timer, with {workers} workers");
        }
    }
}

/// Sleeps until each worker has parked, so that all but the caller's own are at rest.
fn until_all_have_parked() {
    while !fibra::Handle::current().metrics().workers.iter().all(|worker| worker.parks > 0) {
        fibra::sleep(Duration::from_millis(1));
    }
}
