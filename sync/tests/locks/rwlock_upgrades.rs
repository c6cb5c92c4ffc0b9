//! What a guard of the read-write lock may become while others wait.

use std::mem::replace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, give_way, until};
use crate::rwlocks::{assert_free, both, door_is_closed, let_run, step_by_step};
use fibra_runtime as fibra;
use fibra_sync::{RwLock, RwLockExt, RwLockUpgradableReadGuard, RwLockWriteGuard};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

#[test]
fn an_upgrade_succeeds_alone_only_and_gives_the_guard_back_otherwise() {
    everywhere(|| {
        let lock = RwLock::new(0);
        let reading = lock.read();
        let upgradable = lock.upgradable_read();
        let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect_err("a reader is in");
        let upgradable = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT).expect_err("still");
        assert!(lock.try_read().is_some(), "the failed upgrade keeps no reader out");
        drop(reading);
        let mut writing = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect("alone");
        *writing += 1;
        assert!(lock.is_locked_exclusive());
        drop(writing);
        let writing = RwLockUpgradableReadGuard::upgrade(lock.upgradable_read());
        assert_eq!(*writing, 1);
        drop(writing);
        assert_free(&lock);
    });
}

#[test]
fn a_guard_becomes_each_weaker_one() {
    everywhere(|| {
        let lock = RwLock::new(0);
        let reading = RwLockWriteGuard::downgrade(lock.write());
        assert!(lock.try_read().is_some() && lock.try_write().is_none());
        drop(reading);
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(lock.write());
        assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
        let reading = RwLockUpgradableReadGuard::downgrade(upgradable);
        assert!(lock.try_upgradable_read().is_some() && lock.try_write().is_none());
        drop(reading);
        assert_free(&lock);
    });
}

#[test]
fn a_guard_may_be_upgraded_for_a_while_again_and_again() {
    everywhere(|| {
        let lock = Arc::new(RwLock::new(0));
        let mut upgradable = lock.upgradable_read();
        (0..2).for_each(|_| upgradable.with_upgraded(|value| *value += 1));
        assert_eq!(*upgradable, 2);
        drop(upgradable);
        let mut shared = lock.upgradable_read_arc();
        (0..2).for_each(|_| shared.with_upgraded(|value| *value += 1));
        assert!(lock.try_write().is_none() && lock.try_read().is_some());
        drop(shared);
        assert_eq!(*lock.read(), 4);
        assert_free(&lock);
    });
}

#[test]
fn an_attempt_to_be_upgraded_for_a_while_writes_alone_only() {
    everywhere(|| {
        for lock in both(0) {
            let later = || Instant::now() + SHORT;
            let mut upgradable = lock.upgradable_read();
            assert_eq!(upgradable.try_with_upgraded(|value| replace(value, 1)), Some(0));
            assert_eq!(upgradable.try_with_upgraded_for(SHORT, |value| replace(value, 2)), Some(1));
            assert_eq!(upgradable.try_with_upgraded_until(later(), |value| replace(value, 3)), Some(2));
            let reading = lock.read();
            assert_eq!(upgradable.try_with_upgraded(|value| *value = 4), None);
            let begun = Instant::now();
            assert_eq!(upgradable.try_with_upgraded_for(SHORT, |value| *value = 4), None);
            assert!(begun.elapsed() >= SHORT);
            let deadline = later();
            assert_eq!(upgradable.try_with_upgraded_until(deadline, |value| *value = 4), None);
            assert!(Instant::now() >= deadline);
            assert_eq!((*upgradable, *reading), (3, 3));
            assert!(lock.try_read().is_some(), "the failed attempts keep no reader out");
            assert!(lock.try_upgradable_read().is_none(), "it stays the upgradable reader");
            drop((upgradable, reading));
            assert_free(&lock);

            let mut shared = lock.upgradable_read_arc();
            assert_eq!(shared.try_with_upgraded(|value| replace(value, 4)), Some(3));
            assert_eq!(shared.try_with_upgraded_for(SHORT, |value| replace(value, 5)), Some(4));
            assert_eq!(shared.try_with_upgraded_until(later(), |value| replace(value, 6)), Some(5));
            let reading = lock.read();
            assert_eq!(shared.try_with_upgraded(|value| *value = 7), None);
            assert_eq!(shared.try_with_upgraded_for(SHORT, |value| *value = 7), None);
            assert_eq!(shared.try_with_upgraded_until(later(), |value| *value = 7), None);
            drop((shared, reading));
            assert_eq!(*lock.read(), 6);
            assert_free(&lock);
        }
    });
}

