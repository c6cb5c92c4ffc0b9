//! What the semaphore promises; under races in `semaphore_races.rs`.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{beside, beside_runtimes, everywhere, give_way, guarded, in_tasks, pause, runtime};
use crate::future::{Woken, block_on, poll};
use fibra_runtime as fibra;
use fibra_sync::channel::Select;
use fibra_sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError, select};

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(60);

/// Waits for `count` permits beside the test, and writes down `name` once it has them.
fn requests(
    semaphore: &Arc<Semaphore>,
    count: usize,
    name: usize,
    log: &Arc<Mutex<Vec<usize>>>,
) -> crate::common::Side<()> {
    let (semaphore, log) = (Arc::clone(semaphore), Arc::clone(log));
    let side = beside(move || {
        let permit = semaphore.acquire_many(count).unwrap();
        log.lock().unwrap().push(name);
        permit.forget();
    });
    pause();
    side
}

#[test]
fn permits_are_taken_and_given_back() {
    everywhere(|| {
        let semaphore = Semaphore::new(2);
        let first = semaphore.acquire().unwrap();
        let second = semaphore.try_acquire().unwrap();
        assert_eq!(semaphore.available_permits(), 0);
        assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
        drop(first);
        assert_eq!(semaphore.available_permits(), 1);
        drop(second);
        assert_eq!(semaphore.available_permits(), 2);
        assert_eq!(semaphore.acquire_many(2).unwrap().num_permits(), 2);
    });
}

#[test]
fn at_most_as_many_are_inside_as_there_are_permits() {
    everywhere(|| {
        let (semaphore, inside) = (Arc::new(Semaphore::new(3)), Arc::new(AtomicUsize::new(0)));
        let sides: Vec<_> = (0..24)
            .map(|_| {
                let (semaphore, inside) = (Arc::clone(&semaphore), Arc::clone(&inside));
                beside(move || {
                    for _ in 0..40 {
                        let _permit = semaphore.acquire().unwrap();
                        assert!(inside.fetch_add(1, SeqCst) < 3);
                        give_way();
                        inside.fetch_sub(1, SeqCst);
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(crate::common::Side::join);
        assert_eq!(semaphore.available_permits(), 3);
    });
}

#[test]
fn tasks_and_threads_share_the_permits() {
    beside_runtimes(|runtime| {
        let (semaphore, inside) = (Arc::new(Semaphore::new(2)), Arc::new(AtomicUsize::new(0)));
        let work = |semaphore: &Semaphore, inside: &AtomicUsize| {
            for _ in 0..300 {
                let _permit = semaphore.acquire().unwrap();
                assert!(inside.fetch_add(1, SeqCst) < 2);
                give_way();
                inside.fetch_sub(1, SeqCst);
            }
        };
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| work(&semaphore, &inside));
            }
            runtime.run(|| {
                fibra::scope(|tasks| {
                    for _ in 0..12 {
                        tasks.spawn(|| work(&semaphore, &inside));
                    }
                });
            });
        });
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_waiter_gets_what_is_given_back() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let permit = semaphore.acquire().unwrap();
        let theirs = Arc::clone(&semaphore);
        let waiter = beside(move || theirs.acquire().unwrap().num_permits());
        pause();
        drop(permit);
        assert_eq!(waiter.join(), 1);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn a_permit_may_be_given_back_elsewhere() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&semaphore).acquire_owned().unwrap();
        let other = beside(move || drop(permit));
        assert_eq!(semaphore.acquire().unwrap().num_permits(), 1);
        other.join();
    });
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    everywhere(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(0)), Arc::default());
        let waiters: Vec<_> = (0..5).map(|name| requests(&semaphore, 1, name, &log)).collect();
        for served in 1..=5 {
            semaphore.add_permits(1);
            while log.lock().unwrap().len() < served {
                give_way();
            }
        }
        waiters.into_iter().for_each(crate::common::Side::join);
        assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_big_request_in_front_is_not_overtaken() {
    everywhere(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(2)), Arc::default());
        let big = requests(&semaphore, 5, 0, &log);
        let small = requests(&semaphore, 1, 1, &log);
        assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits, "others wait");
        semaphore.add_permits(2);
        pause();
        assert!(log.lock().unwrap().is_empty(), "four are free, and five are wanted");
        assert_eq!(semaphore.available_permits(), 4);
        semaphore.add_permits(1);
        big.join();
        pause();
        assert_eq!(*log.lock().unwrap(), [0]);
        semaphore.add_permits(1);
        small.join();
        assert_eq!(*log.lock().unwrap(), [0, 1]);
    });
}

