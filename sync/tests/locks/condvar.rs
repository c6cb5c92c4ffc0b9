//! What `Condvar` promises; `condvar_queue.rs` has a queue of two of them.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    Side, beside, beside_runtimes, everywhere, few_or_many, give_way, guarded, in_tasks, pause, runtime,
    until,
};
use crate::message::message;
use crate::paused::paused;
use fibra_sync::{Condvar, Mutex};

const LONG: Duration = Duration::from_secs(1000);

/// A value and a condition on it.
struct Shared<T> {
    value: Mutex<T>,
    changed: Condvar,
    /// How many have come to wait; counted with the mutex locked, so the next locker finds them waiting.
    waiting: AtomicUsize,
}

impl<T: Send + 'static> Shared<T> {
    fn new(value: T) -> Arc<Self> {
        Arc::new(Shared { value: Mutex::new(value), changed: Condvar::new(), waiting: AtomicUsize::new(0) })
    }

    /// Starts one that waits once, and does `then`.
    fn waiter<R: Send + 'static>(
        self: &Arc<Self>,
        then: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Side<R> {
        let shared = Arc::clone(self);
        beside(move || {
            let mut guard = shared.value.lock();
            shared.waiting.fetch_add(1, Relaxed);
            shared.changed.wait(&mut guard);
            then(&mut guard)
        })
    }

    /// Until `count` wait, or have waited.
    fn await_waiters(&self, count: usize) {
        loop {
            let guard = self.value.lock();
            if self.waiting.load(Relaxed) >= count {
                return;
            }
            drop(guard);
            give_way();
        }
    }
}

/// Never called: where it may go.
fn _assert_bounds() {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    all::<Condvar>();
}

#[test]
fn a_notification_without_waiters_does_nothing() {
    everywhere(|| {
        let condvar = Condvar::new();
        assert!(!condvar.notify_one());
        assert_eq!(condvar.notify_all(), 0);
        assert_eq!(format!("{condvar:?}"), "Condvar { .. }");
        let mutex = Mutex::new(());
        // Not kept for later.
        assert!(condvar.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out());
    });
}

#[test]
fn one_notification_wakes_one_and_says_so() {
    everywhere(|| {
        let shared = Shared::new(0);
        let sides: Vec<_> = (0..3).map(|_| shared.waiter(|count| *count += 1)).collect();
        shared.await_waiters(3);
        for expected in 1..=3 {
            assert!(shared.changed.notify_one());
            while *shared.value.lock() < expected {
                give_way();
            }
            pause();
            assert_eq!(*shared.value.lock(), expected);
        }
        assert!(!shared.changed.notify_one());
        sides.into_iter().for_each(|side| side.join());
    });
}

#[test]
fn notifying_all_wakes_all_and_counts_them() {
    everywhere(|| {
        let shared = Shared::new(0);
        let sides: Vec<_> = (0..10).map(|_| shared.waiter(|count| *count += 1)).collect();
        shared.await_waiters(10);
        assert_eq!(shared.changed.notify_all(), 10);
        assert_eq!(shared.changed.notify_all(), 0);
        sides.into_iter().for_each(|side| side.join());
        assert_eq!(*shared.value.lock(), 10);
    });
}

#[test]
fn many_more_than_workers_are_notified_at_once() {
    in_tasks(|| {
        let shared = Shared::new(0);
        let sides: Vec<_> = (0..1000).map(|_| shared.waiter(|count| *count += 1)).collect();
        shared.await_waiters(1000);
        let guard = shared.value.lock();
        assert_eq!(shared.changed.notify_all(), 1000);
        pause();
        assert_eq!(*guard, 0, "notified, but the mutex is locked");
        drop(guard);
        sides.into_iter().for_each(|side| side.join());
        assert_eq!(*shared.value.lock(), 1000);
    });
}

