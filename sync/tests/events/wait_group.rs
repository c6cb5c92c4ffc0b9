//! What the wait group promises.

use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    Side, beside, beside_runtimes, everywhere, few_or_many, give_way, in_tasks, in_time_and_late, pause,
};
use crate::future::{block_on, poll};
use fibra_runtime as fibra;
use fibra_sync::{Mutex, OwnedWorker, WaitGroup, WaitGroupGuard};

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn without_workers_no_wait_blocks() {
    everywhere(|| {
        let group = WaitGroup::default();
        group.wait();
        assert!(group.wait_timeout(Duration::ZERO) && group.wait_deadline(Instant::now()));
        group.add(0);
        group.wait();
        block_on(group.wait_async());
    });
}

#[test]
fn a_wait_ends_when_all_are_done() {
    everywhere(|| {
        let group = Arc::new(WaitGroup::new());
        let done = Arc::new(AtomicUsize::new(0));
        group.add(20);
        let workers: Vec<_> = (0..20)
            .map(|_| {
                let (group, done) = (Arc::clone(&group), Arc::clone(&done));
                beside(move || {
                    give_way();
                    done.fetch_add(1, Relaxed);
                    group.done();
                })
            })
            .collect();
        group.wait();
        assert_eq!(done.load(Relaxed), 20);
        workers.into_iter().for_each(Side::join);
    });
}

#[test]
fn guards_count_in_and_out() {
    everywhere(|| {
        let group = Arc::new(WaitGroup::new());
        let (one, two) = (group.worker(), Arc::clone(&group).worker_owned());
        assert_eq!(group.count(), 2);
        drop(one);
        assert!(!group.wait_timeout(SHORT) && !group.wait_deadline(Instant::now()));
        let worker = beside(move || drop(two));
        group.wait();
        worker.join();
    });
}

#[test]
fn a_worker_that_panics_or_is_cancelled_is_done() {
    in_tasks(|| {
        let group = Arc::new(WaitGroup::new());
        let busy = [(); 2].map(|()| Arc::clone(&group).worker_owned());
        let [panics, sleeps] = busy;
        let panics = fibra::spawn(move || {
            let _busy = panics;
            std::panic::resume_unwind(Box::new(()));
        });
        let sleeps = fibra::spawn(move || {
            let _busy = sleeps;
            fibra::sleep(LONG);
        });
        pause();
        sleeps.task().cancel();
        group.wait();
        assert!(panics.join().is_err() && sleeps.join().is_err());
    });
}

#[test]
fn it_may_be_used_again_and_again() {
    everywhere(|| {
        let (group, done) = (Arc::new(WaitGroup::new()), Arc::new(AtomicUsize::new(0)));
        for round in 1..=50 {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    let (busy, done) = (Arc::clone(&group).worker_owned(), Arc::clone(&done));
                    beside(move || {
                        done.fetch_add(1, Relaxed);
                        drop(busy);
                    })
                })
                .collect();
            group.wait();
            assert_eq!(done.load(Relaxed), 4 * round);
            workers.into_iter().for_each(Side::join);
        }
    });
}

#[test]
fn while_a_permit_changes_hands_no_other_task_passes() {
    everywhere(|| {
        let group = Arc::new(WaitGroup::new());
        let place = Arc::new(Mutex::new(Some(Arc::clone(&group).worker_owned())));
        let waiters = [(); 2].map(|()| {
            let (group, place) = (Arc::clone(&group), Arc::clone(&place));
            beside(move || {
                group.wait();
                assert!(place.lock().is_none());
            })
        });
        let workers: Vec<_> = (0..few_or_many(3, 20))
            .map(|_| {
                let (group, place) = (Arc::clone(&group), Arc::clone(&place));
                beside(move || {
                    for _ in 0..200 {
                        // The next one is counted in before the former is counted out.
                        let next = Arc::clone(&group).worker_owned();
                        let former = place.lock().replace(next);
                        assert!(!group.wait_timeout(Duration::ZERO));
                        drop(former);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(Side::join);
        assert_eq!(group.count(), 1);
        *place.lock() = None;
        waiters.into_iter().for_each(Side::join);
    });
}

#[test]
fn waiters_go_on_also_when_members_are_added_at_once() {
    everywhere(|| {
        // Futures: whether a task or a thread sleeps yet cannot be told.
        let (group, woken) = (WaitGroup::new(), Arc::default());
        group.add(1);
        let mut waiters: Vec<_> = (0..5).map(|_| Box::pin(group.wait_async())).collect();
        assert!(waiters.iter_mut().all(|waiter| poll(waiter.as_mut(), &woken).is_pending()));
        group.done();
        group.add(1);
        assert_eq!(woken.times(), 5);
        assert!(waiters.iter_mut().all(|waiter| poll(waiter.as_mut(), &woken).is_ready()));
        assert!(!group.wait_timeout(Duration::ZERO));
        group.done();
    });
}

#[test]
fn a_group_below_zero_panics_and_changes_nothing() {
    let group = WaitGroup::new();
    assert!(catch_unwind(|| group.done()).is_err());
    group.add(2);
    assert!(catch_unwind(|| group.add(usize::MAX)).is_err());
    group.done();
    group.done();
    assert!(catch_unwind(|| group.done()).is_err());
    assert_eq!(group.count(), 0);
}

#[test]
fn tasks_and_threads_are_one_group() {
    beside_runtimes(|runtime| {
        let group = WaitGroup::new();
        group.add(60);
        thread::scope(|threads| {
            (0..10).for_each(|_| drop(threads.spawn(|| group.done())));
            threads.spawn(|| group.wait());
            runtime.run(|| {
                fibra::scope(|tasks| (0..50).for_each(|_| drop(tasks.spawn(|| group.done()))));
                group.wait();
            });
        });
    });
}

#[test]
fn futures_wait_too() {
    everywhere(|| {
        let group = WaitGroup::new();
        let woken = [Arc::default(), Arc::default()];
        let busy = group.worker();
        let mut first = Box::pin(group.wait_async());
        let mut second = Box::pin(group.wait_async());
        assert!(
            poll(first.as_mut(), &woken[0]).is_pending() && poll(second.as_mut(), &woken[1]).is_pending()
        );
        drop(first);
        drop(busy);
        assert_eq!((woken[0].times(), woken[1].times()), (0, 1));
        assert!(poll(second.as_mut(), &woken[1]).is_ready());
    });
}

#[test]
fn done_and_timed_out_at_once() {
    let busy = || {
        let group = WaitGroup::new();
        group.add(2);
        group
    };
    let wait = |group: &WaitGroup, time: Option<Duration>| match time {
        Some(time) => group.wait_timeout(time),
        None => {
            group.wait();
            true
        }
    };
    in_time_and_late(busy, wait, |group| (0..2).for_each(|_| group.done()));
}

#[test]
fn it_says_what_it_is() {
    static GROUP: WaitGroup = WaitGroup::new();
    assert_eq!(format!("{GROUP:?}"), "WaitGroup { count: 0, .. }");
}

fn _shared_and_sent(group: &WaitGroup) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<(WaitGroup, WaitGroupGuard<'_>, OwnedWorker)>();
    sent(group.wait_async());
}
