//! What `ReentrantMutex` promises beyond what all locks do, which `locks.rs` tests.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Dice, beside, everywhere, few_or_many, give_way, guarded, in_tasks, pause, runtime};
use crate::paused::paused;
use fibra_sync::{
    ArcReentrantMutexGuard, MappedReentrantMutexGuard, RawMutex, ReentrantMutex, ReentrantMutexGuard,
    ThreadAndTaskId,
};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

/// Never called: what may cross threads.
fn _assert_bounds() {
    fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<ReentrantMutex<Cell<u32>>>();
}

#[test]
fn its_owner_locks_it_again() {
    everywhere(|| {
        let mutex = ReentrantMutex::new(());
        let first = mutex.lock();
        let second = mutex.lock();
        let third = mutex.try_lock().unwrap();
        assert!(mutex.is_owned_by_current_thread());
        drop((first, third));
        assert!(mutex.is_locked());
        drop(second);
        assert!(!mutex.is_locked());
        assert!(!mutex.is_owned_by_current_thread());
    });
}

#[test]
fn others_wait_for_the_last_of_the_owners_guards() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(RefCell::new(0)));
        let first = mutex.lock();
        let second = mutex.lock();
        let other = Arc::clone(&mutex);
        let side = beside(move || {
            let value = other.lock();
            assert_eq!(*value.borrow(), 4950);
        });
        for add in 0..100 {
            let _third = mutex.lock();
            *second.borrow_mut() += add;
            give_way();
        }
        drop(second);
        pause();
        assert!(mutex.is_owned_by_current_thread());
        drop(first);
        side.join();
    });
}

#[test]
fn it_belongs_to_a_task_and_not_to_its_thread() {
    paused(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let guard = mutex.lock();
        let other = Arc::clone(&mutex);
        let task = fibra_runtime::spawn(move || {
            assert!(!other.is_owned_by_current_thread());
            assert!(other.try_lock().is_none());
            assert!(other.try_lock_for(Duration::from_millis(1)).is_none());
            let _guard = other.lock();
        });
        fibra_runtime::sleep(Duration::from_millis(2));
        assert!(!task.is_finished());
        drop(guard);
        task.join().unwrap();
    });
}

#[test]
fn it_is_locked_to_many_depths_by_many() {
    fn descend(mutex: &ReentrantMutex<Cell<u64>>, depth: u32) {
        let value = mutex.lock();
        let seen = value.get();
        if depth.is_multiple_of(4) {
            give_way();
        }
        value.set(seen + 1);
        if depth > 0 {
            descend(mutex, depth - 1);
        }
    }
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
        let sides: Vec<_> = (0..8)
            .map(|side| {
                let mutex = Arc::clone(&mutex);
                beside(move || (0..60).for_each(|round| descend(&mutex, (side + round) % 10)))
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
        let expected: u32 =
            (0..8).map(|side| (0..60).map(|round| (side + round) % 10 + 1).sum::<u32>()).sum();
        assert_eq!(mutex.lock().get(), u64::from(expected));
    });
}

#[test]
fn at_depths_that_rise_and_fall_it_is_its_owners_until_the_last_guard_is_gone() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
        let sides: Vec<_> = (1..=few_or_many(4, 20) as u64)
            .map(|side| {
                let mutex = Arc::clone(&mutex);
                beside(move || rise_and_fall(&mutex, side))
            })
            .collect();
        let added: u64 = sides.into_iter().map(|side| side.join()).sum();
        assert_eq!(mutex.lock().get(), added);
    });
}

/// Locks it to a depth of up to three, and up and down again, and adds wherever it is locked. How much it has added.
fn rise_and_fall(mutex: &ReentrantMutex<Cell<u64>>, side: u64) -> u64 {
    let (mut dice, mut guards, mut left, mut added) = (Dice::new(side), Vec::new(), 0, 0);
    for _ in 0..300 {
        let depth = (dice.throw(4) * dice.throw(4) / 3) as usize;
        guards.truncate(depth);
        while guards.len() < depth {
            let guard = if dice.throw(2) == 0 { Some(mutex.lock()) } else { mutex.try_lock() };
            let Some(guard) = guard else { break };
            if guards.is_empty() {
                left = guard.get();
            }
            guards.push(guard);
        }
        if let Some(value) = guards.last() {
            assert_eq!(value.get(), left, "no other owner was inside");
            left += side;
            value.set(left);
            added += side;
        }
        if dice.throw(8) == 0 {
            give_way();
        }
    }
    added
}

#[test]
fn attempts_of_the_owner_succeed_at_any_depth() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let _first = mutex.lock();
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
        let _owned: ArcReentrantMutexGuard<RawMutex, ThreadAndTaskId, ()> = mutex.try_lock_arc().unwrap();
    });
}

