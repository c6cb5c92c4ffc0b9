//! A wait for an event, a lock, a count or a beginning allocates nothing: counted as `common/allocations.rs` tells. What
//! carries values, and a select, is in `channel_waits.rs`.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::allocations::{
    Executor, Row, both, in_every_place, many, polled, row, shared, turns, with_executor,
};
use crate::channels::{ms, us};
use crate::common::give_way;
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, LazyLock, ManualResetEvent, Mutex, MutexGuard, Once,
    OnceCell, ReentrantMutex, RwLock, RwLockExt, RwLockUpgradableReadGuard, Semaphore, WaitGroup,
};

#[test]
fn events() {
    in_every_place(|| {
        let manual = || [(); 2].map(|()| ManualResetEvent::new(false));
        let auto = || [(); 2].map(|()| AutoResetEvent::new(false));
        vec![
            shared(
                "manual-reset event",
                manual(),
                |[ping, pong]| {
                    ping.set();
                    pong.wait();
                    pong.reset();
                },
                |[ping, pong]| {
                    ping.wait();
                    ping.reset();
                    pong.set();
                },
            ),
            shared(
                "manual-reset event, in time",
                manual(),
                |[ping, pong]| {
                    ping.set();
                    assert!(pong.wait_timeout(ms(60_000)));
                    pong.reset();
                },
                |[ping, pong]| {
                    assert!(ping.wait_timeout(ms(60_000)));
                    ping.reset();
                    pong.set();
                },
            ),
            both("manual-reset event, timed out", ManualResetEvent::new(false), |event| {
                assert!(!event.wait_timeout(us(20)));
            }),
            shared(
                "auto-reset event",
                auto(),
                |[ping, pong]| {
                    ping.set();
                    pong.wait();
                },
                |[ping, pong]| {
                    ping.wait();
                    pong.set();
                },
            ),
            shared(
                "auto-reset event, in time",
                auto(),
                |[ping, pong]| {
                    ping.set();
                    assert!(pong.wait_timeout(ms(60_000)));
                },
                |[ping, pong]| {
                    assert!(ping.wait_timeout(ms(60_000)));
                    pong.set();
                },
            ),
            both("auto-reset event, timed out", AutoResetEvent::new(false), |event| {
                assert!(!event.wait_timeout(us(20)));
            }),
        ]
    });
}

type Turn = (Mutex<usize>, Condvar);

/// Waits until it is `mine`, and makes it the other one's.
fn take_turns((turn, changed): &Turn, mine: usize, wait: fn(&Condvar, &mut MutexGuard<'_, usize>)) {
    let mut turn = turn.lock();
    while *turn != mine {
        wait(changed, &mut turn);
    }
    *turn = 1 - mine;
    changed.notify_one();
}

fn wait_in_time(changed: &Condvar, turn: &mut MutexGuard<'_, usize>) {
    assert!(!changed.wait_for(turn, ms(60_000)).timed_out());
}

#[test]
fn locks() {
    in_every_place(|| {
        vec![
            both("mutex", Mutex::new(0), |mutex| {
                let _guard = mutex.lock();
                give_way();
            }),
            both("mutex, timed", Mutex::new(0), |mutex| {
                let _guard = mutex.try_lock_for(us(50));
                give_way();
            }),
            both("mutex, in time", Mutex::new(0), |mutex| {
                let _guard = mutex.try_lock_for(ms(60_000)).unwrap();
                give_way();
            }),
            both("mutex, timed out", locked(Mutex::new(0), |mutex| mem::forget(mutex.lock())), |mutex| {
                assert!(mutex.try_lock_for(us(20)).is_none());
            }),
            shared(
                "condvar",
                Turn::default(),
                |pair| take_turns(pair, 0, Condvar::wait),
                |pair| take_turns(pair, 1, Condvar::wait),
            ),
            shared(
                "condvar, in time",
                Turn::default(),
                |pair| take_turns(pair, 0, wait_in_time),
                |pair| take_turns(pair, 1, wait_in_time),
            ),
            both("condvar, timed out", Turn::default(), |(mutex, changed)| {
                assert!(changed.wait_for(&mut mutex.lock(), us(20)).timed_out());
            }),
        ]
    });
}

/// Locks whose holder has gone, for ever.
fn locked<T: Send + 'static>(lock: T, forget: fn(&T)) -> T {
    thread::spawn(move || {
        forget(&lock);
        lock
    })
    .join()
    .unwrap()
}

#[test]
fn reentrant_locks() {
    in_every_place(|| {
        vec![
            both("reentrant mutex", ReentrantMutex::new(0), |mutex| {
                let _guards = (mutex.lock(), mutex.lock());
                give_way();
            }),
            both("reentrant mutex, in time", ReentrantMutex::new(0), |mutex| {
                let _guards = (mutex.try_lock_for(ms(60_000)).unwrap(), mutex.try_lock_for(us(1)).unwrap());
                give_way();
            }),
            both(
                "reentrant mutex, timed out",
                locked(ReentrantMutex::new(0), |mutex| mem::forget(mutex.lock())),
                |mutex| assert!(mutex.try_lock_for(us(20)).is_none()),
            ),
        ]
    });
}

