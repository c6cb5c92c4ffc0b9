//! What the countdown event promises.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Side, beside, beside_runtimes, everywhere, in_tasks, in_time_and_late, pause};
use crate::future::{block_on, poll};
use fibra_runtime as fibra;
use fibra_sync::CountdownEvent;

const SHORT: Duration = Duration::from_millis(5);

fn refused(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

#[test]
fn it_is_set_by_the_last_signal() {
    everywhere(|| {
        let event = CountdownEvent::new(3);
        assert!(!event.signal());
        assert!(!event.is_set() && event.count() == 2 && !event.wait_timeout(SHORT));
        assert!(event.signal_many(2));
        assert!(event.is_set() && event.count() == 0);
        event.wait();
        assert!(event.wait_deadline(Instant::now()) && event.wait_timeout(Duration::MAX));
    });
}

#[test]
fn counting_from_zero_it_is_set_at_once() {
    everywhere(|| {
        let event = CountdownEvent::new(0);
        event.wait();
        assert!(event.is_set());
        assert!(!event.signal_many(0));
    });
}

#[test]
fn waiters_go_on_together_and_see_what_was_done_before_each_signal() {
    everywhere(|| {
        for _ in 0..20 {
            let shared = Arc::new((CountdownEvent::new(10), AtomicUsize::new(0)));
            let sides = |work: fn(&(CountdownEvent, AtomicUsize))| {
                let shared = Arc::clone(&shared);
                beside(move || work(&shared))
            };
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    sides(|(event, done)| {
                        event.wait();
                        assert_eq!(done.load(Relaxed), 10);
                    })
                })
                .collect();
            let workers: Vec<_> = (0..10)
                .map(|_| {
                    sides(|(event, done)| {
                        done.fetch_add(1, Relaxed);
                        event.signal();
                    })
                })
                .collect();
            waiters.into_iter().chain(workers).for_each(Side::join);
        }
    });
}

#[test]
fn one_that_is_counted_may_count_others_in() {
    everywhere(|| {
        let event = Arc::new(CountdownEvent::new(1));
        let theirs = Arc::clone(&event);
        let first = beside(move || {
            theirs.add_many(4);
            let others: Vec<_> = (0..4)
                .map(|_| {
                    let event = Arc::clone(&theirs);
                    beside(move || event.signal())
                })
                .collect();
            let last = others.into_iter().filter_map(|other| other.join().then_some(())).count();
            last + usize::from(theirs.signal())
        });
        event.wait();
        assert_eq!(first.join(), 1, "one signal was the last");
    });
}

#[test]
fn a_countdown_below_zero_panics_and_changes_nothing() {
    let event = CountdownEvent::new(2);
    refused(|| assert!(event.signal_many(3)));
    assert_eq!(event.count(), 2);
    event.signal_many(2);
    refused(|| assert!(event.signal()));
    assert_eq!(event.count(), 0);
}

#[test]
fn at_zero_it_stays() {
    let event = CountdownEvent::new(1);
    event.add();
    assert!(event.try_add());
    assert_eq!(event.count(), 3);
    refused(|| event.add_many(usize::MAX));
    event.signal_many(3);
    refused(|| event.add());
    refused(|| event.add_many(2));
    assert!(!event.try_add() && !event.try_add_many(5));
    assert!(event.is_set());
}

#[test]
fn a_cancelled_wait_leaves_the_count_as_it_is() {
    in_tasks(|| {
        let event = Arc::new(CountdownEvent::new(1));
        let theirs = Arc::clone(&event);
        let waiter = fibra::spawn(move || theirs.wait());
        pause();
        waiter.task().cancel();
        assert!(waiter.join().unwrap_err().is_cancelled());
        assert_eq!(event.count(), 1);
        assert!(event.signal());
    });
}

#[test]
fn tasks_and_threads_count_together() {
    beside_runtimes(|runtime| {
        let event = CountdownEvent::new(60);
        let signal = || event.signal();
        thread::scope(|threads| {
            (0..10).for_each(|_| drop(threads.spawn(signal)));
            threads.spawn(|| event.wait());
            runtime.run(|| {
                fibra::scope(|tasks| {
                    (0..50).for_each(|_| drop(tasks.spawn(signal)));
                    event.wait();
                });
            });
        });
        assert!(event.is_set());
    });
}

#[test]
fn futures_wait_too() {
    everywhere(|| {
        let event = CountdownEvent::new(1);
        let woken = [Arc::default(), Arc::default()];
        let mut first = Box::pin(event.wait_async());
        let mut second = pin!(event.wait_async());
        assert!(
            poll(first.as_mut(), &woken[0]).is_pending() && poll(second.as_mut(), &woken[1]).is_pending()
        );
        drop(first);
        event.signal();
        assert_eq!((woken[0].times(), woken[1].times()), (0, 1));
        assert!(poll(second.as_mut(), &woken[1]).is_ready());
        block_on(event.wait_async());
    });
}

#[test]
fn of_two_signals_at_once_one_is_the_last_and_wakes() {
    everywhere(|| {
        for _ in 0..300 {
            let event = Arc::new(CountdownEvent::new(2));
            let [theirs, waited] = [(); 2].map(|()| Arc::clone(&event));
            let waiter = beside(move || waited.wait());
            let other = beside(move || theirs.signal());
            let last = event.signal();
            assert!(last != other.join(), "one of the two was the last");
            waiter.join();
        }
    });
}

#[test]
fn the_last_signal_and_a_deadline_at_once() {
    let wait = |event: &CountdownEvent, time: Option<Duration>| match time {
        Some(time) => event.wait_timeout(time),
        None => {
            event.wait();
            true
        }
    };
    in_time_and_late(|| CountdownEvent::new(2), wait, |event| assert!(!event.signal() && event.signal()));
}

#[test]
fn it_says_what_it_is() {
    static LOADED: CountdownEvent = CountdownEvent::new(3);
    assert_eq!(format!("{LOADED:?}"), "CountdownEvent { count: 3, .. }");
}

fn _shared_and_sent(event: &CountdownEvent) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<CountdownEvent>();
    sent(event.wait_async());
}