#[test]
fn of_many_waiters_some_are_notified_one_by_one_and_the_rest_at_once() {
    everywhere(|| {
        let count = few_or_many(20, 200);
        let shared = Shared::new(0);
        // Most of them are still on their way when the first is notified.
        let tasks: Vec<_> = (0..count).map(|_| shared.waiter(|woken| *woken += 1)).collect();
        let mut told = 0;
        while told < count / 2 {
            told += usize::from(shared.changed.notify_one());
            until(|| *shared.value.lock() >= told);
            assert_eq!(*shared.value.lock(), told);
        }
        while told < count {
            told += shared.changed.notify_all();
            give_way();
        }
        tasks.into_iter().for_each(Side::join);
        assert_eq!((*shared.value.lock(), told), (count, count));
    });
}

#[test]
fn waiters_are_notified_in_the_order_in_which_they_came() {
    everywhere(|| {
        let shared = Shared::new(Vec::new());
        let sides: Vec<_> = (0..6)
            .map(|number| {
                let side = shared.waiter(move |order: &mut Vec<usize>| order.push(number));
                shared.await_waiters(number + 1);
                side
            })
            .collect();
        for expected in 1..=6 {
            assert!(shared.changed.notify_one());
            while shared.value.lock().len() < expected {
                give_way();
            }
        }
        sides.into_iter().for_each(|side| side.join());
        assert!(shared.value.lock().is_sorted());
    });
}

#[test]
fn notified_under_the_mutex_they_are_served_when_it_is_unlocked() {
    everywhere(|| {
        let shared = Shared::new(0);
        let side = shared.waiter(|value| *value);
        shared.await_waiters(1);
        let mut guard = shared.value.lock();
        assert!(shared.changed.notify_one());
        *guard = 7;
        pause();
        drop(guard);
        assert_eq!(side.join(), 7);
    });
}

#[test]
fn without_a_notification_a_wait_goes_on() {
    everywhere(|| {
        let shared = Shared::new(false);
        let side = shared.waiter(|notified| assert!(*notified));
        shared.await_waiters(1);
        for _ in 0..20 {
            drop(shared.value.lock());
            give_way();
        }
        pause();
        *shared.value.lock() = true;
        shared.changed.notify_one();
        side.join();
    });
}

#[test]
fn a_timed_wait_gives_up_in_its_time_with_the_mutex_locked() {
    everywhere(|| {
        let shared = Shared::new(());
        let mut guard = shared.value.lock();
        let begin = Instant::now();
        assert!(shared.changed.wait_for(&mut guard, Duration::from_millis(5)).timed_out());
        assert!(begin.elapsed() >= Duration::from_millis(5));
        assert!(shared.changed.wait_until(&mut guard, begin).timed_out(), "a deadline in the past");
        assert!(shared.value.try_lock().is_none());
        drop(guard);
        assert!(!shared.changed.notify_one(), "no waiter is left");
        assert!(shared.value.try_lock().is_some());
    });
}

#[test]
fn a_timed_wait_is_notified_in_its_time() {
    everywhere(|| {
        for timeout in [LONG, Duration::MAX] {
            let shared = Shared::new(());
            let other = Arc::clone(&shared);
            let side = beside(move || {
                let mut guard = other.value.lock();
                other.waiting.fetch_add(1, Relaxed);
                other.changed.wait_for(&mut guard, timeout).timed_out()
            });
            shared.await_waiters(1);
            assert!(shared.changed.notify_one());
            assert!(!side.join());
        }
    });
}

#[test]
fn a_deadline_that_passes_in_the_line_is_no_timeout() {
    let passes = |is_virtual: bool| {
        let shared = Shared::new(());
        let other = Arc::clone(&shared);
        let side = beside(move || {
            let mut guard = other.value.lock();
            other.waiting.fetch_add(1, Relaxed);
            other.changed.wait_for(&mut guard, Duration::from_millis(200)).timed_out()
        });
        shared.await_waiters(1);
        let guard = shared.value.lock();
        let notified = shared.changed.notify_one();
        // On a machine too busy the time has run out before.
        assert!(notified || !is_virtual);
        if notified {
            match wait_in_task() {
                true => fibra_runtime::sleep(Duration::from_millis(220)),
                false => thread::sleep(Duration::from_millis(220)),
            }
        }
        drop(guard);
        assert_eq!(side.join(), !notified);
    };
    guarded(|| passes(false));
    guarded(|| runtime(2).run(|| passes(false)));
    paused(|| passes(true));
}

