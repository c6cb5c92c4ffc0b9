//! The order of entry into the read-write lock, also when a guard is unlocked for others, or for a while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, in_tasks, pause, until};
use crate::rwlocks::{assert_free, both, door_is_closed, let_run, step_by_step};
use fibra_runtime as fibra;
use fibra_sync::{
    ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, RwLock, RwLockExt, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};

const SHORT: Duration = Duration::from_millis(2);

#[test]
fn readers_are_in_together() {
    everywhere(|| {
        for lock in both(()) {
            let inside = Arc::new(AtomicUsize::new(0));
            let readers: Vec<_> = (0..5)
                .map(|_| (Arc::clone(&lock), Arc::clone(&inside)))
                .map(|(lock, inside)| {
                    beside(move || {
                        let _guard = lock.read();
                        inside.fetch_add(1, Ordering::Relaxed);
                        until(|| inside.load(Ordering::Relaxed) == 5);
                    })
                })
                .collect();
            readers.into_iter().for_each(|reader| reader.join());
            assert_free(&lock);
        }
    });
}

#[test]
fn a_writer_that_waits_closes_the_door_to_later_readers() {
    everywhere(|| {
        for lock in both(0) {
            let reading = lock.read();
            let shared = Arc::clone(&lock);
            let writer = beside(move || *shared.write() += 1);
            until(|| door_is_closed(&lock));
            assert!(lock.try_upgradable_read().is_none());
            let shared = Arc::clone(&lock);
            let late = beside(move || *shared.read());
            assert_eq!(*reading, 0);
            drop(reading);
            writer.join();
            assert_eq!(late.join(), 1, "the late reader comes after the writer");
            assert_free(&lock);
        }
    });
}