#[test]
fn a_big_request_is_served_among_a_stream_of_small_ones() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(4));
        let done = Arc::new(AtomicUsize::new(0));
        let small: Vec<_> = (0..8)
            .map(|_| {
                let (semaphore, done) = (Arc::clone(&semaphore), Arc::clone(&done));
                beside(move || {
                    while done.load(SeqCst) == 0 {
                        let _permit = semaphore.acquire().unwrap();
                        give_way();
                    }
                })
            })
            .collect();
        for _ in 0..50 {
            let _all = semaphore.acquire_many(4).unwrap();
            assert_eq!(semaphore.available_permits(), 0);
            give_way();
        }
        done.store(1, SeqCst);
        small.into_iter().for_each(crate::common::Side::join);
        assert_eq!(semaphore.available_permits(), 4);
    });
}

#[test]
fn many_are_served_by_what_is_added_at_once() {
    everywhere(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(0)), Arc::default());
        let waiters: Vec<_> = (1..=4).map(|count| requests(&semaphore, count, count, &log)).collect();
        semaphore.add_permits(11);
        waiters.into_iter().for_each(crate::common::Side::join);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn a_big_request_that_times_out_lets_those_behind_it_through() {
    everywhere(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(2)), Arc::default());
        let theirs = Arc::clone(&semaphore);
        let big = beside(move || theirs.acquire_many_timeout(3, Duration::from_millis(40)).is_err());
        pause();
        let small = [requests(&semaphore, 1, 1, &log), requests(&semaphore, 1, 2, &log)];
        assert!(big.join());
        small.into_iter().for_each(crate::common::Side::join);
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn a_big_request_that_is_cancelled_lets_those_behind_it_through() {
    in_tasks(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(2)), Arc::default());
        let theirs = Arc::clone(&semaphore);
        let big = fibra::spawn(move || theirs.acquire_many(3).unwrap().forget());
        pause();
        let small = [requests(&semaphore, 1, 1, &log), requests(&semaphore, 1, 2, &log)];
        assert!(log.lock().unwrap().is_empty());
        big.task().cancel();
        assert!(big.join().unwrap_err().is_cancelled());
        small.into_iter().for_each(crate::common::Side::join);
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn a_dropped_future_of_a_big_request_lets_later_requests_through() {
    everywhere(|| {
        let (semaphore, log, woken) = (Arc::new(Semaphore::new(1)), Arc::default(), Arc::default());
        let mut big = Box::pin(semaphore.acquire_many_async(2));
        assert!(poll(big.as_mut(), &woken).is_pending());
        let small = requests(&semaphore, 1, 1, &log);
        assert!(log.lock().unwrap().is_empty());
        drop(big);
        small.join();
        assert_eq!((semaphore.available_permits(), woken.times()), (0, 0));
    });
}

#[test]
fn a_request_for_none_never_waits() {
    everywhere(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(0)), Arc::default());
        let waiter = requests(&semaphore, 1, 0, &log);
        assert_eq!(semaphore.acquire_many(0).unwrap().num_permits(), 0);
        assert_eq!(semaphore.try_acquire_many(0).unwrap().num_permits(), 0);
        semaphore.add_permits(0);
        pause();
        assert!(log.lock().unwrap().is_empty());
        semaphore.add_permits(1);
        waiter.join();
    });
}