fn wait_in_task() -> bool {
    fibra_runtime::wait::in_task()
}

#[test]
fn a_wait_while_looks_before_and_after_each_wait() {
    everywhere(|| {
        let shared = Shared::new(0);
        let mut looks = 0;
        shared.changed.wait_while(&mut shared.value.lock(), |_| {
            looks += 1;
            false
        });
        assert_eq!(looks, 1, "true already: no wait");
        let other = Arc::clone(&shared);
        let side = beside(move || {
            let mut looks = 0;
            let mut guard = other.value.lock();
            other.changed.wait_while(&mut guard, |value| {
                looks += 1;
                other.waiting.store(looks, Relaxed);
                *value < 3
            });
            (looks, *guard)
        });
        for value in 1..=3 {
            shared.await_waiters(value);
            *shared.value.lock() = value;
            assert!(shared.changed.notify_one());
        }
        assert_eq!(side.join(), (4, 3));
    });
}

#[test]
fn a_timed_wait_while_looks_once_more_when_its_time_ends() {
    everywhere(|| {
        let shared = Shared::new(());
        let mut guard = shared.value.lock();
        let mut looks = 0;
        let mut second = |(): &mut ()| {
            looks += 1;
            looks == 1
        };
        assert!(!shared.changed.wait_while_until(&mut guard, &mut second, Instant::now()).timed_out());
        let result = shared.changed.wait_while_for(&mut guard, |()| true, Duration::from_millis(3));
        assert!(result.timed_out());
    });
}

#[test]
fn a_timed_wait_while_looks_after_each_notification_and_when_its_time_ends() {
    everywhere(|| {
        let shared = Shared::new(());
        let other = Arc::clone(&shared);
        let side = beside(move || {
            let mut looks = 0;
            let look = |(): &mut ()| {
                looks += 1;
                other.waiting.store(looks, Relaxed);
                true
            };
            let mut guard = other.value.lock();
            let ends = other.changed.wait_while_for(&mut guard, look, Duration::from_millis(100));
            assert!(ends.timed_out());
            looks
        });
        let mut told = 0;
        while told < 3 {
            shared.await_waiters(told + 1);
            if !shared.changed.notify_one() {
                // On a machine too busy the time has run out before.
                break;
            }
            told += 1;
        }
        // The first look is before any wait, the last when the time ends.
        assert_eq!(side.join(), told + 2);
    });
}

#[test]
fn a_second_mutex_is_refused_while_others_wait() {
    everywhere(|| {
        let shared = Shared::new(());
        let side = shared.waiter(|()| ());
        shared.await_waiters(1);
        let second = Mutex::new(5);
        let mut guard = second.lock();
        let message = message(|| shared.changed.wait(&mut guard));
        assert!(message.contains("second Mutex"), "{message}");
        assert!(second.try_lock().is_none(), "still locked");
        assert_eq!(*guard, 5);
        assert!(shared.changed.notify_one());
        side.join();
        // Without waiters another mutex may be used.
        assert!(shared.changed.wait_for(&mut guard, Duration::from_millis(1)).timed_out());
    });
}

#[test]
fn a_cancelled_wait_unwinds_with_the_mutex_locked() {
    in_tasks(|| {
        struct Witness(Arc<Shared<u32>>);
        impl Drop for Witness {
            fn drop(&mut self) {
                assert!(self.0.value.is_locked(), "by this very task, whose guard is dropped after");
            }
        }
        let shared = Shared::new(0);
        let other = Arc::clone(&shared);
        let task = fibra_runtime::spawn(move || {
            let mut guard = other.value.lock();
            let _witness = Witness(Arc::clone(&other));
            other.waiting.fetch_add(1, Relaxed);
            other.changed.wait(&mut guard);
        });
        shared.await_waiters(1);
        let guard = shared.value.lock();
        task.task().cancel();
        pause();
        assert!(!task.is_finished(), "it needs the mutex first");
        drop(guard);
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(!shared.changed.notify_one(), "it has left");
        assert!(shared.value.try_lock().is_some());
    });
}