#[test]
fn there_is_no_poison() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
        let other = Arc::clone(&mutex);
        beside(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _outer = other.lock();
                other.lock().set(3);
                std::panic::resume_unwind(Box::new(()))
            }));
            assert!(caught.map(|(): ()| ()).is_err());
        })
        .join();
        assert_eq!(mutex.lock().get(), 3);
    });
}

#[test]
fn no_task_takes_a_forgotten_guard_for_its_own() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let forgetful = Arc::clone(&mutex);
        beside(move || std::mem::forget(forgetful.lock())).join();
        for _ in 0..50 {
            let mutex = Arc::clone(&mutex);
            beside(move || assert!(mutex.try_lock().is_none())).join();
        }
    });
}

#[test]
fn a_bump_lets_a_waiter_in_and_only_at_the_first_depth() {
    in_tasks(|| {
        let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
        let mut first = mutex.lock();
        let other = Arc::clone(&mutex);
        let side = beside(move || other.lock().set(1));
        pause();
        let mut second = mutex.lock();
        ReentrantMutexGuard::bump(&mut second);
        assert_eq!(second.get(), 0, "the first guard still holds it");
        drop(second);
        while first.get() == 0 {
            ReentrantMutexGuard::bump(&mut first);
            give_way();
        }
        assert!(mutex.is_owned_by_current_thread());
        drop(first);
        side.join();
    });
}