fn reads(lock: &RwLock<i32>) {
    let _guard = lock.read();
    give_way();
}

fn writes(lock: &RwLock<i32>) {
    let _guard = lock.write();
    give_way();
}

#[test]
fn read_write_locks() {
    in_every_place(|| {
        vec![
            shared("read-write lock", RwLock::new(0), reads, writes),
            shared("read-write lock, writer first", RwLock::writer_first(0), reads, writes),
            shared(
                "read-write lock, in time",
                RwLock::new(0),
                |lock| {
                    let _guard = lock.try_read_for(ms(60_000)).unwrap();
                    give_way();
                },
                |lock| {
                    let _guard = lock.try_write_for(ms(60_000)).unwrap();
                    give_way();
                },
            ),
            both(
                "read-write lock, timed out",
                locked(RwLock::new(0), |lock| mem::forget(lock.write())),
                |lock| {
                    assert!(lock.try_read_for(us(20)).is_none());
                    assert!(lock.try_write_for(us(20)).is_none());
                    assert!(lock.try_upgradable_read_for(us(20)).is_none());
                },
            ),
            both("upgradable read", RwLock::new(0), |lock| {
                let _guard = lock.upgradable_read();
                give_way();
            }),
            both("upgradable read, in time", RwLock::new(0), |lock| {
                let _guard = lock.try_upgradable_read_for(ms(60_000)).unwrap();
                give_way();
            }),
        ]
    });
}

#[test]
fn upgrades_of_read_write_locks() {
    in_every_place(|| {
        vec![
            shared(
                "upgrade",
                RwLock::new(0),
                |lock| {
                    let reading = lock.upgradable_read();
                    give_way();
                    let _writing = RwLockUpgradableReadGuard::upgrade(reading);
                    give_way();
                },
                reads,
            ),
            shared(
                "upgrade, in time",
                RwLock::new(0),
                |lock| {
                    let reading = lock.upgradable_read();
                    give_way();
                    let _writing = RwLockUpgradableReadGuard::try_upgrade_for(reading, ms(60_000)).unwrap();
                    give_way();
                },
                |lock| {
                    let _guard = lock.read();
                    give_way();
                },
            ),
            both("upgrade, timed out", locked(RwLock::new(0), |lock| mem::forget(lock.read())), |lock| {
                let upgrade = RwLockUpgradableReadGuard::try_upgrade_for(lock.upgradable_read(), us(20));
                drop(upgrade.unwrap_err());
            }),
        ]
    });
}

/// A thing for two.
fn twice<T>(thing: T) -> (Arc<T>, Arc<T>) {
    let thing = Arc::new(thing);
    (Arc::clone(&thing), thing)
}

#[test]
fn counts() {
    in_every_place(|| {
        vec![
            both("semaphore", Semaphore::new(1), |semaphore| {
                let _permit = semaphore.acquire();
                give_way();
            }),
            both("semaphore, many", Semaphore::new(3), |semaphore| {
                let _permits = semaphore.acquire_many(2);
                give_way();
            }),
            both("semaphore, timed out", Semaphore::new(0), |semaphore| {
                assert!(semaphore.acquire_timeout(us(20)).is_err());
            }),
            both("semaphore, owned", Arc::new(Semaphore::new(1)), |semaphore| {
                let _permit = Arc::clone(semaphore).acquire_owned();
                give_way();
            }),
            both("semaphore, many owned in time", Arc::new(Semaphore::new(3)), |semaphore| {
                let _permits = Arc::clone(semaphore).acquire_many_owned_timeout(2, ms(60_000)).unwrap();
                give_way();
            }),
            both("semaphore, owned, timed out", Arc::new(Semaphore::new(0)), |semaphore| {
                assert!(Arc::clone(semaphore).acquire_owned_timeout(us(20)).is_err());
            }),
            turns(
                "countdown event",
                || twice(CountdownEvent::new(1)),
                |event| assert!(event.signal()),
                |event| event.wait(),
            ),
            turns(
                "countdown event, in time",
                || twice(CountdownEvent::new(2)),
                |event| assert!(event.signal_many(2)),
                |event| assert!(event.wait_timeout(ms(60_000))),
            ),
            both("countdown event, timed out", CountdownEvent::new(1), |event| {
                assert!(!event.wait_timeout(us(20)));
            }),
            both("wait group", WaitGroup::new(), |group| {
                let worker = group.worker();
                give_way();
                drop(worker);
                group.wait();
            }),
            both("wait group, in time", WaitGroup::new(), |group| {
                let worker = group.worker();
                give_way();
                drop(worker);
                assert!(group.wait_timeout(ms(60_000)));
            }),
            both("wait group, timed out", busy(), |group| assert!(!group.wait_timeout(us(20)))),
            both("barrier", Barrier::new(2), |barrier| _ = barrier.wait()),
            both("barrier, in time", Barrier::new(2), |barrier| {
                barrier.wait_timeout(ms(60_000)).unwrap();
            }),
            both("barrier, timed out", Barrier::new(3), |barrier| {
                assert!(barrier.wait_timeout(us(20)).is_none());
            }),
        ]
    });
}

