//! What the manual-reset event promises.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    Side, beside, beside_runtimes, everywhere, few_or_many, give_way, in_tasks, pause, rounds,
};
use crate::future::{block_on, poll};
use fibra_runtime as fibra;
use fibra_sync::ManualResetEvent;

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(60);

/// Waits beside the test.
fn waits(event: &Arc<ManualResetEvent>) -> Side<bool> {
    let event = Arc::clone(event);
    beside(move || event.wait_timeout(LONG))
}

#[test]
fn once_set_it_lets_every_waiter_through_until_it_is_reset() {
    everywhere(|| {
        let event = ManualResetEvent::new(false);
        assert!(!event.is_set() && !event.wait_timeout(SHORT));
        event.set();
        event.set();
        (0..3).for_each(|_| event.wait());
        assert!(event.is_set() && event.wait_timeout(Duration::ZERO));
        event.reset();
        event.reset();
        assert!(!event.is_set() && !event.wait_timeout(Duration::ZERO));
        assert!(ManualResetEvent::new(true).is_set());
    });
}

#[test]
fn a_set_wakes_all_waiters() {
    everywhere(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let waiters: Vec<_> = (0..few_or_many(40, 200)).map(|_| waits(&event)).collect();
        pause();
        event.set();
        assert!(waiters.into_iter().all(Side::join));
    });
}

#[test]
fn a_reset_that_follows_at_once_keeps_no_waiter_back() {
    everywhere(|| {
        // Futures: whether a task or a thread sleeps yet cannot be told.
        let (event, woken) = (ManualResetEvent::new(false), Arc::default());
        let mut waiters: Vec<_> = (0..5).map(|_| Box::pin(event.wait_async())).collect();
        assert!(waiters.iter_mut().all(|waiter| poll(waiter.as_mut(), &woken).is_pending()));
        event.set();
        event.reset();
        assert_eq!(woken.times(), 5);
        assert!(waiters.iter_mut().all(|waiter| poll(waiter.as_mut(), &woken).is_ready()));
        assert!(!event.is_set());
    });
}