#[test]
fn a_deadline_around_a_wait_ends_it_with_the_mutex_locked_and_one_of_its_own_does_not() {
    in_tasks(|| {
        let shared = Shared::new(0);
        let in_time = fibra_runtime::timeout(LONG, || {
            let mut guard = shared.value.lock();
            *guard += 1;
            assert!(shared.changed.wait_for(&mut guard, Duration::from_micros(100)).timed_out());
            *guard += 1;
        });
        assert_eq!(in_time, Ok(()));
        let late = fibra_runtime::timeout(Duration::from_millis(3), || {
            let mut guard = shared.value.lock();
            shared.changed.wait_for(&mut guard, LONG);
            unreachable!("the deadline around it comes first");
        });
        assert!(late.is_err());
        assert!(!shared.changed.notify_one(), "it has left");
        assert_eq!(*shared.value.lock(), 2);
    });
}

#[test]
fn a_task_cancelled_before_does_not_wait() {
    in_tasks(|| {
        let shared = Shared::new(());
        let other = Arc::clone(&shared);
        let task = fibra_runtime::spawn(move || {
            let mut guard = other.value.lock();
            fibra_runtime::task::current().cancel();
            other.changed.wait(&mut guard);
        });
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(shared.value.try_lock().is_some());
    });
}

#[test]
fn notified_and_timed_out_at_once_each_notification_has_one_taker() {
    in_tasks(|| {
        let pairs: Vec<_> = (0..100)
            .map(|_| {
                fibra_runtime::spawn(|| {
                    for round in 0..40 {
                        notify_as_they_time_out(round % 2 == 0);
                    }
                })
            })
            .collect();
        pairs.into_iter().for_each(|pair| pair.join().unwrap());
    });
}

fn notify_as_they_time_out(locked: bool) {
    let shared = Shared::new(());
    let deadline = Instant::now() + Duration::from_micros(300);
    let waiters = [(); 3].map(|()| {
        let shared = Arc::clone(&shared);
        fibra_runtime::spawn(move || {
            let mut guard = shared.value.lock();
            usize::from(!shared.changed.wait_until(&mut guard, deadline).timed_out())
        })
    });
    fibra_runtime::sleep_until(deadline);
    let guard = locked.then(|| shared.value.lock());
    let mut told = usize::from(shared.changed.notify_one());
    drop(guard);
    told += shared.changed.notify_all();
    let notified: usize = waiters.map(|waiter| waiter.join().unwrap()).into_iter().sum();
    assert_eq!(notified, told);
    assert!(shared.value.try_lock().is_some());
}

#[test]
fn threads_notified_as_they_time_out_lose_no_notification() {
    guarded(|| {
        let shared = Shared::new(0_usize);
        let notified = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..3_u64)
            .map(|side| {
                let (shared, notified) = (Arc::clone(&shared), Arc::clone(&notified));
                thread::spawn(move || {
                    for round in 0..3000 {
                        let timeout = Duration::from_nanos((round * 7919 + side * 104_729) % 20_000);
                        let mut guard = shared.value.lock();
                        let timed_out = shared.changed.wait_for(&mut guard, timeout).timed_out();
                        notified.fetch_add(usize::from(!timed_out), Relaxed);
                    }
                    *shared.value.lock() += 1;
                })
            })
            .collect();
        let mut told = 0;
        let mut round = 0;
        while *shared.value.lock() < 3 {
            round += 1;
            let guard = (round % 2 == 0).then(|| shared.value.lock());
            told += match round % 3 {
                0 => shared.changed.notify_all(),
                _ => usize::from(shared.changed.notify_one()),
            };
            drop(guard);
        }
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert_eq!(notified.load(Relaxed), told);
    });
}

