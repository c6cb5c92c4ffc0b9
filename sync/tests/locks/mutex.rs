//! The promises of `Mutex` beyond those of all locks, which `locks.rs` tests.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, give_way, guarded, in_tasks, pause, runtime};
use crate::message::{message, text_of};
use fibra_runtime::task::Builder;
use fibra_runtime::{spawn_local, yield_now};
use fibra_sync::{ArcMutexGuard, FairMutex, MappedMutexGuard, Mutex, MutexGuard, RawMutex, lock_api};

/// Never called: the bounds of what may cross threads.
fn _assert_bounds() {
    fn send_and_sync<T: Send + Sync>() {}
    fn sync<T: Sync>() {}
    send_and_sync::<Mutex<Cell<u32>>>();
    send_and_sync::<RawMutex>();
    sync::<MutexGuard<'_, u32>>();
    sync::<MappedMutexGuard<'_, u32>>();
}

static STATIC: Mutex<Vec<u32>> = Mutex::new(Vec::new());

#[test]
fn it_may_be_a_static() {
    everywhere(|| {
        STATIC.lock().push(1);
        beside(|| STATIC.lock().push(2)).join();
        assert_eq!(STATIC.lock().split_off(0), [1, 2]);
    });
}

#[test]
fn it_takes_24_bytes_beside_the_value() {
    assert!(size_of::<Mutex<()>>() <= 24);
    assert!(size_of::<Mutex<u64>>() <= 32);
}

#[test]
fn exclusive_access_reaches_the_value_without_a_lock() {
    let mut mutex = Mutex::new(1);
    *mutex.get_mut() += 1;
    assert_eq!(mutex.into_inner(), 2);
    assert_eq!(*Mutex::<u8>::default().lock(), 0);
    assert_eq!(*Mutex::from(3).lock(), 3);
}