#[test]
fn a_waiter_after_a_reset_waits_for_the_next_set() {
    in_tasks(|| {
        let event = Arc::new(ManualResetEvent::new(true));
        event.reset();
        let waiter = waits(&event);
        pause();
        let Side::Task(waiter) = waiter else { unreachable!() };
        assert!(!waiter.is_finished());
        event.set();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_wait_ends_with_its_deadline() {
    everywhere(|| {
        let event = ManualResetEvent::new(false);
        let at = Instant::now();
        assert!(!event.wait_deadline(at + SHORT) && at.elapsed() >= SHORT);
        assert!(!event.wait_deadline(at));
        event.set();
        assert!(event.wait_deadline(at) && event.wait_timeout(Duration::MAX));
    });
}

#[test]
fn a_cancelled_task_leaves_the_others_waiting() {
    in_tasks(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let theirs = Arc::clone(&event);
        let victim = fibra::spawn(move || theirs.wait());
        let waiter = waits(&event);
        pause();
        victim.task().cancel();
        assert!(victim.join().unwrap_err().is_cancelled());
        event.set();
        assert!(waiter.join());
        let theirs = Arc::clone(&event);
        let point = fibra::spawn(move || {
            fibra::task::current().cancel();
            theirs.wait();
        });
        assert!(point.join().unwrap_err().is_cancelled(), "a cancellation point also when set");
    });
}

#[test]
fn tasks_and_threads_wait_together() {
    beside_runtimes(|runtime| {
        let (start, passed) = (ManualResetEvent::new(false), AtomicUsize::new(0));
        let pass = || {
            start.wait();
            passed.fetch_add(1, SeqCst);
        };
        thread::scope(|threads| {
            (0..3).for_each(|_| drop(threads.spawn(pass)));
            threads.spawn(|| {
                thread::sleep(SHORT);
                start.set();
            });
            runtime.run(|| fibra::scope(|tasks| (0..50).for_each(|_| drop(tasks.spawn(pass)))));
        });
        assert_eq!(passed.load(SeqCst), 53);
    });
}

#[test]
fn futures_wait_too() {
    everywhere(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let woken = [Arc::default(), Arc::default()];
        let mut first = Box::pin(event.wait_async());
        let mut second = pin!(event.wait_async());
        assert!(
            poll(first.as_mut(), &woken[0]).is_pending() && poll(second.as_mut(), &woken[1]).is_pending()
        );
        drop(first);
        event.set();
        assert_eq!((woken[0].times(), woken[1].times()), (0, 1));
        assert!(poll(second.as_mut(), &woken[1]).is_ready());
        block_on(event.wait_async());
    });
}

/// Waits again and again for so short a time that sets and deadlines meet.
fn timed_waits(event: &ManualResetEvent, stop: &AtomicBool, seed: u64) -> usize {
    let mut rounds = 0;
    while !stop.load(SeqCst) {
        rounds += 1;
        if event.wait_timeout(Duration::from_micros((rounds * 7 + seed * 13) % 30)) {
            give_way();
        }
    }
    rounds as usize
}

/// Sets and resets, as a storm, up to so many times.
fn storm(event: &ManualResetEvent, most: usize) {
    for _ in rounds(most) {
        event.set();
        event.reset();
        give_way();
    }
}

/// A set once walked a list that it had taken out of the lock, beside sleepers that timed out and left it.
#[test]
fn sets_and_deadlines_that_meet_lose_no_waiter() {
    everywhere(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        // Threads that are always awake leave little time to the setter.
        let rounds = few_or_many(300, 2000);
        let waiters: Vec<_> = (0..few_or_many(6, 40) as u64)
            .map(|seed| {
                let (event, stop) = (Arc::clone(&event), Arc::clone(&stop));
                beside(move || timed_waits(&event, &stop, seed))
            })
            .collect();
        storm(&event, rounds);
        stop.store(true, SeqCst);
        event.set();
        assert!(waiters.into_iter().map(Side::join).sum::<usize>() > 0);
        event.reset();
        assert!(!event.wait_timeout(Duration::ZERO), "and it still works");
    });
}

#[test]
fn sets_and_deadlines_that_meet_between_tasks_and_threads() {
    beside_runtimes(|runtime| {
        let (event, stop) = (ManualResetEvent::new(false), AtomicBool::new(false));
        thread::scope(|threads| {
            threads.spawn(|| {
                storm(&event, 500);
                stop.store(true, SeqCst);
                event.set();
            });
            for seed in 0..2 {
                let (event, stop) = (&event, &stop);
                threads.spawn(move || timed_waits(event, stop, seed));
            }
            runtime.run(|| {
                fibra::scope(|tasks| {
                    for seed in 2..20 {
                        let (event, stop) = (&event, &stop);
                        tasks.spawn(move || timed_waits(event, stop, seed));
                    }
                });
            });
        });
    });
}

#[test]
fn set_and_cancelled_at_once() {
    in_tasks(|| {
        for round in 0..1000 {
            let event = Arc::new(ManualResetEvent::new(false));
            let waiters: Vec<_> = (0..3)
                .map(|_| {
                    let event = Arc::clone(&event);
                    fibra::spawn(move || event.wait())
                })
                .collect();
            (0..round % 3).for_each(|_| fibra::yield_now());
            let victim = waiters[1].task().clone();
            let canceller = fibra::spawn(move || victim.cancel());
            if round % 2 == 0 {
                fibra::yield_now();
            }
            event.set();
            event.reset();
            canceller.join().unwrap();
            // Waiters that came after the reset wait for this set.
            event.set();
            let passed = waiters.into_iter().filter_map(|waiter| waiter.join().ok()).count();
            assert!(passed >= 2, "only the victim may be cancelled");
        }
    });
}

#[test]
fn it_says_what_it_is() {
    static START: ManualResetEvent = ManualResetEvent::new(true);
    assert_eq!(format!("{START:?}"), "ManualResetEvent { set: true, .. }");
}

fn _shared_and_sent(event: &ManualResetEvent) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<ManualResetEvent>();
    sent(event.wait_async());
}
