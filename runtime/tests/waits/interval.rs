//! Promises of intervals.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{hang_guard, runtime};
use crate::paused::{TICK, paused};
use fibra::time::{Duration, MissedTickBehavior, interval, interval_at, now};
use fibra_runtime as fibra;

/// Runs `promise` in a plain thread, and in a task of two workers and of one in virtual time.
/// Tells it how late a tick may be.
fn everywhere(promise: impl Fn(Duration) + Send + Sync) {
    let _guard = hang_guard();
    let hour = Duration::from_secs(3600);
    promise(hour);
    runtime(2).run(|| promise(hour));
    paused(|| promise(TICK));
}

#[test]
fn ticks_are_a_period_apart_and_none_is_early() {
    everywhere(|late| {
        let (begin, period) = (now(), Duration::from_millis(2));
        let mut ticks = interval(period);
        let first = ticks.tick();
        assert!(first >= begin);
        for count in 1..10 {
            let due = first + period * count;
            assert_eq!(ticks.tick(), due);
            assert!((due..=due + late).contains(&now()), "tick {count}");
        }
    });
}

#[test]
fn the_first_tick_is_due_when_it_was_said_to_be() {
    everywhere(|late| {
        let start = now() + Duration::from_millis(5);
        let mut ticks = interval_at(start, Duration::from_secs(3600));
        assert_eq!(ticks.tick(), start);
        assert!((start..=start + late).contains(&now()));
    });
}

#[test]
fn a_tick_can_be_set_anew() {
    everywhere(|_| {
        let mut ticks = interval(Duration::from_secs(3600));
        ticks.tick();
        let before = now();
        ticks.reset_immediately();
        assert!(ticks.tick() >= before);
        ticks.reset_after(Duration::from_millis(1));
        assert!(ticks.tick() >= before + Duration::from_millis(1));
        ticks.reset_at(before);
        assert_eq!(ticks.tick(), before);
        assert_eq!(ticks.period(), Duration::from_secs(3600));
    });
}

#[test]
fn a_behavior_can_be_chosen() {
    everywhere(|_| {
        let hour = Duration::from_secs(3600);
        let start = now() - Duration::from_millis(25);
        for behavior in [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip] {
            let mut ticks = interval_at(start, Duration::from_millis(10));
            ticks.set_missed_tick_behavior(behavior);
            assert_eq!(ticks.missed_tick_behavior(), behavior);
            assert_eq!(ticks.tick(), start);
            let came = now();
            let second = ticks.tick();
            match behavior {
                MissedTickBehavior::Burst => assert_eq!(second, start + Duration::from_millis(10)),
                MissedTickBehavior::Delay => assert!(second >= start + Duration::from_millis(35)),
                MissedTickBehavior::Skip => {
                    assert!(second >= start + Duration::from_millis(30) && second < came + hour);
                    assert_eq!((second - start).as_millis() % 10, 0);
                }
            }
        }
    });
}

/// One worker: no other worker runs the second task.
#[test]
fn a_burst_of_missed_ticks_lets_the_others_run() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let ran = Arc::new(AtomicBool::new(false));
        let other = {
            let ran = Arc::clone(&ran);
            fibra::spawn(move || ran.store(true, Ordering::SeqCst))
        };
        // A million missed ticks.
        let mut ticks = interval_at(now() - Duration::from_millis(1), Duration::from_nanos(1));
        let mut count = 0;
        while !ran.load(Ordering::SeqCst) {
            ticks.tick();
            count += 1;
            assert!(count < 1000, "the other task starves");
        }
        other.join().unwrap();
    });
}

#[test]
fn unwinding_from_a_tick_uses_up_none() {
    let _guard = hang_guard();
    let unwinds = || {
        let start = now();
        let mut ticks = interval_at(start, Duration::from_secs(3600));
        let token = fibra::CancelToken::new();
        token.cancel();
        assert!(token.scope(|| ticks.tick()).is_err(), "due already");
        assert_eq!(ticks.tick(), start);
        let before = format!("{ticks:?}");
        assert!(fibra::timeout(Duration::from_millis(1), || ticks.tick()).is_err(), "due in an hour");
        assert_eq!(format!("{ticks:?}"), before);
    };
    paused(unwinds);
    for workers in [1, 2, 4] {
        runtime(workers).run(unwinds);
    }
}

#[test]
fn ticks_without_time_between_them_are_refused() {
    assert!(catch_unwind(|| interval(Duration::ZERO)).is_err());
}

#[test]
fn an_interval_is_an_iterator_over_its_ticks() {
    everywhere(|_| {
        let start = now();
        let ticks = interval_at(start, Duration::from_millis(1)).take(4);
        assert!(ticks.eq((0..4).map(|count| start + Duration::from_millis(1) * count)));
    });
}
