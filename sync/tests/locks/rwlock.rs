//! The promises of the read-write lock to each locker, by name. The order of entry is in `rwlock_turns.rs`, what one guard may
//! become in `rwlock_upgrades.rs`, all of it under races in `rwlock_races.rs`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, guarded, pause, runtime, until};
use crate::message::message;
use crate::rwlocks::{assert_free, both, door_is_closed, let_run, step_by_step};
use fibra_runtime::{self as fibra, wait};
use fibra_sync::{
    ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockExt, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard, lock_api,
};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

#[test]
fn it_locks_and_unlocks_in_every_way() {
    everywhere(|| {
        for lock in both(()) {
            drop(lock.read());
            drop(lock.write());
            drop((lock.read(), lock.read()));
            drop(lock.upgradable_read());
            drop((lock.upgradable_read(), lock.read()));
            drop(lock.write());
            assert_free(&lock);
        }
    });
}

#[test]
fn a_try_to_read_fails_beside_a_writer_only() {
    everywhere(|| {
        let lock = RwLock::new(0);
        let reading = lock.read();
        assert!(lock.try_read().is_some(), "beside a reader");
        drop(reading);
        let upgradable = lock.upgradable_read();
        assert!(lock.try_read().is_some(), "beside an upgradable reader");
        drop(upgradable);
        let _writing = lock.write();
        assert!(lock.try_read().is_none());
        assert!(lock.try_read_for(SHORT).is_none());
        assert!(lock.try_read_until(Instant::now()).is_none());
    });
}

#[test]
fn a_try_to_write_fails_while_the_lock_is_held() {
    everywhere(|| {
        let lock = RwLock::new(0);
        let fails = || {
            assert!(lock.try_write().is_none());
            assert!(lock.try_write_for(SHORT).is_none());
            assert!(lock.try_write_until(Instant::now()).is_none());
        };
        let reading = lock.read();
        fails();
        drop(reading);
        let upgradable = lock.upgradable_read();
        fails();
        drop(upgradable);
        let writing = lock.write();
        fails();
        drop(writing);
        assert_free(&lock);
    });
}

#[test]
fn a_try_to_read_upgradably_fails_beside_a_writer_or_another() {
    everywhere(|| {
        let lock = RwLock::new(0);
        let reading = lock.read();
        assert!(lock.try_upgradable_read().is_some(), "beside a reader");
        drop(reading);
        let upgradable = lock.upgradable_read();
        assert!(lock.try_upgradable_read().is_none());
        assert!(lock.try_upgradable_read_for(SHORT).is_none());
        assert!(lock.try_upgradable_read_until(Instant::now()).is_none());
        drop(upgradable);
        let writing = lock.write();
        assert!(lock.try_upgradable_read().is_none());
        drop(writing);
        assert_free(&lock);
    });
}

#[test]
fn it_says_whether_and_how_it_is_locked() {
    everywhere(|| {
        let lock = RwLock::new(());
        let seen = || (lock.is_locked(), lock.is_locked_exclusive());
        assert_eq!(seen(), (false, false));
        let reading = lock.read();
        assert_eq!(seen(), (true, false));
        drop(reading);
        let upgradable = lock.upgradable_read();
        assert_eq!(seen(), (true, false));
        drop(upgradable);
        let _writing = lock.write();
        assert_eq!(seen(), (true, true));
    });
}

