//! What `ReentrantMutex` promises beyond what all locks do, which `locks.rs` tests.

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use common::{beside, everywhere, give_way, guarded, in_tasks, pause, runtime};
use fibra_sync::{ArcReentrantMutexGuard, ReentrantMutex, ReentrantMutexGuard};

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
    guarded(|| {
        runtime(1).run(|| {
            let mutex = Arc::new(ReentrantMutex::new(()));
            let guard = mutex.lock();
            let other = Arc::clone(&mutex);
            let task = fibra_runtime::spawn(move || {
                assert!(!other.is_owned_by_current_thread());
                assert!(other.try_lock().is_none());
                assert!(other.try_lock_for(Duration::from_millis(1)).is_none());
                let _guard = other.lock();
            });
            pause();
            assert!(!task.is_finished());
            drop(guard);
            task.join().unwrap();
        });
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
fn attempts_of_the_owner_succeed_at_any_depth() {
    everywhere(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let _first = mutex.lock();
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
        let _owned: ArcReentrantMutexGuard<()> = mutex.try_lock_arc().unwrap();
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
fn nobody_takes_a_forgotten_guard_for_his_own() {
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
fn it_says_what_it_holds() {
    everywhere(|| {
        let mutex = ReentrantMutex::new(7);
        assert_eq!(format!("{mutex:?}"), "ReentrantMutex { data: 7 }");
    });
}