#[test]
fn the_value_is_dropped_once_also_with_a_locked_mutex() {
    let value = Arc::new(());
    drop(Mutex::new(Arc::clone(&value)));
    drop(Mutex::new(Arc::clone(&value)).into_inner());
    let locked = Mutex::new(Arc::clone(&value));
    std::mem::forget(locked.lock());
    drop(locked);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_loop_over_a_free_mutex_starves_no_task() {
    const LONG: Duration = Duration::from_secs(60);
    let ways: [fn(&Mutex<()>); 4] = [
        |mutex| drop(mutex.lock()),
        |mutex| drop(mutex.try_lock_for(LONG).unwrap()),
        |mutex| drop(mutex.try_lock_for(Duration::MAX).unwrap()),
        |mutex| drop(mutex.try_lock_until(Instant::now() + LONG).unwrap()),
    ];
    in_tasks(|| {
        for lock in ways {
            let (mutex, over) = (Mutex::new(()), Rc::new(Cell::new(false)));
            let ends = Rc::clone(&over);
            let greedy = spawn_local(move || {
                while !ends.get() {
                    lock(&mutex);
                }
            });
            yield_now();
            over.set(true);
            greedy.join().unwrap();
        }
    });
}

#[test]
fn it_protects_an_unsized_value() {
    everywhere(|| {
        let mutex: &Mutex<[i32]> = &Mutex::new([1, 2, 3]);
        mutex.lock()[0] = 4;
        assert_eq!(*mutex.lock(), [4, 2, 3]);
    });
}

#[test]
fn debug_shows_the_value() {
    everywhere(|| {
        let mutex = Mutex::new(vec![0_u8, 10]);
        assert_eq!(format!("{mutex:?}"), "Mutex { data: [0, 10] }");
        let _guard = mutex.lock();
        assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
        assert!(mutex.is_locked());
    });
}

#[test]
fn a_guard_maps_to_a_part() {
    everywhere(|| {
        let mutex = Mutex::new((1, 2));
        let mut second = MutexGuard::map(mutex.lock(), |pair| &mut pair.1);
        *second = 3;
        assert!(mutex.try_lock().is_none());
        drop(second);
        let refused = MutexGuard::try_map(mutex.lock(), |_| None::<&mut i32>);
        match refused {
            Ok(_) => panic!("there is no part"),
            Err(guard) => assert_eq!(*guard, (1, 3), "the guard comes back"),
        }
        assert!(mutex.try_lock().is_some());
        let words = Mutex::new([String::from("one"), String::from("two")]);
        let tail = MutexGuard::map(words.lock(), |words| &mut words[1..]);
        let word = MappedMutexGuard::map(tail, |tail| &mut tail[0]);
        let Err((word, error)) = MappedMutexGuard::try_map_or_err(word, |_| Err::<&mut u8, _>("no byte"))
        else {
            panic!("there is no part")
        };
        assert_eq!((word.as_str(), error), ("two", "no byte"));
        assert!(words.try_lock().is_none());
    });
}

#[test]
fn a_panic_in_the_choice_of_a_part_unlocks() {
    everywhere(|| {
        let mutex = Mutex::new(1);
        let unlocks = |choose: &dyn Fn()| {
            assert!(catch_unwind(AssertUnwindSafe(choose)).is_err());
            assert!(mutex.try_lock().is_some());
        };
        unlocks(&|| drop(MutexGuard::map(mutex.lock(), |_| -> &mut u8 { panic!("on purpose") })));
        unlocks(&|| {
            _ = MutexGuard::try_map(mutex.lock(), |_| -> Option<&mut u8> { panic!("on purpose") }).is_ok()
        });
        unlocks(&|| {
            let whole = MutexGuard::map(mutex.lock(), |whole| whole);
            drop(MappedMutexGuard::map(whole, |_| -> &mut u8 { panic!("on purpose") }));
        });
    });
}

#[test]
fn a_mutex_may_hold_another() {
    everywhere(|| {
        let inner = Arc::new(Mutex::new(1));
        let outer = Arc::new(Mutex::new(Arc::clone(&inner)));
        let theirs = Arc::clone(&outer);
        let held = inner.lock();
        let other = beside(move || {
            let outer = theirs.lock();
            *outer.lock() += 1;
        });
        while outer.try_lock().is_some() {
            give_way();
        }
        drop(held);
        other.join();
        assert_eq!(*outer.lock().lock(), 2);
    });
}

#[test]
fn a_guard_may_own_the_mutex() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(1));
        let mut guard: ArcMutexGuard<RawMutex, i32> = mutex.lock_arc();
        assert!(mutex.try_lock_arc().is_none());
        assert!(mutex.try_lock_arc_for(Duration::from_millis(1)).is_none());
        *guard += 1;
        let weak = Arc::downgrade(&mutex);
        drop(mutex);
        assert_eq!(*guard, 2);
        drop(guard);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn locking_twice_panics_and_names_the_task() {
    guarded(|| {
        runtime(1).run(|| {
            let mutex = Arc::new(Mutex::new(0));
            let twice = Arc::clone(&mutex);
            let task = Builder::new().name("greedy").spawn(move || {
                let _first = twice.lock();
                drop(twice.lock());
            });
            let id = task.task().id();
            let message = text_of(&*task.join().unwrap_err().into_panic());
            assert!(message.contains("locked twice"), "{message}");
            assert!(message.contains("Mutex"), "{message}");
            assert!(message.contains(&format!("task 'greedy' (id {id})")), "{message}");
            assert!(mutex.try_lock().is_some(), "the unwinding dropped the first guard");
        });
    });
}

#[test]
fn a_thread_that_locks_twice_panics_too() {
    let mutex = Mutex::new(());
    let _first = mutex.lock();
    let message = message(|| mutex.lock());
    assert!(message.contains("locked twice by thread"), "{message}");
}

#[test]
fn the_owners_attempts_fail_in_their_time() {
    everywhere(|| {
        let mutex = Mutex::new(());
        let _guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        let begin = Instant::now();
        assert!(mutex.try_lock_for(Duration::from_millis(3)).is_none());
        assert!(mutex.try_lock_until(begin + Duration::from_millis(6)).is_none());
        assert!(begin.elapsed() >= Duration::from_millis(6));
    });
}

