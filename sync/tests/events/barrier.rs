//! What the barrier promises.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Side, beside, beside_runtimes, everywhere, in_tasks, pause};
use crate::future::{block_on, poll};
use fibra_runtime as fibra;
use fibra_sync::{Barrier, BarrierWaitResult};

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(60);

/// Comes to the barrier beside the test; true for the leader.
fn comes(barrier: &Arc<Barrier>) -> Side<bool> {
    let barrier = Arc::clone(barrier);
    beside(move || barrier.wait().is_leader())
}

fn leaders(sides: impl IntoIterator<Item = Side<bool>>) -> usize {
    sides.into_iter().filter_map(|side| side.join().then_some(())).count()
}

#[test]
fn no_waiter_goes_on_before_all_have_come() {
    everywhere(|| {
        let barrier = Arc::new(Barrier::new(10));
        let passed = Arc::new(AtomicUsize::new(0));
        let sides: Vec<_> = (0..9)
            .map(|_| {
                let (barrier, passed) = (Arc::clone(&barrier), Arc::clone(&passed));
                beside(move || {
                    let leads = barrier.wait().is_leader();
                    passed.fetch_add(1, SeqCst);
                    leads
                })
            })
            .collect();
        pause();
        assert_eq!(passed.load(SeqCst), 0);
        let mine = barrier.wait().is_leader();
        assert_eq!(leaders(sides) + usize::from(mine), 1);
        assert_eq!(passed.load(SeqCst), 9);
    });
}

#[test]
fn each_round_has_one_leader_and_all_of_the_work_before_it() {
    everywhere(|| {
        const PARTIES: usize = 6;
        const ROUNDS: usize = 150;
        let shared = Arc::new((Barrier::new(PARTIES), AtomicUsize::new(0), AtomicUsize::new(0)));
        let sides: Vec<_> = (0..PARTIES)
            .map(|_| {
                let shared = Arc::clone(&shared);
                beside(move || {
                    let (barrier, work, led) = &*shared;
                    for round in 1..=ROUNDS {
                        work.fetch_add(1, Relaxed);
                        if barrier.wait().is_leader() {
                            led.fetch_add(1, Relaxed);
                        }
                        assert_eq!(work.load(Relaxed), PARTIES * round);
                        barrier.wait();
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(Side::join);
        assert_eq!(shared.2.load(Relaxed), ROUNDS);
    });
}

#[test]
fn a_barrier_of_zero_is_one_for_a_single_party() {
    everywhere(|| {
        for barrier in [Barrier::new(0), Barrier::new(1)] {
            assert!(barrier.wait().is_leader());
            assert!(barrier.wait_timeout(Duration::ZERO).unwrap().is_leader());
            assert!(block_on(barrier.wait_async()).is_leader());
        }
    });
}

#[test]
fn a_waiter_that_times_out_has_left_the_round() {
    everywhere(|| {
        let barrier = Arc::new(Barrier::new(2));
        let at = Instant::now();
        assert!(barrier.wait_timeout(SHORT).is_none() && at.elapsed() >= SHORT);
        assert!(barrier.wait_deadline(at).is_none());
        let other = comes(&barrier);
        pause();
        assert!(barrier.wait_timeout(LONG).expect("two have come").is_leader());
        assert!(!other.join());
    });
}

#[test]
fn a_cancelled_waiter_has_left_the_round() {
    in_tasks(|| {
        let barrier = Arc::new(Barrier::new(2));
        let Side::Task(victim) = comes(&barrier) else { unreachable!() };
        pause();
        victim.task().cancel();
        assert!(victim.join().unwrap_err().is_cancelled());
        let sides = [comes(&barrier), comes(&barrier)];
        assert_eq!(leaders(sides), 1);
    });
}

#[test]
fn a_future_that_is_dropped_has_left_the_round() {
    everywhere(|| {
        let (barrier, woken) = (Barrier::new(2), Arc::default());
        let mut first = Box::pin(barrier.wait_async());
        assert!(poll(first.as_mut(), &woken).is_pending());
        drop(first);
        let mut second = Box::pin(barrier.wait_async());
        assert!(poll(second.as_mut(), &woken).is_pending());
        assert!(barrier.wait().is_leader());
        assert_eq!(woken.times(), 1);
        assert!(matches!(poll(second.as_mut(), &woken), Poll::Ready(result) if !result.is_leader()));
    });
}

#[test]
fn tasks_and_threads_meet() {
    beside_runtimes(|runtime| {
        let (barrier, led) = (Barrier::new(23), AtomicUsize::new(0));
        let party = || {
            for _ in 0..200 {
                led.fetch_add(usize::from(barrier.wait().is_leader()), Relaxed);
            }
        };
        thread::scope(|threads| {
            (0..3).for_each(|_| drop(threads.spawn(party)));
            runtime.run(|| fibra::scope(|tasks| (0..20).for_each(|_| drop(tasks.spawn(party)))));
        });
        assert_eq!(led.load(Relaxed), 200);
    });
}

/// Every round is completed by exactly as many parties as it has, whichever leave it meanwhile.
#[test]
fn complete_and_timed_out_at_once() {
    everywhere(|| {
        const PARTIES: usize = 3;
        let (barrier, led) = (Arc::new(Barrier::new(PARTIES)), Arc::new(AtomicUsize::new(0)));
        let sides: Vec<_> = (0..PARTIES)
            .map(|seed| {
                let (barrier, led) = (Arc::clone(&barrier), Arc::clone(&led));
                beside(move || {
                    // Each party passes as many rounds, however often it has to come again.
                    for round in 0..500 {
                        let mut tries = 0;
                        let result = loop {
                            tries += 1;
                            let timeout =
                                Duration::from_micros(((round * 7 + seed * 13 + tries * 5) % 60) as u64);
                            if let Some(result) = barrier.wait_timeout(timeout) {
                                break result;
                            }
                        };
                        led.fetch_add(usize::from(result.is_leader()), Relaxed);
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(Side::join);
        assert_eq!(led.load(Relaxed), 500);
        assert!(barrier.wait_timeout(Duration::ZERO).is_none(), "no party is left inside");
    });
}

#[test]
fn complete_and_cancelled_at_once() {
    in_tasks(|| {
        for round in 0..1200 {
            let barrier = Arc::new(Barrier::new(2));
            let theirs = Arc::clone(&barrier);
            let victim = fibra::spawn(move || theirs.wait().is_leader());
            (0..round % 3).for_each(|_| fibra::yield_now());
            let target = victim.task().clone();
            let canceller = fibra::spawn(move || target.cancel());
            if round % 2 == 0 {
                fibra::yield_now();
            }
            let mine = barrier.wait_timeout(Duration::from_micros(50));
            canceller.join().unwrap();
            let theirs = victim.join().ok();
            assert_eq!(mine.is_some(), theirs.is_some(), "both pass, or its arrival was taken back");
            // The barrier is as new.
            let other = comes(&barrier);
            let mine = barrier.wait_timeout(LONG).expect("two have come");
            assert!(mine.is_leader() != other.join());
        }
    });
}

#[test]
fn it_says_what_it_is() {
    static MEETING: Barrier = Barrier::new(1);
    assert_eq!(format!("{MEETING:?}"), "Barrier { parties: 1, .. }");
    assert_eq!(format!("{:?}", MEETING.wait()), "BarrierWaitResult { is_leader: true }");
}

fn _shared_and_sent(barrier: &Barrier) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<(Barrier, BarrierWaitResult)>();
    sent(barrier.wait_async());
}
