//! What becomes of guards that one task of a worker passes to another: they are not `Send`, but go there with what a local
//! task takes along, or through an `Rc`. For `Mutex` see `mutex.rs`.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use crate::message::text_of;
use crate::rwlocks::{assert_free, let_run, step_by_step};
use fibra_runtime as fibra;
use fibra_sync::{
    MappedMutexGuard, MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex,
    MutexGuard, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockExt, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};

const SHORT: Duration = Duration::from_millis(1);

fn lasting<T>(thing: T) -> &'static T {
    Box::leak(Box::new(thing))
}

/// Read-write locks of both policies.
fn rwlocks() -> [&'static RwLock<(i32, i32)>; 2] {
    [RwLock::new((0, 0)), RwLock::writer_first((0, 0))].map(lasting)
}

/// Has another task of this worker use the guard, to its end.
fn passed<G: 'static, T: 'static>(guard: G, user: impl FnOnce(G) -> T + 'static) -> T {
    fibra::spawn_local(move || user(guard)).join().unwrap()
}

fn locks_twice<G>(lock: impl FnOnce() -> G) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(lock()))) else { return false };
    text_of(&*payload).contains("locked twice by ")
}

/// Drops a guard in another task, while a writer waits: nothing is left of it.
fn leaves_nothing<G: 'static>(lock: &'static RwLock<(i32, i32)>, guard: G) {
    let before = fibra::spawn(|| lock.write().0 += 1);
    let_run();
    assert!(!before.is_finished());
    passed(guard, move |guard| {
        drop(guard);
        // Not its own any more.
        lock.write().0 += 1;
    });
    before.join().unwrap();
    // Nor the first one's.
    lock.write().0 += 1;
    drop(lock.read());
    assert_free(lock);
}

#[test]
fn any_guard_of_a_read_write_lock_may_be_dropped_by_another_task() {
    step_by_step(|| {
        for lock in rwlocks() {
            leaves_nothing(lock, lock.read());
            leaves_nothing(lock, lock.write());
            leaves_nothing(lock, lock.upgradable_read());
            leaves_nothing(lock, RwLockReadGuard::map(lock.read(), |pair| &pair.0));
            leaves_nothing(lock, RwLockWriteGuard::map(lock.write(), |pair| &mut pair.0));
            assert_eq!(lock.read().0, 5 * 3);
        }
    });
}

#[test]
fn another_task_may_make_of_a_guard_what_its_owner_may() {
    step_by_step(|| {
        for lock in rwlocks() {
            passed(lock.upgradable_read(), |reading| {
                let mut writing = RwLockUpgradableReadGuard::upgrade(reading);
                writing.0 += 1;
                let reading = RwLockWriteGuard::downgrade_to_upgradable(writing);
                assert_eq!(RwLockUpgradableReadGuard::downgrade(reading).0, 1);
            });
            assert_free(lock);
            passed(lock.write(), |writing| assert_eq!(RwLockWriteGuard::downgrade(writing).0, 1));
            assert_free(lock);
            passed(lock.write(), |writing| {
                let mut part = RwLockWriteGuard::map(writing, |pair| &mut pair.1);
                *part += 1;
                MappedRwLockWriteGuard::unlock_fair(part);
            });
            assert_free(lock);
            passed(lock.read(), |reading| {
                MappedRwLockReadGuard::unlock_fair(RwLockReadGuard::map(reading, |pair| &pair.1));
            });
            assert_free(lock);
            assert_eq!(*lock.read(), (1, 1));
        }
    });
}

#[test]
fn a_guard_that_came_back_is_as_before() {
    step_by_step(|| {
        for lock in rwlocks() {
            let place = Rc::new(RefCell::new(Some(lock.write())));
            passed(Rc::clone(&place), |place| {
                let mut guard = place.borrow_mut().take().unwrap();
                guard.0 = 7;
                *place.borrow_mut() = Some(guard);
            });
            let guard = place.borrow_mut().take().unwrap();
            assert_eq!(guard.0, 7);
            assert!(locks_twice(|| lock.read()));
            drop(guard);
            assert_free(lock);
        }
    });
}