#[test]
fn a_leaked_guard_keeps_later_tasks_out() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(()));
        let leaking = Arc::clone(&mutex);
        beside(move || std::mem::forget(leaking.lock())).join();
        // Their tasks are made of the memory of the one that has ended, and may look like the owner.
        for _ in 0..50 {
            let mutex = Arc::clone(&mutex);
            beside(move || {
                assert!(mutex.try_lock().is_none());
                assert!(mutex.try_lock_for(Duration::from_micros(50)).is_none());
            })
            .join();
        }
        let waiting = Arc::clone(&mutex);
        let late = beside(move || drop(waiting.try_lock_for(Duration::from_secs(60)).unwrap()));
        pause();
        // SAFETY: the guard was leaked, so the mutex is locked and no task reaches the value.
        unsafe { mutex.force_unlock(lock_api::GuardNoSend::new()) };
        late.join();
    });
}

#[test]
fn a_guard_may_be_dropped_by_another_task() {
    guarded(|| {
        runtime(1).run(|| {
            let mutex: &'static Mutex<u32> = Box::leak(Box::new(Mutex::new(0)));
            let held = Rc::new(RefCell::new(Some(mutex.lock())));
            let taken = Rc::clone(&held);
            let other = fibra_runtime::spawn_local(move || {
                let guard = taken.borrow_mut().take();
                drop(guard);
                // The mutex is neither this task's any more, nor the first one's.
                drop(mutex.lock());
            });
            other.join().unwrap();
            drop(mutex.lock());
            assert!(held.borrow().is_none());
        });
    });
}

#[test]
fn there_is_no_poison() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(1));
        let other = Arc::clone(&mutex);
        beside(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                *other.lock() = 2;
                let _guard = other.lock();
                std::panic::resume_unwind(Box::new(()))
            }));
            assert!(caught.map(|(): ()| ()).is_err());
        })
        .join();
        assert_eq!(*mutex.lock(), 2);
    });
}

#[test]
fn a_lock_in_a_destructor_works_while_its_task_unwinds() {
    in_tasks(|| {
        struct Last(Arc<Mutex<u32>>);
        impl Drop for Last {
            fn drop(&mut self) {
                *self.0.lock() += 1;
            }
        }
        let mutex = Arc::new(Mutex::new(1));
        let guard = mutex.lock();
        let last = Last(Arc::clone(&mutex));
        let task = fibra_runtime::spawn(move || {
            let _last = last;
            std::panic::resume_unwind(Box::new(()))
        });
        pause();
        drop(guard);
        assert!(task.join().map(|(): ()| ()).unwrap_err().is_panic());
        assert_eq!(*mutex.lock(), 2);
    });
}

#[test]
fn a_fair_unlock_serves_in_the_order_of_arrival() {
    guarded(|| {
        // One worker: when the yield returns the task that was spawned before is in the queue.
        runtime(1).run(|| {
            let mutex = Arc::new(Mutex::new(Vec::new()));
            let guard = mutex.lock();
            let tasks: Vec<_> = (0..5)
                .map(|number| {
                    let other = Arc::clone(&mutex);
                    let task = fibra_runtime::spawn(move || {
                        let mut guard = other.lock();
                        guard.push(number);
                        fibra_runtime::yield_now();
                        MutexGuard::unlock_fair(guard);
                    });
                    fibra_runtime::yield_now();
                    task
                })
                .collect();
            MutexGuard::unlock_fair(guard);
            assert!(mutex.try_lock().is_none(), "it was handed over");
            tasks.into_iter().for_each(|task| task.join().unwrap());
            assert_eq!(*mutex.lock(), [0, 1, 2, 3, 4]);
        });
    });
}

#[test]
fn a_bump_lets_a_waiter_in() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(0));
        let mut guard = mutex.lock();
        MutexGuard::bump(&mut guard);
        let other = Arc::clone(&mutex);
        let side = beside(move || *other.lock() += 1);
        while *guard == 0 {
            MutexGuard::bump(&mut guard);
            give_way();
        }
        drop(guard);
        side.join();
    });
}

#[test]
fn unlocked_for_a_while_it_is_locked_again() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(0));
        let mut guard = mutex.lock();
        let other = Arc::clone(&mutex);
        MutexGuard::unlocked(&mut guard, || beside(move || *other.lock() += 1).join());
        assert_eq!(*guard, 1);
        let other = Arc::clone(&mutex);
        MutexGuard::unlocked_fair(&mut guard, || beside(move || *other.lock() += 1).join());
        assert_eq!(*guard, 2);
    });
}