/// A wait group with a worker that is never done.
fn busy() -> WaitGroup {
    let group = WaitGroup::new();
    group.add(1);
    group
}

#[test]
fn futures() {
    in_every_place(|| {
        vec![
            polled(
                "manual-reset event, polled",
                [(); 2].map(|()| ManualResetEvent::new(false)),
                |[ping, pong], executor| {
                    ping.set();
                    executor.drive(pong.wait_async());
                    pong.reset();
                },
                |[ping, pong], executor| {
                    executor.drive(ping.wait_async());
                    ping.reset();
                    pong.set();
                },
            ),
            polled(
                "auto-reset event, polled",
                [(); 2].map(|()| AutoResetEvent::new(false)),
                |[ping, pong], executor| {
                    ping.set();
                    executor.drive(pong.wait_async());
                },
                |[ping, pong], executor| {
                    executor.drive(ping.wait_async());
                    pong.set();
                },
            ),
            polled_by_both("semaphore, polled", Semaphore::new(1), |semaphore, executor| {
                let _permit = executor.drive(semaphore.acquire_async());
                give_way();
            }),
            polled_by_both("semaphore, many polled", Semaphore::new(3), |semaphore, executor| {
                let _permits = executor.drive(semaphore.acquire_many_async(2));
                give_way();
            }),
            polled_by_both("semaphore, owned, polled", Arc::new(Semaphore::new(1)), |semaphore, executor| {
                let _permit = executor.drive(Arc::clone(semaphore).acquire_owned_async());
                give_way();
            }),
            polled_by_both(
                "semaphore, many owned, polled",
                Arc::new(Semaphore::new(3)),
                |semaphore, executor| {
                    let _permits = executor.drive(Arc::clone(semaphore).acquire_many_owned_async(2));
                    give_way();
                },
            ),
            turns(
                "countdown event, polled",
                || with_executor(twice(CountdownEvent::new(1))),
                |event| assert!(event.signal()),
                |(event, executor)| executor.drive(event.wait_async()),
            ),
            turns(
                "once cell, polled",
                || with_executor(twice(OnceCell::new())),
                |cell| cell.set(1).unwrap(),
                |(cell, executor)| assert_eq!(executor.drive(cell.wait_async()), &1),
            ),
            polled_by_both("wait group, polled", WaitGroup::new(), |group, executor| {
                let worker = group.worker();
                give_way();
                drop(worker);
                executor.drive(group.wait_async());
            }),
            polled_by_both("barrier, polled", Barrier::new(2), |barrier, executor| {
                executor.drive(barrier.wait_async());
            }),
        ]
    });
}

fn polled_by_both<T: Send + Sync + 'static>(name: &'static str, thing: T, side: fn(&T, &Executor)) -> Row {
    polled(name, thing, side, side)
}

/// Both sides come to a thing, in two steps of this number, and one of them waits for the other.
fn begun_by_either<T: Send + Sync + 'static>(name: &'static str, make: fn() -> T, begin: fn(&T)) -> Row {
    let things = twice(many(make));
    let side = |things: Arc<Vec<T>>, next: Arc<AtomicUsize>| {
        move || begin(&things[next.fetch_add(1, Ordering::Relaxed) / 2])
    };
    let next = twice(AtomicUsize::new(0));
    row(name, side(things.0, next.0), side(things.1, next.1))
}

#[test]
fn beginnings() {
    in_every_place(|| {
        vec![
            begun_by_either("once", Once::new, |once| once.call_once(give_way)),
            begun_by_either("once, forced", Once::new, |once| once.call_once_force(|_| give_way())),
            begun_by_either("once cell", OnceCell::new, |cell| *cell.get_or_init(give_way)),
            begun_by_either(
                "lazy lock",
                || LazyLock::<(), fn()>::new(give_way),
                |lazy| *LazyLock::force(lazy),
            ),
            turns(
                "once, waited for",
                || twice(Once::new()),
                |once| once.call_once(|| {}),
                |once| once.wait(),
            ),
            turns(
                "once, waited for in time",
                || twice(Once::new()),
                |once| once.call_once(|| {}),
                |once| assert!(once.wait_timeout(ms(60_000))),
            ),
            turns(
                "once cell, waited for",
                || twice(OnceCell::new()),
                |cell| cell.set(1).unwrap(),
                |cell| assert_eq!(cell.wait(), &1),
            ),
            turns(
                "once cell, waited for in time",
                || twice(OnceCell::new()),
                |cell| cell.set(1).unwrap(),
                |cell| assert_eq!(cell.wait_timeout(ms(60_000)), Some(&1)),
            ),
            both("once, timed out", Once::new(), |once| assert!(!once.wait_timeout(us(20)))),
            both("once cell, timed out", OnceCell::<i32>::new(), |cell| {
                assert!(cell.wait_timeout(us(20)).is_none());
            }),
        ]
    });
}