#[test]
fn a_reader_may_read_again_past_a_waiting_writer() {
    type Again = fn(&RwLock<i32>) -> RwLockReadGuard<'_, i32>;
    let ways: [Again; 4] = [
        |lock| lock.read_recursive(),
        |lock| lock.try_read_recursive().unwrap(),
        |lock| lock.try_read_recursive_for(Duration::ZERO).unwrap(),
        |lock| lock.try_read_recursive_until(Instant::now()).unwrap(),
    ];
    everywhere(|| {
        for (lock, again) in ways.into_iter().flat_map(|again| both(0).map(|lock| (lock, again))) {
            let reading = lock.read();
            let shared = Arc::clone(&lock);
            let writer = beside(move || *shared.write() += 1);
            until(|| door_is_closed(&lock));
            let inner = again(&lock);
            drop(reading);
            assert!(door_is_closed(&lock), "the writer waits for the other guard, too");
            let innermost = again(&lock);
            assert_eq!((*inner, *innermost), (0, 0));
            drop(inner);
            drop(innermost);
            writer.join();
            assert_eq!(*lock.read(), 1);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_recursive_read_waits_for_a_writer_that_is_inside() {
    everywhere(|| {
        for lock in both(0) {
            let mut writing = lock.write();
            let shared = Arc::clone(&lock);
            assert!(beside(move || shared.try_read_recursive().is_none()).join());
            let shared = Arc::clone(&lock);
            assert!(beside(move || shared.try_read_recursive_for(SHORT).is_none()).join());
            let readers = [(); 3].map(|()| {
                let shared = Arc::clone(&lock);
                beside(move || *shared.read_recursive())
            });
            pause();
            *writing = 1;
            drop(writing);
            readers.into_iter().for_each(|reader| assert_eq!(reader.join(), 1));
            assert_free(&lock);
        }
    });
}

#[test]
fn a_recursive_read_of_an_upgradable_reader_or_writer_succeeds_or_panics() {
    everywhere(|| {
        for lock in both(0) {
            let upgradable = lock.upgradable_read();
            let shared = Arc::clone(&lock);
            let writer = beside(move || *shared.write() += 1);
            until(|| door_is_closed(&lock));
            assert_eq!((*lock.read_recursive(), *upgradable), (0, 0));
            drop(upgradable);
            writer.join();
            let writing = lock.write();
            assert!(catch_unwind(AssertUnwindSafe(|| *lock.read_recursive())).is_err());
            drop(writing);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_writer_at_its_deadline_lets_readers_in_again() {
    everywhere(|| {
        for lock in both(0) {
            let reading = lock.read();
            let shared = Arc::clone(&lock);
            let writer = beside(move || shared.try_write_for(Duration::from_millis(20)).is_none());
            let shared = Arc::clone(&lock);
            // Behind the writer, or before it came, or after it went: it gets in while `reading` is held.
            let reader = beside(move || *shared.read());
            assert_eq!(reader.join(), 0);
            assert!(writer.join(), "a reader is in all the time");
            drop(lock.try_read().expect("readers are admitted"));
            drop(reading);
            assert_free(&lock);
        }
    });
}

#[test]
fn waiters_behind_a_writer_that_times_out_go_in_at_once() {
    step_by_step(|| {
        for lock in both(0) {
            let reading = lock.read();
            let shared = Arc::clone(&lock);
            let writer = fibra::spawn(move || shared.try_write_for(SHORT).is_none());
            let_run();
            assert!(door_is_closed(&lock) || writer.is_finished());
            let behind: [fn(&RwLock<i32>); 2] =
                [|lock| drop(lock.read()), |lock| drop(lock.upgradable_read())];
            let behind = [behind[0], behind[1], behind[0]].map(|lock_it| {
                let shared = Arc::clone(&lock);
                fibra::spawn(move || lock_it(&shared))
            });
            let_run();
            let waits = behind.iter().all(|task| !task.is_finished());
            assert!(waits || writer.is_finished(), "they wait for the writer");
            assert!(writer.join().unwrap());
            behind.into_iter().for_each(|task| task.join().unwrap());
            drop(reading);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_writer_that_gives_up_leaves_the_door_closed_if_another_waits() {
    step_by_step(|| {
        for lock in both(0) {
            let reading = lock.read();
            let shared = Arc::clone(&lock);
            let patient = fibra::spawn(move || drop(shared.write()));
            let shared = Arc::clone(&lock);
            let hasty = fibra::spawn(move || shared.try_write_for(SHORT).is_none());
            let_run();
            assert!(hasty.join().unwrap());
            assert!(door_is_closed(&lock));
            drop(reading);
            patient.join().unwrap();
            assert_free(&lock);
        }
    });
}

#[test]
fn phase_fair_readers_that_wait_go_in_together_and_take_turns_with_the_writers() {
    assert_eq!(order_after_a_writer(RwLock::new(())), ["readers", "writer", "late reader", "writer"]);
}

#[test]
fn writers_first_they_go_before_all_readers_which_then_enter_together() {
    assert_eq!(
        order_after_a_writer(RwLock::writer_first(())),
        ["writer", "writer", "readers", "late reader"]
    );
}

/// The order of entry after a writer under which a writer, 40 readers and another writer came to wait;
/// a late reader comes when the first of them is in.
fn order_after_a_writer(lock: RwLock<()>) -> Vec<&'static str> {
    const READERS: usize = 40;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let lock = Arc::new(lock);
    step_by_step(|| {
        let inside = Arc::new(AtomicUsize::new(0));
        let note = |what: &'static str| order.lock().unwrap().push(what);
        let writer = || {
            let (lock, order) = (Arc::clone(&lock), Arc::clone(&order));
            fibra::spawn(move || {
                let _guard = lock.write();
                order.lock().unwrap().push("writer");
                fibra::yield_now();
            })
        };
        let writing = lock.write();
        let mut all = vec![writer()];
        let_run();
        for _ in 0..READERS {
            let (lock, order, inside) = (Arc::clone(&lock), Arc::clone(&order), Arc::clone(&inside));
            all.push(fibra::spawn(move || {
                let _guard = lock.read();
                if inside.fetch_add(1, Ordering::Relaxed) == 0 {
                    order.lock().unwrap().push("readers");
                }
                until(|| inside.load(Ordering::Relaxed) == READERS);
            }));
        }
        let_run();
        all.push(writer());
        let_run();
        drop(writing);
        until(|| !order.lock().unwrap().is_empty());
        drop(lock.read());
        note("late reader");
        all.into_iter().for_each(|task| task.join().unwrap());
        assert_free(&lock);
    });
    Arc::into_inner(order).unwrap().into_inner().unwrap()
}

#[test]
fn writers_and_upgradable_readers_go_in_the_order_in_which_they_came() {
    step_by_step(|| {
        for lock in both(Vec::new()) {
            let writing = lock.write();
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    let lock = Arc::clone(&lock);
                    let task = fibra::spawn(move || match number % 3 {
                        0 => {
                            let upgradable = lock.upgradable_read();
                            fibra::yield_now();
                            RwLockUpgradableReadGuard::upgrade(upgradable).push(number);
                        }
                        _ => lock.write().push(number),
                    });
                    let_run();
                    task
                })
                .collect();
            drop(writing);
            tasks.into_iter().for_each(|task| task.join().unwrap());
            assert_eq!(*lock.read(), (0..20).collect::<Vec<_>>());
            assert_free(&lock);
        }
    });
}

#[test]
fn a_bump_lets_the_others_have_a_turn() {
    step_by_step(|| {
        for lock in both(0) {
            let mut writing = lock.write();
            RwLockWriteGuard::bump(&mut writing);
            let shared = Arc::clone(&lock);
            let other = fibra::spawn(move || *shared.write() += 1);
            let_run();
            RwLockWriteGuard::bump(&mut writing);
            assert_eq!(*writing, 1);
            other.join().unwrap();

            let mut reading = RwLockWriteGuard::downgrade(writing);
            let shared = Arc::clone(&lock);
            let other = fibra::spawn(move || *shared.write() += 1);
            let_run();
            RwLockReadGuard::bump(&mut reading);
            assert_eq!(*reading, 2);
            other.join().unwrap();
            drop(reading);

            let mut upgradable = lock.upgradable_read();
            let shared = Arc::clone(&lock);
            let other = fibra::spawn(move || *shared.write() += 1);
            let_run();
            RwLockUpgradableReadGuard::bump(&mut upgradable);
            assert_eq!(*upgradable, 3);
            other.join().unwrap();
            drop(upgradable);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_bump_by_the_holder_of_two_guards_does_not_wait_for_itself() {
    step_by_step(|| {
        let lock = Arc::new(RwLock::new(0));
        let upgradable = lock.upgradable_read();
        let mut reading = lock.read();
        let shared = Arc::clone(&lock);
        let writer = fibra::spawn(move || *shared.write() += 1);
        let_run();
        RwLockReadGuard::bump(&mut reading);
        drop((upgradable, reading));
        writer.join().unwrap();
        assert_free(&lock);
    });
}

/// Has a writer wait for what `unlock` lets go, and sees that the lock is handed over to it.
fn hands_over<G>(lock: &Arc<RwLock<(i32, i32)>>, guard: G, unlock: impl FnOnce(G)) {
    let shared = Arc::clone(lock);
    let writer = fibra::spawn(move || shared.write().0 += 1);
    let_run();
    assert!(!writer.is_finished());
    unlock(guard);
    assert!(lock.is_locked_exclusive(), "no waiter is let in before it");
    writer.join().unwrap();
    assert_free(lock);
}

#[test]
fn a_fair_unlock_hands_the_lock_over() {
    step_by_step(|| {
        for lock in both((0, 0)) {
            hands_over(&lock, lock.read(), RwLockReadGuard::unlock_fair);
            hands_over(&lock, lock.write(), RwLockWriteGuard::unlock_fair);
            hands_over(&lock, lock.upgradable_read(), RwLockUpgradableReadGuard::unlock_fair);
            hands_over(&lock, lock.read_arc(), ArcRwLockReadGuard::unlock_fair);
            hands_over(&lock, lock.write_arc(), ArcRwLockWriteGuard::unlock_fair);
            hands_over(&lock, lock.upgradable_read_arc(), ArcRwLockUpgradableReadGuard::unlock_fair);
            let part = RwLockReadGuard::map(lock.read(), |pair| &pair.1);
            hands_over(&lock, part, MappedRwLockReadGuard::unlock_fair);
            let part = RwLockWriteGuard::map(lock.write(), |pair| &mut pair.1);
            hands_over(&lock, part, MappedRwLockWriteGuard::unlock_fair);
            assert_eq!(lock.read().0, 8);
        }
    });
}

#[test]
fn unlocked_for_a_while_it_is_locked_again() {
    everywhere(|| {
        for lock in both(0) {
            let add = || {
                let other = Arc::clone(&lock);
                beside(move || *other.write() += 1).join();
            };
            let (mut reading, mut owned) = (lock.read(), lock.read_arc());
            ArcRwLockReadGuard::unlocked(&mut owned, || RwLockReadGuard::unlocked(&mut reading, add));
            ArcRwLockReadGuard::unlocked_fair(&mut owned, || {
                RwLockReadGuard::unlocked_fair(&mut reading, add)
            });
            assert_eq!((*reading, *owned), (2, 2));
            assert!(lock.try_read().is_some() && lock.try_write().is_none());
            drop((reading, owned));

            let mut writing = lock.write();
            RwLockWriteGuard::unlocked(&mut writing, add);
            RwLockWriteGuard::unlocked_fair(&mut writing, add);
            assert_eq!(*writing, 4);
            assert!(lock.try_read().is_none());
            drop(writing);
            let mut writing = lock.write_arc();
            ArcRwLockWriteGuard::unlocked(&mut writing, add);
            ArcRwLockWriteGuard::unlocked_fair(&mut writing, add);
            assert_eq!(*writing, 6);
            drop(writing);

            let mut upgradable = lock.upgradable_read();
            RwLockUpgradableReadGuard::unlocked(&mut upgradable, add);
            RwLockUpgradableReadGuard::unlocked_fair(&mut upgradable, add);
            assert_eq!(*upgradable, 8);
            assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
            drop(upgradable);
            let mut upgradable = lock.upgradable_read_arc();
            ArcRwLockUpgradableReadGuard::unlocked(&mut upgradable, add);
            ArcRwLockUpgradableReadGuard::unlocked_fair(&mut upgradable, add);
            assert_eq!(*upgradable, 10);
            drop(upgradable);
            assert_free(&lock);
        }
    });
}

#[test]
fn a_panic_while_it_is_unlocked_comes_out_when_it_is_locked_again() {
    fn fails<G>(unlocked: fn(&mut G, fn()), guard: &mut G) {
        let fail: fn() = || std::panic::resume_unwind(Box::new(()));
        assert!(catch_unwind(AssertUnwindSafe(|| unlocked(guard, fail))).is_err());
    }
    everywhere(|| {
        for lock in both(0) {
            let mut reading = lock.read();
            fails(RwLockReadGuard::unlocked, &mut reading);
            fails(RwLockReadGuard::unlocked_fair, &mut reading);
            assert!(lock.try_write().is_none());
            drop(reading);
            let mut writing = lock.write();
            fails(RwLockWriteGuard::unlocked, &mut writing);
            fails(RwLockWriteGuard::unlocked_fair, &mut writing);
            assert!(lock.try_read().is_none());
            drop(writing);
            let mut upgradable = lock.upgradable_read();
            fails(RwLockUpgradableReadGuard::unlocked, &mut upgradable);
            fails(RwLockUpgradableReadGuard::unlocked_fair, &mut upgradable);
            assert!(lock.try_upgradable_read().is_none());
            drop(upgradable);
            assert_free(&lock);
        }
    });
}

#[test]
fn guards_may_be_held_over_a_suspension() {
    in_tasks(|| {
        let lock = Arc::new(RwLock::new(0));
        let tasks: Vec<_> = (0..50)
            .map(|_| Arc::clone(&lock))
            .map(|lock| {
                fibra::spawn(move || {
                    let mut guard = lock.write();
                    let before = *guard;
                    fibra::sleep(Duration::from_micros(10));
                    *guard = before + 1;
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(*lock.read(), 50);
    });
}