#[test]
fn held_over_a_yield_all_get_the_same_share() {
    guarded(|| {
        runtime(1).run(|| {
            let mutex = Arc::new(Mutex::new(()));
            let stop = Arc::new(AtomicBool::new(false));
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    let (mutex, stop) = (Arc::clone(&mutex), Arc::clone(&stop));
                    fibra_runtime::spawn(move || {
                        let mut rounds = 0;
                        while !stop.load(Relaxed) {
                            let _guard = mutex.lock();
                            fibra_runtime::yield_now();
                            rounds += 1;
                        }
                        rounds
                    })
                })
                .collect();
            fibra_runtime::sleep(Duration::from_millis(100));
            stop.store(true, Relaxed);
            let shares: Vec<u32> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            // A task locks at most twice in a row before a bypassed waiter gets the mutex; and where the stop caught them.
            assert!(most - least <= 4, "{least} to {most}");
        });
    });
}

#[test]
fn a_caller_that_locks_again_and_again_does_not_keep_a_waiter_out() {
    guarded(|| {
        let mutex = Arc::new(Mutex::new(()));
        let served = Arc::new(AtomicBool::new(false));
        let hogs: Vec<_> = (0..2)
            .map(|_| {
                let (mutex, served) = (Arc::clone(&mutex), Arc::clone(&served));
                thread::spawn(move || {
                    while !served.load(Relaxed) {
                        let _guard = mutex.lock();
                        let begin = Instant::now();
                        while begin.elapsed() < Duration::from_micros(100) {}
                    }
                })
            })
            .collect();
        runtime(2).run(|| {
            for _ in 0..20 {
                let mutex = Arc::clone(&mutex);
                fibra_runtime::spawn(move || drop(mutex.lock())).join().unwrap();
            }
        });
        served.store(true, Relaxed);
        hogs.into_iter().for_each(|hog| hog.join().unwrap());
    });
}

#[test]
fn locking_without_a_wait_gives_way_to_others() {
    guarded(|| {
        runtime(1).run(|| {
            let stop = Arc::new(AtomicBool::new(false));
            let stopper = Arc::clone(&stop);
            let other = fibra_runtime::spawn(move || stopper.store(true, Relaxed));
            let mutex = Mutex::new(());
            while !stop.load(Relaxed) {
                drop(mutex.lock());
            }
            other.join().unwrap();
        });
    });
}

/// Unlocks a mutex for a waiter that cannot come, since its worker is kept. `waiter` waits behind it on a plain thread and
/// has to get in all the same, after `meanwhile`.
fn get_past_a_waiter_that_does_not_come(waiter: fn(&Mutex<u32>), meanwhile: fn(&Mutex<u32>)) {
    guarded(move || {
        runtime(1).run(move || {
            let mutex = Arc::new(Mutex::new(0));
            let guard = mutex.lock();
            let first = Arc::clone(&mutex);
            let kept = fibra_runtime::spawn(move || *first.lock() += 1);
            yield_now();
            let second = Arc::clone(&mutex);
            let thread = thread::spawn(move || waiter(&second));
            fibra_runtime::sleep(Duration::from_millis(20));
            drop(guard);
            // From here to the end of the thread nothing else runs on this worker.
            meanwhile(&mutex);
            thread.join().unwrap();
            assert_eq!(*mutex.try_lock().expect("it is free again"), 1, "the first waiter has not come");
            kept.join().unwrap();
            assert_eq!(*mutex.lock(), 2);
        });
    });
}

#[test]
fn a_timed_attempt_looks_once_more_before_it_gives_up() {
    get_past_a_waiter_that_does_not_come(
        |mutex| *mutex.try_lock_for(Duration::from_millis(100)).expect("the mutex is free") += 1,
        |_| (),
    );
}

#[test]
fn an_unlock_wakes_the_next_waiter_when_the_last_one_does_not_come() {
    get_past_a_waiter_that_does_not_come(
        |mutex| *mutex.lock() += 1,
        |mutex| {
            thread::sleep(Duration::from_millis(5));
            drop(mutex.lock());
        },
    );
}