#[test]
fn a_read_write_lock_belongs_to_its_locker_until_the_guard_is_dropped() {
    step_by_step(|| {
        for lock in rwlocks() {
            let holder = fibra::spawn_local({
                let guard = lock.write();
                move || {
                    assert!(lock.try_write().is_none());
                    assert!(lock.try_write_for(SHORT).is_none());
                    fibra::task::park();
                    drop(guard);
                }
            });
            let_run();
            assert!(locks_twice(|| lock.write()));
            assert!(locks_twice(|| lock.read()));
            assert!(lock.try_upgradable_read_for(SHORT).is_none());
            holder.task().unpark();
            // From now on each is seen again that locks twice.
            holder.join().unwrap();
            let guard = lock.upgradable_read();
            assert!(locks_twice(|| lock.write()));
            passed((), move |()| {
                assert!(lock.try_write().is_none());
                drop(lock.read());
            });
            drop(guard);
            passed((), move |()| {
                let _guard = lock.write();
                assert!(locks_twice(|| lock.write()));
            });
            assert_free(lock);
        }
    });
}

#[test]
fn a_read_write_lock_unlocked_for_a_while_belongs_to_the_task_that_unlocked_it() {
    step_by_step(|| {
        for lock in rwlocks() {
            let holder = fibra::spawn_local({
                let mut guard = lock.write();
                move || {
                    RwLockWriteGuard::unlocked(&mut guard, || drop(lock.read()));
                    assert!(locks_twice(|| lock.write()));
                    fibra::task::park();
                }
            });
            let_run();
            let waiting = fibra::spawn(|| drop(lock.write()));
            let_run();
            assert!(lock.try_write_for(SHORT).is_none());
            holder.task().unpark();
            // No panic: it waits for the holder.
            lock.write().0 += 1;
            holder.join().unwrap();
            waiting.join().unwrap();
            assert_free(lock);
        }
    });
}

#[test]
fn a_mapped_guard_of_a_mutex_may_be_dropped_by_another_task() {
    step_by_step(|| {
        let mutex: &'static Mutex<(i32, i32)> = lasting(Mutex::new((0, 0)));
        passed(MutexGuard::map(mutex.lock(), |pair| &mut pair.1), move |part| {
            *MappedMutexGuard::map(part, |part| part) += 1;
            drop(mutex.lock());
        });
        assert_eq!(mutex.lock().1, 1);
    });
}

type Reentrant = ReentrantMutex<(Cell<i32>, Cell<i32>)>;

#[test]
fn a_guard_of_a_reentrant_mutex_may_be_dropped_by_another_task() {
    step_by_step(|| {
        let mutex: &'static Reentrant = lasting(ReentrantMutex::default());
        let first = mutex.lock();
        passed(mutex.lock(), move |second| {
            drop(second);
            assert!(mutex.try_lock().is_none(), "the first guard is left");
        });
        assert!(mutex.is_owned_by_current_thread());
        let waiting = fibra::spawn(|| drop(mutex.lock()));
        let_run();
        assert!(!waiting.is_finished());
        passed(first, move |first| {
            drop(first);
            drop(mutex.lock());
        });
        assert!(!mutex.is_owned_by_current_thread());
        waiting.join().unwrap();
        passed(ReentrantMutexGuard::map(mutex.lock(), |pair| &pair.1), move |part| {
            MappedReentrantMutexGuard::map(part, |part| part).set(1);
            drop(mutex.lock());
        });
        assert_eq!(mutex.lock().1.get(), 1);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn a_reentrant_mutex_belongs_to_its_locker_until_the_guard_is_dropped() {
    step_by_step(|| {
        let mutex: &'static Reentrant = lasting(ReentrantMutex::default());
        let holder = fibra::spawn_local({
            let guard = mutex.lock();
            move || {
                assert!(!mutex.is_owned_by_current_thread());
                assert!(mutex.try_lock().is_none());
                assert!(mutex.try_lock_for(SHORT).is_none());
                fibra::task::park();
                drop(guard);
            }
        });
        let_run();
        assert!(mutex.is_owned_by_current_thread());
        drop(mutex.lock());
        assert!(mutex.is_locked());
        holder.task().unpark();
        holder.join().unwrap();
        assert!(!mutex.is_locked() && !mutex.is_owned_by_current_thread());
    });
}

#[test]
fn a_guard_may_outlive_the_task_that_locked() {
    fn left_by_another<G: 'static>(lock: impl FnOnce() -> G + 'static) -> G {
        passed((), |()| lock())
    }
    step_by_step(|| {
        let mutex: &'static Reentrant = lasting(ReentrantMutex::default());
        let guard = left_by_another(|| mutex.lock());
        assert!(mutex.is_locked() && mutex.try_lock().is_none());
        drop(guard);
        drop(mutex.lock());
        for lock in rwlocks() {
            let guard = left_by_another(|| lock.write());
            assert!(lock.try_read_for(SHORT).is_none());
            drop(guard);
            let guard = left_by_another(|| lock.upgradable_read());
            drop(lock.read());
            assert!(lock.try_write_for(SHORT).is_none());
            drop(guard);
            assert_free(lock);
        }
    });
}