#[test]
fn notified_and_cancelled_at_once_a_notification_is_not_lost() {
    in_tasks(|| {
        for _ in 0..2000 {
            let shared = Shared::new(0_usize);
            let waiters = [(); 2].map(|()| {
                let shared = Arc::clone(&shared);
                fibra_runtime::spawn(move || {
                    let mut guard = shared.value.lock();
                    shared.waiting.fetch_add(1, Relaxed);
                    shared.changed.wait(&mut guard);
                    *guard += 1;
                })
            });
            shared.await_waiters(2);
            let doomed = waiters[0].task().clone();
            let canceller = fibra_runtime::spawn(move || doomed.cancel());
            give_way();
            assert!(shared.changed.notify_one());
            canceller.join().unwrap();
            let [first, second] = waiters;
            // Either the first has had it, or it was cancelled and the second has.
            match first.join() {
                Ok(()) => assert!(shared.changed.notify_one()),
                Err(error) => assert!(error.is_cancelled()),
            }
            second.join().unwrap();
            assert!(*shared.value.lock() >= 1);
        }
    });
}

#[test]
fn two_notify_each_other_in_turn() {
    everywhere(|| {
        let shared = Shared::new(0_u32);
        let other = Arc::clone(&shared);
        let side = beside(move || take_turns(&other, 1));
        take_turns(&shared, 0);
        side.join();
        assert_eq!(*shared.value.lock(), 2000);
    });
}

fn take_turns(shared: &Shared<u32>, parity: u32) {
    for _ in 0..1000 {
        let mut turn = shared.value.lock();
        shared.changed.wait_while(&mut turn, |turn| *turn % 2 != parity);
        *turn += 1;
        shared.changed.notify_one();
    }
}

#[test]
fn tasks_and_threads_notify_each_other() {
    beside_runtimes(|runtime| {
        let shared = Shared::new(0_u32);
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || take_turns(&other, 1));
        let other = Arc::clone(&shared);
        runtime.run(move || fibra_runtime::spawn(move || take_turns(&other, 0)).join().unwrap());
        thread.join().unwrap();
    });
}

#[test]
fn waits_of_both_kinds_in_a_row_end() {
    everywhere(|| {
        let shared = Shared::new(0);
        let sides: Vec<_> = (0..4)
            .map(|_| {
                let other = Arc::clone(&shared);
                beside(move || {
                    let mut guard = other.value.lock();
                    *guard += 1;
                    other.changed.wait(&mut guard);
                    other.changed.wait_for(&mut guard, Duration::from_millis(1));
                    other.changed.notify_one();
                })
            })
            .collect();
        while *shared.value.lock() != 4 {
            give_way();
        }
        shared.changed.notify_one();
        sides.into_iter().for_each(|side| side.join());
    });
}

#[test]
fn a_notified_waiter_competes_at_once_and_not_behind_all_that_wait_to_lock() {
    guarded(|| {
        fibra_runtime::Runtime::builder().workers(1).build().unwrap().run(|| {
            for is_locked in [false, true] {
                let shared = Shared::new(Vec::new());
                let waiter = shared.waiter(|order: &mut Vec<&str>| order.push("waiter"));
                shared.await_waiters(1);
                let guard = shared.value.lock();
                let lockers: Vec<_> = (0..5)
                    .map(|_| {
                        let shared = Arc::clone(&shared);
                        beside(move || shared.value.lock().push("locker"))
                    })
                    .collect();
                // Until all of them wait to lock.
                give_way();
                give_way();
                match is_locked {
                    true => {
                        assert!(shared.changed.notify_one());
                        drop(guard);
                    }
                    // The unlock has woken the first to lock.
                    false => {
                        drop(guard);
                        assert!(shared.changed.notify_one());
                    }
                }
                waiter.join();
                lockers.into_iter().for_each(Side::join);
                let place = shared.value.lock().iter().position(|who| *who == "waiter");
                assert_eq!(place, Some(usize::from(!is_locked)));
            }
        });
    });
}
