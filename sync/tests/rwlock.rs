//! The promises of the read-write lock, each by name. Those under races are in `rwlock_races.rs`.

mod common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{beside, everywhere, give_way, guarded, in_tasks, runtime};
use fibra_runtime::{self as fibra, wait};
use fibra_sync::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard,
};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

/// Both policies, for promises that do not depend on it.
fn both<T: Clone>(value: T) -> [Arc<RwLock<T>>; 2] {
    [Arc::new(RwLock::new(value.clone())), Arc::new(RwLock::writer_first(value))]
}

fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        give_way();
    }
}

/// True while somebody waits who keeps readers out, though no writer is in.
fn door_is_closed<T>(lock: &RwLock<T>) -> bool {
    lock.try_read().is_none() && !lock.is_locked_exclusive()
}

fn assert_free<T>(lock: &RwLock<T>) {
    assert!(!lock.is_locked());
    drop(lock.try_write().expect("nobody holds the lock or waits"));
    drop(lock.try_read().expect("no writer waits"));
    drop(lock.try_upgradable_read().expect("nobody waits"));
}

/// Runs `steps` as the first task of a single worker, where [`let_run`] is all it takes to know what the others do.
fn step_by_step(steps: impl Fn() + Send + Sync) {
    guarded(|| runtime(1).run(&steps));
}

/// Lets the other tasks of a single worker run as far as they can.
fn let_run() {
    (0..10).for_each(|_| fibra::yield_now());
}

fn panics<R>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| drop(f()))).expect_err("a panic");
    payload.downcast_ref::<String>().expect("a message").clone()
}

// --- one caller -------------------------------------------------------------------------------------------------------

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
fn a_try_to_write_fails_beside_anybody() {
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
fn an_upgrade_succeeds_alone_only_and_gives_the_guard_back_otherwise() {
    everywhere(|| {
        let lock = RwLock::new(0);
        let reading = lock.read();
        let upgradable = lock.upgradable_read();
        let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect_err("a reader is in");
        let upgradable = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT).expect_err("still");
        assert!(lock.try_read().is_some(), "the upgrade that failed keeps nobody out");
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
        let mut upgradable = lock.upgradable_read();
        upgradable.with_upgraded(|value| *value = 7);
        assert_eq!(*upgradable, 7);
        drop(upgradable);
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
    static FIRST: RwLock<i32> = RwLock::writer_first(4);
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
        assert_free(&lock);
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

// --- several callers --------------------------------------------------------------------------------------------------

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
fn a_writer_whose_time_runs_out_opens_the_door_again() {
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
            drop(lock.try_read().expect("an open door"));
            drop(reading);
            assert_free(&lock);
        }
    });
}

#[test]
fn those_behind_a_writer_whose_time_runs_out_go_in_at_once() {
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

/// Who goes in, and in which order, after a writer under which a writer, 40 readers and another writer came to wait;
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
                    assert!(seen.is_empty(), "nobody writes beside a reader");
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
fn nobody_writes_between_an_upgradable_read_and_its_upgrade() {
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
fn nobody_writes_between_a_write_and_its_downgrade() {
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
fn a_bump_by_who_holds_two_guards_does_not_wait_for_itself() {
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

// --- time, cancel, misuse ---------------------------------------------------------------------------------------------

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
            common::pause();
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
fn locking_twice_panics_and_names_who_did() {
    guarded(|| {
        runtime(1).run(|| {
            let named = fibra::task::Builder::new().name("clumsy").spawn(|| {
                let lock = RwLock::new(());
                let _writing = lock.write();
                panics(|| lock.write())
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
            twice(panics(|| lock.write()));
            twice(panics(|| lock.read()));
            twice(panics(|| lock.upgradable_read()));
            twice(panics(|| lock.try_write_for(Duration::MAX)));
        }
        {
            let _upgradable = lock.upgradable_read();
            twice(panics(|| lock.write()));
            twice(panics(|| lock.upgradable_read()));
            drop(lock.read());
        }
        let upgraded = RwLockUpgradableReadGuard::upgrade(lock.upgradable_read());
        twice(panics(|| lock.read()));
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(upgraded);
        twice(panics(|| lock.write()));
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
        assert!(panics(|| lock.read()).contains("locked twice by "));
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
