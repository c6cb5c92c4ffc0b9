//! What each lock of one holder at a time promises, in threads and in tasks; under races in `locks_races.rs`.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, few_or_many, give_way, guarded, in_tasks, pause};
use crate::exclusive::{Exclusive, Guarded, suite};
use fibra_runtime::task;

suite! {[
    one_is_inside_at_a_time
    an_attempt_fails_while_it_is_locked
    a_timed_attempt_gives_up_in_its_time
    a_timed_attempt_takes_what_comes_in_its_time
    an_attempt_of_no_time_takes_a_free_lock
    a_time_beyond_the_clock_is_no_deadline
    every_waiter_gets_in
    it_is_held_over_a_wait
    each_owner_sees_the_writes_of_the_last
    a_panic_unlocks
    it_is_locked_while_a_thread_ends
    a_cancel_does_not_end_the_wait
]}

fn one_is_inside_at_a_time<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let (count, rounds) = (few_or_many(8, 60), few_or_many(200, 60));
        let sides: Vec<_> = (0..count)
            .map(|side| {
                let shared = Arc::clone(&shared);
                beside(move || {
                    for round in 0..rounds {
                        let _guard = shared.lock.lock();
                        shared.count((side + round) % 3 == 0);
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
        assert_eq!(shared.counted(), (count * rounds) as u64);
    });
}

fn an_attempt_fails_while_it_is_locked<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        assert!(beside(move || other.lock.try_lock().is_none()).join());
        drop(guard);
        let other = Arc::clone(&shared);
        assert!(beside(move || other.lock.try_lock().is_some()).join());
        assert!(shared.lock.try_lock().is_some());
    });
}

fn a_timed_attempt_gives_up_in_its_time<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let waited = beside(move || {
            let begin = Instant::now();
            assert!(other.lock.try_lock_for(Duration::from_millis(20)).is_none());
            begin.elapsed()
        });
        assert!(waited.join() >= Duration::from_millis(20));
        drop(guard);
        assert!(shared.lock.try_lock().is_some(), "a waiter that gave up has left nothing behind");
    });
}

fn a_timed_attempt_takes_what_comes_in_its_time<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let side = beside(move || other.lock.try_lock_for(Duration::from_secs(100)).is_some());
        pause();
        drop(guard);
        assert!(side.join());
    });
}

fn an_attempt_of_no_time_takes_a_free_lock<L: Exclusive>() {
    everywhere(|| {
        let lock = L::new();
        assert!(lock.try_lock_for(Duration::ZERO).is_some());
        let shared = Guarded::<L>::new();
        let _guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        assert!(beside(move || other.lock.try_lock_for(Duration::ZERO).is_none()).join());
    });
}

fn a_time_beyond_the_clock_is_no_deadline<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let side = beside(move || other.lock.try_lock_for(Duration::MAX).is_some());
        pause();
        drop(guard);
        assert!(side.join());
    });
}

fn every_waiter_gets_in<L: Exclusive>() {
    in_tasks(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let tasks: Vec<_> = (0..1000)
            .map(|_| {
                let shared = Arc::clone(&shared);
                fibra_runtime::spawn(move || {
                    let _guard = shared.lock.lock();
                    shared.count(false);
                })
            })
            .collect();
        pause();
        drop(guard);
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(shared.counted(), 1000);
    });
}

fn it_is_held_over_a_wait<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let sides: Vec<_> = (0..4)
            .map(|_| {
                let shared = Arc::clone(&shared);
                beside(move || {
                    let _guard = shared.lock.lock();
                    let seen = shared.count.load(Relaxed);
                    pause();
                    shared.count.store(seen + 1, Relaxed);
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
        assert_eq!(shared.counted(), 4);
    });
}

fn each_owner_sees_the_writes_of_the_last<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let twin = Arc::new(AtomicU64::new(0));
        let sides: Vec<_> = (0..few_or_many(4, 40))
            .map(|_| {
                let (shared, twin) = (Arc::clone(&shared), Arc::clone(&twin));
                beside(move || {
                    for _ in 0..100 {
                        let _guard = shared.lock.lock();
                        assert_eq!(shared.count.load(Relaxed), twin.load(Relaxed));
                        shared.count(false);
                        twin.store(shared.count.load(Relaxed), Relaxed);
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
    });
}

fn a_panic_unlocks<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let other = Arc::clone(&shared);
        let side = beside(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _guard = other.lock.lock();
                std::panic::resume_unwind(Box::new(7))
            }));
            *caught.map(|(): ()| ()).unwrap_err().downcast::<i32>().unwrap()
        });
        assert_eq!(side.join(), 7);
        drop(shared.lock.lock());
    });
}

/// Runs a closure in the destructors of a thread's locals.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.take().expect("it ends once")();
    }
}

fn it_is_locked_while_a_thread_ends<L: Exclusive>() {
    thread_local! {
        static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }
    guarded(|| {
        // What a thread waits with is a local of its own, which is older or younger than the other one.
        for waits_before in [false, true] {
            let shared = Guarded::<L>::new();
            let held = shared.lock.lock();
            let theirs = Arc::clone(&shared);
            let thread = thread::spawn(move || {
                let waits = || assert!(theirs.lock.try_lock_for(Duration::from_millis(1)).is_none());
                if waits_before {
                    waits();
                }
                let ours = Arc::clone(&theirs);
                let at_end = move || {
                    ours.begun.store(true, Relaxed);
                    let _guard = ours.lock.lock();
                    ours.count(true);
                };
                AT_END.set(Some(AtEnd(Some(Box::new(at_end)))));
                waits();
            });
            while !shared.begun.load(Relaxed) {
                thread::yield_now();
            }
            pause();
            drop(held);
            thread.join().unwrap();
            assert_eq!(shared.counted(), 1);
        }
    });
}

fn a_cancel_does_not_end_the_wait<L: Exclusive>() {
    in_tasks(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let task = fibra_runtime::spawn(move || {
            // Cancelled before this it would not begin at all.
            other.begun.store(true, Relaxed);
            let guard = match L::IS_POINT {
                true => task::shield(|| other.lock.lock()),
                false => other.lock.lock(),
            };
            other.count(false);
            drop(guard);
            fibra_runtime::sleep(Duration::from_secs(1000));
        });
        while !shared.begun.load(Relaxed) {
            give_way();
        }
        pause();
        task.task().cancel();
        pause();
        assert!(!task.is_finished(), "still waits for the lock");
        drop(guard);
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(shared.counted(), 1, "and had it");
    });
}