#[test]
fn a_wait_that_times_out_takes_nothing() {
    everywhere(|| {
        let semaphore = Semaphore::new(1);
        let at = Instant::now();
        assert!(semaphore.acquire_many_timeout(2, SHORT).is_err());
        assert!(at.elapsed() >= SHORT);
        assert!(semaphore.acquire_many_deadline(2, Instant::now() + SHORT).is_err());
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.acquire_timeout(Duration::ZERO).is_ok(), "it need not wait");
        assert!(semaphore.acquire_deadline(at).is_ok());
        assert!(semaphore.acquire_timeout(Duration::MAX).is_ok());
        let semaphore = Arc::new(semaphore);
        let ours = || Arc::clone(&semaphore);
        type Request = fn(Arc<Semaphore>) -> Result<OwnedSemaphorePermit, TryAcquireError>;
        let owned: [Request; 4] = [
            |semaphore| semaphore.acquire_owned_timeout(SHORT),
            |semaphore| semaphore.acquire_many_owned_timeout(1, SHORT),
            |semaphore| semaphore.acquire_owned_deadline(Instant::now() + SHORT),
            |semaphore| semaphore.acquire_many_owned_deadline(1, Instant::now() + SHORT),
        ];
        for acquire in owned {
            let permit = acquire(ours()).expect("it need not wait");
            let begin = Instant::now();
            assert!(acquire(ours()).is_err() && begin.elapsed() >= SHORT);
            drop(permit);
            assert_eq!(semaphore.available_permits(), 1);
        }
    });
}

#[test]
fn a_wait_with_a_timeout_ends_when_it_is_served() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let theirs = Arc::clone(&semaphore);
        let waiter = beside(move || theirs.acquire_timeout(LONG).map(SemaphorePermit::forget).is_ok());
        pause();
        semaphore.add_permits(1);
        assert!(waiter.join());
    });
}

#[test]
fn a_forgotten_permit_is_not_given_back() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(5));
        semaphore.acquire_many(2).unwrap().forget();
        Arc::clone(&semaphore).acquire_owned().unwrap().forget();
        assert_eq!(semaphore.available_permits(), 2);
        semaphore.add_permits(3);
        assert_eq!(semaphore.available_permits(), 5);
    });
}

#[test]
fn only_free_permits_can_be_taken_away() {
    everywhere(|| {
        let (semaphore, log) = (Arc::new(Semaphore::new(5)), Arc::default());
        let permit = semaphore.acquire_many(2).unwrap();
        assert_eq!(semaphore.forget_permits(1), 1);
        assert_eq!(semaphore.forget_permits(9), 2);
        assert_eq!(semaphore.forget_permits(9), 0);
        drop(permit);
        assert_eq!(semaphore.available_permits(), 2);
        let waiter = requests(&semaphore, 3, 0, &log);
        assert_eq!(semaphore.forget_permits(1), 1, "also with a waiter");
        semaphore.add_permits(2);
        waiter.join();
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn permits_can_be_merged_and_split() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(9));
        let mut permit = semaphore.acquire_many(4).unwrap();
        permit.merge(semaphore.acquire().unwrap());
        assert_eq!(permit.num_permits(), 5);
        let part = permit.split(2).unwrap();
        assert!(permit.split(4).is_none());
        assert_eq!((permit.num_permits(), part.num_permits()), (3, 2));
        drop(permit);
        assert_eq!(semaphore.available_permits(), 7);
        let mut owned = Arc::clone(&semaphore).acquire_many_owned(3).unwrap();
        owned.merge(Arc::clone(&semaphore).try_acquire_owned().unwrap());
        drop(owned.split(1));
        assert!(owned.split(4).is_none());
        assert!(Arc::ptr_eq(owned.semaphore(), &semaphore));
        assert_eq!((owned.num_permits(), semaphore.available_permits()), (3, 4));
    });
}

#[test]
fn permits_of_two_semaphores_cannot_be_merged() {
    let (one, two) = (Semaphore::new(1), Semaphore::new(1));
    let (mut mine, foreign) = (one.acquire().unwrap(), two.acquire().unwrap());
    assert!(catch_unwind(AssertUnwindSafe(|| mine.merge(foreign))).is_err());
    drop(mine);
    assert_eq!((one.available_permits(), two.available_permits()), (1, 1));
}

#[test]
fn permits_over_the_maximum_panic_and_change_nothing() {
    const MAX: usize = Semaphore::MAX_PERMITS;
    assert!(catch_unwind(|| Semaphore::new(MAX + 1)).is_err());
    let semaphore = Semaphore::new(MAX - 1);
    let refused = |f: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    refused(&|| semaphore.add_permits(2));
    refused(&|| semaphore.add_permits(usize::MAX));
    refused(&|| semaphore.acquire_many(MAX + 1).unwrap().forget());
    refused(&|| semaphore.try_acquire_many(MAX + 1).unwrap().forget());
    assert_eq!(semaphore.available_permits(), MAX - 1);
    semaphore.add_permits(1);
    assert_eq!(semaphore.acquire_many(MAX).unwrap().num_permits(), MAX);
    assert_eq!(semaphore.available_permits(), MAX);
}

