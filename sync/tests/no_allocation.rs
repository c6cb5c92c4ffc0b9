//! A wait for an event, a lock, a count or a beginning allocates nothing: counted as `common/allocations.rs` tells. What
//! carries values, and a select, is in `no_allocation_channels.rs`.

#[path = "common/allocations.rs"]
mod allocations;
#[path = "common/channels.rs"]
mod channels;
mod common;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use allocations::{Row, both, in_every_place, many, row, shared, turns};
use channels::{ms, us};
use common::give_way;
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, LazyLock, ManualResetEvent, Mutex, Once, OnceCell,
    ReentrantMutex, RwLock, RwLockUpgradableReadGuard, Semaphore, WaitGroup,
};

#[test]
fn events() {
    in_every_place(|| {
        let [ping, pong] = [(); 2].map(|()| Arc::new(ManualResetEvent::new(false)));
        let (there, back) = (Arc::clone(&ping), Arc::clone(&pong));
        let never = ManualResetEvent::new(false);
        vec![
            row(
                "manual-reset event",
                move || {
                    ping.set();
                    pong.wait();
                    pong.reset();
                },
                move || {
                    there.wait();
                    there.reset();
                    back.set();
                },
            ),
            row("manual-reset event, timed out", move || assert!(!never.wait_timeout(us(20))), || {}),
        ]
    });
}

/// Waits until it is `mine`, and makes it the other one's.
fn take_turns((turn, changed): &(Mutex<usize>, Condvar), mine: usize) {
    let mut turn = turn.lock();
    while *turn != mine {
        changed.wait(&mut turn);
    }
    *turn = 1 - mine;
    changed.notify_one();
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
            shared("condvar", Default::default(), |pair| take_turns(pair, 0), |pair| take_turns(pair, 1)),
            both("condvar, timed out", <(Mutex<usize>, Condvar)>::default(), |(mutex, changed)| {
                assert!(changed.wait_for(&mut mutex.lock(), us(20)).timed_out());
            }),
        ]
    });
}

/// What is locked by somebody who has gone, for ever.
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

#[test]
fn read_write_locks() {
    in_every_place(|| {
        vec![
            shared(
                "read-write lock",
                RwLock::new(0),
                |lock| {
                    let _guard = lock.read();
                    give_way();
                },
                |lock| {
                    let _guard = lock.write();
                    give_way();
                },
            ),
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
                |lock| {
                    let _guard = lock.read();
                    give_way();
                },
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
                assert!(semaphore.acquire_timeout(us(20)).is_none());
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
                assert!(Arc::clone(semaphore).acquire_owned_timeout(us(20)).is_none());
            }),
            shared(
                "auto-reset event",
                [(); 2].map(|()| AutoResetEvent::new(false)),
                |[ping, pong]| {
                    ping.set();
                    pong.wait();
                },
                |[ping, pong]| {
                    ping.wait();
                    pong.set();
                },
            ),
            both("auto-reset event, timed out", AutoResetEvent::new(false), |event| {
                assert!(!event.wait_timeout(us(20)));
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
            both("barrier", Barrier::new(2), |barrier| _ = barrier.wait()),
        ]
    });
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
            both("once, timed out", Once::new(), |once| assert!(!once.wait_timeout(us(20)))),
            both("once cell, timed out", OnceCell::<i32>::new(), |cell| {
                assert!(cell.wait_timeout(us(20)).is_none());
            }),
        ]
    });
}