#[test]
fn upgraded_in_time_for_a_while_it_writes_when_the_readers_have_left() {
    type Way = fn(&mut RwLockUpgradableReadGuard<'_, i32>);
    let ways: [Way; 3] = [
        |guard| guard.with_upgraded(|value| *value += 1),
        |guard| guard.try_with_upgraded_for(LONG, |value| *value += 1).expect("in time"),
        |guard| guard.try_with_upgraded_until(Instant::now() + LONG, |value| *value += 1).expect("in time"),
    ];
    step_by_step(|| {
        for lock in both(0) {
            for upgraded in ways {
                let reading = lock.read();
                let shared = Arc::clone(&lock);
                let upgrading = fibra::spawn(move || upgraded(&mut shared.upgradable_read()));
                let_run();
                assert!(door_is_closed(&lock) && !upgrading.is_finished());
                drop(reading);
                upgrading.join().unwrap();
            }
            assert_eq!(*lock.read(), 3);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_panic_while_upgraded_leaves_an_upgradable_guard() {
    fn fails(upgraded: impl FnOnce(fn(&mut i32))) {
        let fail: fn(&mut i32) = |value| {
            *value += 1;
            std::panic::resume_unwind(Box::new(()))
        };
        assert!(catch_unwind(AssertUnwindSafe(|| upgraded(fail))).is_err());
    }
    everywhere(|| {
        for lock in both(0) {
            let mut upgradable = lock.upgradable_read();
            fails(|fail| upgradable.with_upgraded(fail));
            fails(|fail| _ = upgradable.try_with_upgraded(fail));
            fails(|fail| _ = upgradable.try_with_upgraded_for(SHORT, fail));
            fails(|fail| _ = upgradable.try_with_upgraded_until(Instant::now() + SHORT, fail));
            assert_eq!(*upgradable, 4);
            assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
            drop(upgradable);
            assert_free(&lock);
        }
    });
}

#[test]
fn an_upgrade_waits_for_the_readers_and_goes_before_a_writer() {
    everywhere(|| {
        for lock in both(Vec::new()) {
            let upgradable = lock.upgradable_read();
            let (inside, go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let reader = {
                let (lock, inside, go) = (Arc::clone(&lock), Arc::clone(&inside), Arc::clone(&go));
                beside(move || {
                    let seen = lock.read();
                    inside.store(true, Ordering::Relaxed);
                    until(|| go.load(Ordering::Relaxed));
                    give_way();
                    assert!(seen.is_empty(), "no writer is in beside a reader");
                })
            };
            until(|| inside.load(Ordering::Relaxed));
            let shared = Arc::clone(&lock);
            let writer = beside(move || shared.write().push("writer"));
            until(|| lock.try_read().is_none());
            go.store(true, Ordering::Relaxed);
            let mut writing = RwLockUpgradableReadGuard::upgrade(upgradable);
            writing.push("upgrade");
            drop(writing);
            reader.join();
            writer.join();
            assert_eq!(*lock.read(), ["upgrade", "writer"]);
            assert_free(&lock);
        }
    });
}

#[test]
fn an_upgrade_keeps_new_readers_out_and_lets_them_in_when_it_gives_up() {
    step_by_step(|| {
        for lock in both(0) {
            let reading = lock.read();
            let shared = Arc::clone(&lock);
            let gave_up = Arc::new(AtomicBool::new(false));
            let (says, done) = (Arc::clone(&gave_up), Arc::new(AtomicBool::new(false)));
            let may_end = Arc::clone(&done);
            let upgrading = fibra::spawn(move || {
                let upgradable = shared.upgradable_read();
                let failed = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT);
                says.store(true, Ordering::Relaxed);
                let _upgradable = failed.expect_err("a reader is in");
                until(|| may_end.load(Ordering::Relaxed));
            });
            let_run();
            assert!(door_is_closed(&lock) || gave_up.load(Ordering::Relaxed));
            let shared = Arc::clone(&lock);
            let behind = fibra::spawn(move || *shared.read());
            let_run();
            assert!(!behind.is_finished() || gave_up.load(Ordering::Relaxed));
            assert_eq!(behind.join().unwrap(), 0);
            assert!(lock.try_upgradable_read().is_none(), "it stays the upgradable reader");
            done.store(true, Ordering::Relaxed);
            upgrading.join().unwrap();
            drop(reading);
            assert_free(&lock);
        }
    });
}

#[test]
fn no_write_comes_between_an_upgradable_read_and_its_upgrade() {
    everywhere(|| {
        for lock in both(0) {
            let adders: Vec<_> = (0..8)
                .map(|_| Arc::clone(&lock))
                .map(|lock| {
                    beside(move || {
                        for _ in 0..50 {
                            let upgradable = lock.upgradable_read();
                            let before = *upgradable;
                            give_way();
                            *RwLockUpgradableReadGuard::upgrade(upgradable) = before + 1;
                        }
                    })
                })
                .collect();
            adders.into_iter().for_each(|adder| adder.join());
            assert_eq!(*lock.read(), 8 * 50);
            assert_free(&lock);
        }
    });
}

#[test]
fn no_write_comes_between_a_write_and_its_downgrade() {
    everywhere(|| {
        for lock in both(0) {
            let stampers: Vec<_> = (1..=8)
                .map(|number| (number, Arc::clone(&lock)))
                .map(|(number, lock)| {
                    beside(move || {
                        for round in 0..50 {
                            let mut writing = lock.write();
                            *writing = number;
                            if round % 2 == 0 {
                                let reading = RwLockWriteGuard::downgrade(writing);
                                give_way();
                                assert_eq!(*reading, number);
                            } else {
                                let reading = RwLockWriteGuard::downgrade_to_upgradable(writing);
                                give_way();
                                assert_eq!(*reading, number);
                            }
                        }
                    })
                })
                .collect();
            stampers.into_iter().for_each(|stamper| stamper.join());
            assert_free(&lock);
        }
    });
}

#[test]
fn a_downgrade_lets_the_readers_in_that_wait() {
    step_by_step(|| {
        for lock in both(0) {
            let mut writing = lock.write();
            let readers: Vec<_> =
                (0..50).map(|_| Arc::clone(&lock)).map(|lock| fibra::spawn(move || *lock.read())).collect();
            let_run();
            *writing = 1;
            let reading = RwLockWriteGuard::downgrade(writing);
            readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), 1));
            drop(reading);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_downgrade_obeys_the_policy_when_a_writer_waits() {
    for (lock, reader_is_let_in) in [(RwLock::new(0), true), (RwLock::writer_first(0), false)] {
        let lock = Arc::new(lock);
        step_by_step(|| {
            let writing = lock.write();
            let shared = Arc::clone(&lock);
            let writer = fibra::spawn(move || *shared.write() += 1);
            let shared = Arc::clone(&lock);
            let reader = fibra::spawn(move || drop(shared.read()));
            let_run();
            let reading = RwLockWriteGuard::downgrade(writing);
            let_run();
            assert_eq!(reader.is_finished(), reader_is_let_in);
            assert!(!writer.is_finished() && door_is_closed(&lock));
            drop(reading);
            writer.join().unwrap();
            reader.join().unwrap();
            assert_free(&lock);
        });
    }
}