#[test]
fn permits_over_the_maximum_panic_also_with_a_waiter() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(7));
        let theirs = Arc::clone(&semaphore);
        let waiter = beside(move || theirs.acquire_many(Semaphore::MAX_PERMITS).unwrap().forget());
        pause();
        let over = || semaphore.add_permits(Semaphore::MAX_PERMITS);
        assert!(catch_unwind(over).is_err());
        assert_eq!(semaphore.available_permits(), 7);
        semaphore.add_permits(Semaphore::MAX_PERMITS - 7);
        waiter.join();
    });
}

#[test]
fn a_task_that_is_cancelled_holds_no_permit() {
    in_tasks(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let theirs = Arc::clone(&semaphore);
        let waiter = fibra::spawn(move || theirs.acquire().unwrap().forget());
        pause();
        waiter.task().cancel();
        assert!(waiter.join().unwrap_err().is_cancelled());
        semaphore.add_permits(1);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn acquiring_is_a_cancellation_point_also_when_permits_are_free() {
    in_tasks(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let theirs = Arc::clone(&semaphore);
        let task = fibra::spawn(move || {
            fibra::task::current().cancel();
            theirs.acquire().unwrap().forget();
        });
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn a_permit_is_given_back_when_its_task_panics_or_is_cancelled() {
    in_tasks(|| {
        let semaphore = Arc::new(Semaphore::new(2));
        let theirs = [Arc::clone(&semaphore), Arc::clone(&semaphore)];
        let [panics, sleeps] = theirs;
        let panics = fibra::spawn(move || {
            let _permit = panics.acquire().unwrap();
            std::panic::resume_unwind(Box::new(()));
        });
        let sleeps = fibra::spawn(move || {
            let _permit = sleeps.acquire().unwrap();
            fibra::sleep(LONG);
        });
        assert!(panics.join().unwrap_err().is_panic());
        pause();
        sleeps.task().cancel();
        assert!(sleeps.join().is_err());
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_loop_over_free_permits_starves_no_task() {
    guarded(|| {
        runtime(1).run(|| {
            let semaphore = Arc::new(Semaphore::new(1));
            let done = Arc::new(AtomicUsize::new(0));
            let (theirs, ended) = (Arc::clone(&semaphore), Arc::clone(&done));
            let greedy = fibra::spawn(move || {
                while ended.load(SeqCst) == 0 {
                    drop(theirs.acquire().unwrap());
                }
            });
            fibra::yield_now();
            done.store(1, SeqCst);
            greedy.join().unwrap();
        });
    });
}

#[test]
fn a_future_gets_a_permit() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(2));
        assert_eq!(block_on(semaphore.acquire_many_async(2)).unwrap().num_permits(), 2);
        let woken = Arc::new(Woken::default());
        let first = semaphore.acquire_many(2).unwrap();
        let mut one = pin!(semaphore.acquire_async());
        let mut owned = Box::pin(Arc::clone(&semaphore).acquire_owned_async());
        assert!(poll(one.as_mut(), &woken).is_pending() && poll(owned.as_mut(), &woken).is_pending());
        drop(first);
        assert_eq!(woken.times(), 2);
        assert!(matches!(poll(one.as_mut(), &woken), Poll::Ready(Ok(permit)) if permit.num_permits() == 1));
        assert!(matches!(poll(owned.as_mut(), &woken), Poll::Ready(Ok(permit)) if permit.num_permits() == 1));
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_future_that_is_dropped_with_its_permit_passes_it_on() {
    everywhere(|| {
        let semaphore = Semaphore::new(0);
        let woken = [Arc::default(), Arc::default()];
        let mut first = Box::pin(semaphore.acquire_async());
        let mut second = Box::pin(semaphore.acquire_async());
        assert!(
            poll(first.as_mut(), &woken[0]).is_pending() && poll(second.as_mut(), &woken[1]).is_pending()
        );
        semaphore.add_permits(1);
        assert_eq!(woken.each_ref().map(|woken| woken.times()), [1, 0]);
        drop(first);
        assert_eq!(woken[1].times(), 1);
        drop(second);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

static GLOBAL: Semaphore = Semaphore::new(1);

#[test]
fn it_may_be_a_static() {
    let permit: SemaphorePermit<'static> = GLOBAL.acquire().unwrap();
    thread::spawn(move || drop(permit)).join().unwrap();
    assert_eq!(GLOBAL.available_permits(), 1);
}

#[test]
fn it_says_what_it_is() {
    let semaphore = Arc::new(Semaphore::new(3));
    assert_eq!(format!("{semaphore:?}"), "Semaphore { permits: 3, .. }");
    assert_eq!(format!("{:?}", semaphore.acquire().unwrap()), "SemaphorePermit { permits: 1, .. }");
    assert_eq!(TryAcquireError::NoPermits.to_string(), "no permits available");
    assert_eq!(TryAcquireError::Closed.to_string(), "semaphore closed");
    assert!(size_of::<Semaphore>() <= 24);
}

fn _shared_and_sent(semaphore: &Arc<Semaphore>) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<(Semaphore, SemaphorePermit<'_>, OwnedSemaphorePermit)>();
    sent(semaphore.acquire_async());
    sent(Arc::clone(semaphore).acquire_many_owned_async(1));
}

#[test]
fn permits_that_were_forgotten_do_not_come_back_with_a_dropped_future() {
    everywhere(|| {
        let semaphore = Semaphore::new(0);
        let mut request = Box::pin(semaphore.acquire_async());
        assert!(poll(request.as_mut(), &Arc::default()).is_pending());
        semaphore.add_permits(3);
        assert_eq!(semaphore.forget_permits(9), 2, "the third was served");
        drop(request);
        assert_eq!(semaphore.available_permits(), 1, "of three permits two were forgotten");
        assert_eq!(semaphore.forget_permits(9), 1);
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn a_close_fails_all_that_wait_and_all_that_come_later() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.acquire().unwrap();
        let wait = |request: fn(&Arc<Semaphore>) -> bool| {
            let semaphore = Arc::clone(&semaphore);
            beside(move || request(&semaphore))
        };
        let waiters = [
            wait(|semaphore| semaphore.acquire().is_err()),
            wait(|semaphore| semaphore.acquire_many(2).is_err()),
            wait(|semaphore| Arc::clone(semaphore).acquire_owned().is_err()),
            wait(|semaphore| semaphore.acquire_timeout(LONG).err() == Some(TryAcquireError::Closed)),
            wait(|semaphore| select! { wait(semaphore) -> permit => permit.is_err() }),
        ];
        let woken = Arc::new(Woken::default());
        let mut future = Box::pin(semaphore.acquire_async());
        let mut dropped = Box::pin(semaphore.acquire_async());
        assert!(poll(future.as_mut(), &woken).is_pending() && poll(dropped.as_mut(), &woken).is_pending());
        pause();
        assert!(!semaphore.is_closed());
        semaphore.close();
        assert!(semaphore.is_closed());
        assert!(waiters.into_iter().all(|waiter| waiter.join()));
        assert_eq!(woken.times(), 2);
        drop(dropped);
        assert!(matches!(poll(future.as_mut(), &woken), Poll::Ready(Err(_))));

        drop(held);
        assert_eq!(semaphore.available_permits(), 1, "what is given back counts");
        semaphore.add_permits(2);
        semaphore.close();
        assert!(semaphore.acquire().is_err() && semaphore.acquire_many(0).is_err());
        assert_eq!(semaphore.try_acquire().err(), Some(TryAcquireError::Closed));
        assert_eq!(semaphore.acquire_timeout(Duration::ZERO).err(), Some(TryAcquireError::Closed));
        assert!(block_on(semaphore.acquire_async()).is_err());
        select! {
            wait(semaphore) -> permit => assert!(permit.is_err()),
            default => panic!("it is closed"),
        }
        assert_eq!(semaphore.forget_permits(9), 3);
    });
}

#[test]
fn an_operation_on_a_closed_semaphore_gives_back_no_permit() {
    everywhere(|| {
        let semaphore = Semaphore::new(0);
        semaphore.close();
        let mut select = Select::new();
        select.wait(&semaphore);
        assert!(select.select().wait(&semaphore).is_err());
        let operation = select.select();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(operation))).is_err(), "it was not completed");
        assert_eq!(semaphore.available_permits(), 0);
    });
}