#[test]
fn a_panic_of_a_holder_unlocks_and_poisons_nothing() {
    everywhere(|| {
        let lock = Arc::new(RwLock::new(1));
        let panicking: [fn(&RwLock<i32>); 3] = [
            |lock| {
                let _guard = lock.write();
                panic!("a writer")
            },
            |lock| {
                let _guard = lock.read();
                panic!("a reader")
            },
            |lock| {
                let _guard = lock.upgradable_read();
                panic!("an upgradable reader")
            },
        ];
        for panics in panicking {
            let shared = Arc::clone(&lock);
            beside(move || catch_unwind(AssertUnwindSafe(|| panics(&shared))).unwrap_err()).join();
            assert_eq!(*lock.read(), 1);
            assert_eq!(*lock.write(), 1);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_destructor_may_lock_while_its_task_unwinds() {
    struct Adds(Arc<RwLock<i32>>);
    impl Drop for Adds {
        fn drop(&mut self) {
            *self.0.write() += 1;
        }
    }
    everywhere(|| {
        let lock = Arc::new(RwLock::new(1));
        let shared = Arc::clone(&lock);
        let held = lock.read();
        let other = beside(move || {
            let body = AssertUnwindSafe(|| {
                let _adds = Adds(shared);
                panic!("on purpose")
            });
            catch_unwind(body).unwrap_err()
        });
        until(|| door_is_closed(&lock));
        drop(held);
        drop(other.join());
        assert_eq!(*lock.read(), 2);
    });
}

#[test]
fn values_may_be_unsized_and_leave_with_the_lock() {
    let lock: &RwLock<[i32]> = &RwLock::new([1, 2, 3]);
    lock.write()[0] = 4;
    assert_eq!(*lock.read(), [4, 2, 3]);
    let shared: Arc<RwLock<[i32]>> = Arc::new(RwLock::new([1, 2]));
    shared.write_arc()[1] = 5;
    assert_eq!(*shared.read_arc(), [1, 5]);
    assert_eq!(*shared.upgradable_read_arc(), [1, 5]);

    let mut lock = RwLock::new(String::from("a"));
    lock.get_mut().push('b');
    assert_eq!(lock.into_inner(), "ab");
}

#[test]
fn the_value_is_dropped_once_with_the_lock_and_not_when_it_was_taken_out() {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let value = RwLock::new(Counts(Arc::clone(&drops))).into_inner();
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(value);
    drop(RwLock::writer_first(Counts(Arc::clone(&drops))));
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

#[test]
fn it_is_made_from_values_and_shown_also_while_it_is_locked() {
    static LOCK: RwLock<i32> = RwLock::new(3);
    static FIRST: RwLock<i32> = RwLock::from_raw(RawRwLock::writer_first(), 4);
    assert_eq!(*LOCK.read() + *FIRST.read(), 7);
    assert_eq!(*RwLock::<i32>::default().read(), 0);
    let lock = RwLock::from(5);
    assert_eq!(format!("{lock:?}"), "RwLock { data: 5 }");
    let _writing = lock.write();
    assert_eq!(format!("{lock:?}"), "RwLock { data: <locked> }");
}

#[test]
fn it_and_its_guards_go_where_they_may() {
    fn send_and_sync<T: Send + Sync>() {}
    fn sync<T: Sync>(_: &T) {}
    send_and_sync::<RwLock<Vec<i32>>>();
    fn send<T: Send>() {}
    send::<RwLock<Cell<i32>>>();
    let lock = RwLock::new(1);
    sync(&lock.read());
    sync(&lock.write());
    sync(&lock.upgradable_read());
}

#[test]
fn it_has_all_names_of_lock_api_and_its_guards_name_it() {
    let lock = Arc::new(RwLock::new(1));
    let named: &RwLock<i32> = RwLockReadGuard::rwlock(&lock.read());
    assert!(std::ptr::eq(named, &*lock));
    let owned: ArcRwLockReadGuard<RawRwLock, i32> = lock.read_arc();
    let named: &Arc<RwLock<i32>> = ArcRwLockReadGuard::rwlock(&owned);
    assert!(Arc::ptr_eq(named, &lock));
    drop(owned);
    let _: ArcRwLockWriteGuard<RawRwLock, i32> = lock.write_arc();
    let _: ArcRwLockUpgradableReadGuard<RawRwLock, i32> = lock.upgradable_read_arc();
    assert!(!lock.is_locked());
    let data: *mut i32 = lock.data_ptr();
    assert_eq!(data.cast_const(), &raw const *lock.read());
    // SAFETY: each hold is given up by hand once, since no guard stands for it.
    unsafe {
        use lock_api::RawRwLock as _;
        let raw: &RawRwLock = lock.raw();
        lock.force_unlock_read(raw.lock_shared());
        lock.force_unlock_read_fair(raw.lock_shared());
        lock.force_unlock_write(raw.lock_exclusive());
        lock.force_unlock_write_fair(raw.lock_exclusive());
    }
    assert_free(&lock);
}

#[test]
fn guards_can_be_narrowed_to_a_part() {
    everywhere(|| {
        let lock = RwLock::new((1, String::from("a")));
        {
            let mut part: MappedRwLockWriteGuard<'_, String> =
                RwLockWriteGuard::map(lock.write(), |value| &mut value.1);
            part.push('b');
            assert!(lock.try_read().is_none());
        }
        let part: MappedRwLockReadGuard<'_, str> =
            RwLockReadGuard::map(lock.read(), |value| value.1.as_str());
        assert_eq!(&*part, "ab");
        assert!(lock.try_write().is_none());
        drop(part);
        let whole = RwLockReadGuard::try_map(lock.read(), |value| value.1.strip_prefix('x'));
        assert_eq!(whole.expect_err("no such part").0, 1);
        let name = RwLockReadGuard::map(lock.read(), |value| &value.1);
        let name = MappedRwLockReadGuard::map(name, |name| &name.as_bytes()[1..]);
        assert_eq!(*name, *b"b");
        drop(name);
        assert_free(&lock);
    });
}

#[test]
fn a_panic_in_the_choice_of_a_part_unlocks() {
    everywhere(|| {
        let lock = RwLock::new(1);
        let choosing: [fn(&RwLock<i32>); 3] = [
            |lock| drop(RwLockReadGuard::map(lock.read(), |_| -> &u8 { panic!("on purpose") })),
            |lock| drop(RwLockWriteGuard::map(lock.write(), |_| -> &mut u8 { panic!("on purpose") })),
            |lock| {
                let whole = RwLockWriteGuard::map(lock.write(), |whole| whole);
                drop(MappedRwLockWriteGuard::map(whole, |_| -> &mut u8 { panic!("on purpose") }));
            },
        ];
        for choose in choosing {
            assert!(catch_unwind(AssertUnwindSafe(|| choose(&lock))).is_err());
            assert_free(&lock);
        }
    });
}

#[test]
fn guards_with_a_share_keep_the_lock_alive() {
    everywhere(|| {
        let lock = Arc::new(RwLock::new(1));
        let mut writing = lock.write_arc();
        assert_eq!(Arc::strong_count(&lock), 2);
        assert!(lock.try_read_arc().is_none());
        assert!(lock.try_read_arc_for(SHORT).is_none());
        assert!(lock.try_write_arc_until(Instant::now()).is_none());
        assert!(lock.try_upgradable_read_arc_for(SHORT).is_none());
        *writing = 2;
        drop(writing);
        assert_eq!(Arc::strong_count(&lock), 1);
        let upgradable = lock.try_upgradable_read_arc().expect("free");
        let reading = lock.try_read_arc_until(Instant::now()).expect("beside it");
        assert!(lock.try_upgradable_read_arc_until(Instant::now()).is_none());
        assert!(lock.try_write_arc().is_none() && lock.try_write_arc_for(SHORT).is_none());
        drop(lock);
        assert_eq!(*upgradable + *reading, 4);
    });
}

#[test]
fn a_timed_wait_that_is_long_enough_gets_the_lock() {
    everywhere(|| {
        for lock in both(0) {
            let lockers: [fn(&RwLock<i32>) -> bool; 6] = [
                |lock| lock.try_read_for(LONG).is_some(),
                |lock| lock.try_write_for(LONG).is_some(),
                |lock| lock.try_upgradable_read_for(Duration::MAX).is_some(),
                |lock| lock.try_read_until(Instant::now() + LONG).is_some(),
                |lock| lock.try_write_until(Instant::now() + LONG).is_some(),
                |lock| lock.try_upgradable_read_until(Instant::now() + LONG).is_some(),
            ];
            let writing = lock.write();
            let others = lockers.map(|try_lock| {
                let shared = Arc::clone(&lock);
                beside(move || try_lock(&shared))
            });
            pause();
            drop(writing);
            assert!(others.into_iter().all(|other| other.join()));
            assert_free(&lock);
        }
    });
}

#[test]
fn a_timed_wait_ends_not_before_its_time() {
    everywhere(|| {
        let lock = RwLock::new(());
        let _writing = lock.write();
        let begin = Instant::now();
        assert!(lock.try_read_for(SHORT).is_none());
        assert!(begin.elapsed() >= SHORT);
        let deadline = Instant::now() + SHORT;
        assert!(lock.try_write_until(deadline).is_none());
        assert!(Instant::now() >= deadline);
    });
}

#[test]
fn a_cancel_ends_no_wait_for_the_lock() {
    step_by_step(|| {
        for lock in both(0) {
            let lockers: [fn(&RwLock<i32>); 3] = [
                |lock| *lock.write() += 1,
                |lock| drop(lock.read()),
                |lock| *RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) += 1,
            ];
            let writing = lock.write();
            let tasks = lockers.map(|lock_it| {
                let shared = Arc::clone(&lock);
                fibra::spawn(move || {
                    lock_it(&shared);
                    let _held = shared.write();
                    wait::cancellation_point();
                    unreachable!("the task was cancelled");
                })
            });
            let_run();
            tasks.iter().for_each(|task| task.task().cancel());
            let_run();
            assert!(tasks.iter().all(|task| !task.is_finished()));
            drop(writing);
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
            assert_eq!(*lock.read(), 2);
            assert_free(&lock);
        }
    });
}

#[test]
fn locking_twice_panics_and_names_the_task() {
    guarded(|| {
        runtime(1).run(|| {
            let named = fibra::task::Builder::new().name("clumsy").spawn(|| {
                let lock = RwLock::new(());
                let _writing = lock.write();
                message(|| lock.write())
            });
            let message = named.join().unwrap();
            assert!(message.contains("fibra::sync::RwLock locked twice by task 'clumsy'"), "{message}");
        });
    });
    everywhere(|| {
        let lock = RwLock::new(1);
        let twice = |message: String| assert!(message.contains("locked twice by "), "{message}");
        {
            let _writing = lock.write();
            twice(message(|| lock.write()));
            twice(message(|| lock.read()));
            twice(message(|| lock.upgradable_read()));
            twice(message(|| lock.try_write_for(Duration::MAX)));
        }
        {
            let _upgradable = lock.upgradable_read();
            twice(message(|| lock.write()));
            twice(message(|| lock.upgradable_read()));
            drop(lock.read());
        }
        let upgraded = RwLockUpgradableReadGuard::upgrade(lock.upgradable_read());
        twice(message(|| lock.read()));
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(upgraded);
        twice(message(|| lock.write()));
        drop(upgradable);
        assert_free(&lock);
    });
}

#[test]
fn reading_beside_the_own_upgradable_guard_panics_where_it_would_hang() {
    step_by_step(|| {
        let lock = Arc::new(RwLock::new(0));
        let upgradable = lock.upgradable_read();
        let shared = Arc::clone(&lock);
        let writer = fibra::spawn(move || *shared.write() += 1);
        let_run();
        assert!(message(|| lock.read()).contains("locked twice by "));
        drop(upgradable);
        writer.join().unwrap();
        assert_free(&lock);
    });
}

#[test]
fn a_guard_that_is_forgotten_leaves_the_lock_locked_and_the_rest_sound() {
    everywhere(|| {
        let mut lock = RwLock::new(1);
        std::mem::forget(lock.write());
        assert!(lock.try_read().is_none());
        *lock.get_mut() = 2;
        // SAFETY: the writer above is this caller, whose guard is gone.
        unsafe { lock.force_unlock_write(lock_api::GuardNoSend::new()) };
        assert_eq!(*lock.read(), 2);
        assert_free(&lock);
    });
}