#[test]
fn a_deadline_that_has_passed_is_an_attempt() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(()));
        let past = Instant::now() - Duration::from_millis(1);
        assert!(mutex.try_lock_until(past).is_some());
        let _guard = mutex.lock();
        let other = Arc::clone(&mutex);
        assert!(beside(move || other.try_lock_until(past).is_none()).join());
    });
}

#[test]
fn each_unlock_of_a_fair_mutex_hands_over() {
    runtime(1).run(|| {
        let mutex = Arc::new(FairMutex::new(Vec::new()));
        for round in 0..10 {
            let mut guard = mutex.lock();
            let other = Arc::clone(&mutex);
            let waiter = fibra_runtime::spawn(move || other.lock().push(round));
            fibra_runtime::yield_now();
            guard.push(round);
            drop(guard);
            assert!(mutex.is_locked() && mutex.try_lock().is_none(), "it was handed over");
            waiter.join().unwrap();
            assert!(mutex.try_lock_for(Duration::ZERO).is_some());
        }
        assert_eq!(*mutex.lock(), (0..10).flat_map(|round| [round; 2]).collect::<Vec<_>>());
    });
}

#[test]
fn handed_over_and_timed_out_at_once_it_is_not_lost() {
    in_tasks(|| {
        let pairs: Vec<_> = (0..100)
            .map(|_| {
                fibra_runtime::spawn(|| {
                    for _ in 0..40 {
                        hand_over_as_it_times_out();
                    }
                })
            })
            .collect();
        pairs.into_iter().for_each(|pair| pair.join().unwrap());
    });
}

fn hand_over_as_it_times_out() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.lock();
    let deadline = Instant::now() + Duration::from_micros(200);
    let attempts = [(); 2].map(|()| {
        let mutex = Arc::clone(&mutex);
        fibra_runtime::spawn(move || mutex.try_lock_until(deadline).map(|mut count| *count += 1).is_some())
    });
    fibra_runtime::sleep_until(deadline);
    MutexGuard::unlock_fair(guard);
    let taken = attempts.map(|attempt| attempt.join().unwrap()).into_iter().filter(|taken| *taken).count();
    assert_eq!(*mutex.try_lock().expect("free again"), taken);
}

#[test]
fn threads_handed_over_to_as_their_time_ends_lose_nothing() {
    guarded(|| {
        let mutex = Arc::new(Mutex::new(0_u64));
        let taken = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..3_u64)
            .map(|side| {
                let (mutex, taken) = (Arc::clone(&mutex), Arc::clone(&taken));
                thread::spawn(move || {
                    for round in 0..4000 {
                        let timeout = Duration::from_nanos((round * 7919 + side * 104_729) % 10_000);
                        let Some(mut count) = mutex.try_lock_for(timeout) else { continue };
                        *count += 1;
                        taken.fetch_add(1, Relaxed);
                        match round % 3 {
                            0 => MutexGuard::unlock_fair(count),
                            1 => MutexGuard::bump(&mut count),
                            _ => drop(count),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*mutex.try_lock().expect("free again"), taken.load(Relaxed));
    });
}

#[test]
fn a_task_that_ended_with_its_cancellation_has_unlocked() {
    in_tasks(|| {
        let mutex = Arc::new(Mutex::new(()));
        let other = Arc::clone(&mutex);
        let task = fibra_runtime::spawn(move || {
            let _guard = other.lock();
            fibra_runtime::sleep(Duration::from_secs(1000));
        });
        pause();
        task.task().cancel();
        drop(mutex.lock());
        assert!(task.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn cancelled_and_unlocked_at_once_nothing_is_lost() {
    in_tasks(|| {
        for _ in 0..3000 {
            let mutex = Arc::new(Mutex::new(0));
            let guard = mutex.lock();
            let other = Arc::clone(&mutex);
            let task = fibra_runtime::spawn(move || *other.lock() += 1);
            let handle = task.task().clone();
            let canceller = fibra_runtime::spawn(move || handle.cancel());
            give_way();
            drop(guard);
            canceller.join().unwrap();
            // Cancelled before it began, or not at all: the lock is no cancellation point.
            let counted = u32::from(task.join().is_ok());
            assert_eq!(*mutex.lock(), counted);
        }
    });
}