#[test]
fn a_guard_maps_to_a_part_and_stays_one_of_the_owners_guards() {
    everywhere(|| {
        let mutex = ReentrantMutex::new((1, "two"));
        let whole = mutex.lock();
        let part = ReentrantMutexGuard::map(mutex.lock(), |pair| pair.1);
        let last = MappedReentrantMutexGuard::map(part, |text| &text.as_bytes()[2..]);
        assert_eq!((whole.0, &*last), (1, b"o".as_slice()));
        drop(whole);
        assert!(mutex.is_owned_by_current_thread());
        drop(last);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn a_guard_that_has_no_such_part_comes_back() {
    everywhere(|| {
        let mutex = ReentrantMutex::new((1, "two"));
        let refused = ReentrantMutexGuard::try_map(mutex.lock(), |_| None::<&u8>);
        assert_eq!(refused.expect_err("no such part").1, "two");
        assert!(!mutex.is_locked());
        let refused = ReentrantMutexGuard::try_map_or_err(mutex.lock(), |_| Err::<&u8, _>("why"));
        let (whole, error) = refused.expect_err("no such part");
        assert_eq!((whole.0, error), (1, "why"));
        let part = ReentrantMutexGuard::try_map(whole, |pair| Some(pair.1)).expect("there is one");
        let part = MappedReentrantMutexGuard::try_map(part, |_| None::<&u8>).expect_err("no such part");
        let (part, error) =
            MappedReentrantMutexGuard::try_map_or_err(part, |_| Err::<&u8, _>("why")).unwrap_err();
        assert_eq!((&*part, error), ("two", "why"));
        drop(part);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn a_panic_in_the_choice_of_a_part_unlocks() {
    everywhere(|| {
        let mutex = ReentrantMutex::new(1);
        let unlocks = |choose: &dyn Fn()| {
            assert!(catch_unwind(AssertUnwindSafe(choose)).is_err());
            assert!(!mutex.is_locked());
        };
        let choose: fn(&i32) -> &u8 = |_| std::panic::resume_unwind(Box::new(()));
        unlocks(&|| drop(ReentrantMutexGuard::map(mutex.lock(), choose)));
        unlocks(&|| _ = ReentrantMutexGuard::try_map(mutex.lock(), |whole| Some(choose(whole))).is_ok());
        unlocks(&|| {
            let whole = ReentrantMutexGuard::map(mutex.lock(), |whole| whole);
            drop(MappedReentrantMutexGuard::map(whole, choose));
        });
    });
}

#[test]
fn a_fair_unlock_of_the_last_guard_hands_over() {
    guarded(|| {
        // One worker: when the yield returns the task that was spawned before is in the line.
        runtime(1).run(|| {
            let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
            let hands_over = |unlock: &dyn Fn()| {
                let first = mutex.lock();
                let other = Arc::clone(&mutex);
                let waiting = fibra_runtime::spawn(move || {
                    let value = other.lock();
                    value.set(value.get() + 1);
                });
                fibra_runtime::yield_now();
                unlock();
                assert!(mutex.is_owned_by_current_thread(), "one of two guards is left");
                ReentrantMutexGuard::unlock_fair(first);
                assert!(mutex.try_lock().is_none(), "it was handed over");
                waiting.join().unwrap();
            };
            hands_over(&|| ReentrantMutexGuard::unlock_fair(mutex.lock()));
            hands_over(&|| ArcReentrantMutexGuard::unlock_fair(mutex.lock_arc()));
            hands_over(&|| {
                MappedReentrantMutexGuard::unlock_fair(ReentrantMutexGuard::map(mutex.lock(), |whole| whole));
            });
            assert_eq!(mutex.lock().get(), 3);
        });
    });
}

#[test]
fn unlocked_for_a_while_it_is_locked_again() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
        let add = || {
            let other = Arc::clone(&mutex);
            beside(move || {
                let value = other.lock();
                value.set(value.get() + 1);
            })
            .join();
        };
        let mut guard = mutex.lock();
        ReentrantMutexGuard::unlocked(&mut guard, add);
        ReentrantMutexGuard::unlocked_fair(&mut guard, add);
        assert_eq!(guard.get(), 2);
        assert!(mutex.is_owned_by_current_thread());
        drop(guard);
        let mut guard = mutex.lock_arc();
        ArcReentrantMutexGuard::unlocked(&mut guard, add);
        ArcReentrantMutexGuard::unlocked_fair(&mut guard, add);
        assert_eq!(guard.get(), 4);
        drop(guard);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn one_of_two_guards_unlocked_for_a_while_lets_no_task_in() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let (first, mut second) = (mutex.lock(), mutex.lock());
        let others_are_kept_out = || {
            let other = Arc::clone(&mutex);
            assert!(beside(move || other.try_lock().is_none()).join());
            assert!(mutex.is_owned_by_current_thread());
        };
        ReentrantMutexGuard::unlocked(&mut second, others_are_kept_out);
        ReentrantMutexGuard::unlocked_fair(&mut second, others_are_kept_out);
        drop(first);
        others_are_kept_out();
        drop(second);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn a_panic_while_it_is_unlocked_comes_out_when_it_is_locked_again() {
    everywhere(|| {
        let mutex = ReentrantMutex::new(());
        let mut guard = mutex.lock();
        for unlocked in [ReentrantMutexGuard::unlocked, ReentrantMutexGuard::unlocked_fair] {
            let fail: fn() = || std::panic::resume_unwind(Box::new(()));
            assert!(catch_unwind(AssertUnwindSafe(|| unlocked(&mut guard, fail))).is_err());
            assert!(mutex.is_owned_by_current_thread());
        }
        drop(guard);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn a_bump_of_a_guard_with_a_share_lets_a_waiter_in() {
    in_tasks(|| {
        let mutex = Arc::new(ReentrantMutex::new(Cell::new(0)));
        let mut guard = mutex.lock_arc();
        let other = Arc::clone(&mutex);
        let side = beside(move || other.lock().set(1));
        while guard.get() == 0 {
            ArcReentrantMutexGuard::bump(&mut guard);
            give_way();
        }
        assert!(mutex.is_owned_by_current_thread());
        drop(guard);
        side.join();
    });
}

#[test]
fn timed_attempts_with_a_share_end_in_their_time() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let first = mutex.try_lock_arc_for(SHORT).expect("it is free");
        let second = mutex.try_lock_arc_until(Instant::now()).expect("it is the caller's");
        drop(first);
        let other = Arc::clone(&mutex);
        beside(move || {
            let begun = Instant::now();
            assert!(other.try_lock_arc_for(SHORT).is_none());
            assert!(begun.elapsed() >= SHORT);
            let deadline = Instant::now() + SHORT;
            assert!(other.try_lock_arc_until(deadline).is_none());
            assert!(Instant::now() >= deadline);
        })
        .join();
        let (other, another) = (Arc::clone(&mutex), Arc::clone(&mutex));
        let waiting = [
            beside(move || other.try_lock_arc_for(LONG).is_some()),
            beside(move || another.try_lock_arc_until(Instant::now() + LONG).is_some()),
        ];
        pause();
        drop(second);
        assert!(waiting.into_iter().all(|side| side.join()));
        assert!(!mutex.is_locked());
    });
}

#[test]
fn it_says_what_it_holds() {
    everywhere(|| {
        let mutex = ReentrantMutex::new(7);
        assert_eq!(format!("{mutex:?}"), "ReentrantMutex { data: 7 }");
    });
}

#[test]
fn it_has_the_name_of_std_too() {
    static LOCK: fibra_sync::ReentrantLock<i32> = fibra_sync::ReentrantLock::new(1);
    let outer: fibra_sync::ReentrantLockGuard<'_, i32> = LOCK.lock();
    let inner: ReentrantMutexGuard<'_, i32> = LOCK.lock();
    assert_eq!(*outer + *inner, 2);
}
