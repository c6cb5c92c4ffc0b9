//! Each primitive is notified and its waiter ended at the same moment, by a cancel, by a scope around it, or by its own
//! deadline: nothing is lost, and nothing leaks. `channel_waits.rs` does so for channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::at_once::Row;
use crate::common::guarded;
use fibra_runtime::{JoinHandle, spawn_local};
use fibra_sync::{
    ArcMutexGuard, AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, Once, OnceCell,
    RawMutex, ReentrantMutex, RwLock, RwLockExt, RwLockUpgradableReadGuard, Semaphore, WaitGroup,
};

fn play<T: Send + Sync + 'static, H: 'static>(row: Row<T, H>) {
    let _alone = crate::at_once::alone();
    guarded(|| crate::at_once::play(row, |builder| builder));
}

/// True if it was got; it is given back.
fn lock(mutex: &Mutex<()>, until: Option<Instant>) -> bool {
    match until {
        None => {
            drop(mutex.lock());
            true
        }
        Some(until) => mutex.try_lock_until(until).is_some(),
    }
}

/// By notifying with `unlock`.
fn play_mutex(unlock: fn(&Mutex<()>, ArcMutexGuard<RawMutex, ()>)) {
    let is_free = |mutex: &Mutex<()>, _| assert!(mutex.try_lock().is_some(), "it is free");
    play(Row::held(|| Mutex::new(()), |mutex| mutex.lock_arc(), lock, unlock, is_free).of_a_lock());
}

#[test]
fn an_unlock_of_a_mutex() {
    play_mutex(|_, guard| drop(guard));
}

#[test]
fn a_fair_unlock_of_a_mutex() {
    play_mutex(|_, guard| ArcMutexGuard::unlock_fair(guard));
}

#[test]
fn the_last_unlock_of_a_reentrant_mutex() {
    let row = Row::held(
        || ReentrantMutex::new(()),
        |mutex| [(); 2].map(|()| mutex.lock_arc()),
        |mutex, until| match until {
            None => {
                drop((mutex.lock(), mutex.lock()));
                true
            }
            Some(until) => mutex.try_lock_until(until).is_some(),
        },
        |_, guards| drop(guards),
        |mutex, _| assert!(mutex.try_lock().is_some(), "it is free"),
    );
    play(row.of_a_lock());
}

fn write(lock: &RwLock<()>, until: Option<Instant>) -> bool {
    match until {
        None => {
            drop(lock.write());
            true
        }
        Some(until) => lock.try_write_until(until).is_some(),
    }
}

fn read(lock: &RwLock<()>, until: Option<Instant>) -> bool {
    match until {
        None => {
            drop(lock.read());
            true
        }
        Some(until) => lock.try_read_until(until).is_some(),
    }
}

fn upgrade(lock: &RwLock<()>, until: Option<Instant>) -> bool {
    match until {
        None => {
            drop(RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()));
            true
        }
        Some(until) => match lock.try_upgradable_read_until(until) {
            Some(guard) => RwLockUpgradableReadGuard::try_upgrade_until(guard, until).is_ok(),
            None => false,
        },
    }
}

fn is_free(lock: &RwLock<()>, _left: usize) {
    drop(lock.try_write().expect("it is free"));
    drop(lock.try_upgradable_read().expect("readers are admitted"));
}

#[test]
fn the_end_of_a_write_that_readers_wait_for() {
    let row = Row::held(|| RwLock::new(()), |lock| lock.write_arc(), read, |_, guard| drop(guard), is_free);
    play(Row { company: Some(write), ..row.of_a_lock() });
}

#[test]
fn the_end_of_a_read_that_writers_wait_for() {
    let row = Row::held(|| RwLock::new(()), |lock| lock.read_arc(), write, |_, guard| drop(guard), is_free);
    play(Row { company: Some(read), ..row.of_a_lock() });
}

#[test]
fn after_a_read_the_waiting_writers_go_first() {
    let row = Row::held(
        || RwLock::writer_first(()),
        |lock| lock.read_arc(),
        write,
        |_, guard| drop(guard),
        is_free,
    );
    play(Row { company: Some(read), ..row.of_a_lock() });
}

#[test]
fn the_end_of_a_read_that_an_upgrade_waits_for() {
    let row = Row::held(|| RwLock::new(()), |lock| lock.read_arc(), upgrade, |_, guard| drop(guard), is_free);
    play(row.of_a_lock());
}

#[test]
fn the_end_of_a_read_that_an_upgrade_waits_for_and_readers_behind_it() {
    let row = Row::held(
        || RwLock::writer_first(()),
        |lock| lock.read_arc(),
        upgrade,
        |_, guard| drop(guard),
        is_free,
    );
    play(Row { company: Some(read), ..row.of_a_lock() });
}

/// Tokens behind a mutex.
#[derive(Default)]
struct Tokens {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Tokens {
    fn take(&self, until: Option<Instant>) -> bool {
        let mut count = self.count.lock();
        while *count == 0 {
            match until {
                None => self.changed.wait(&mut count),
                Some(until) => {
                    if self.changed.wait_until(&mut count, until).timed_out() && *count == 0 {
                        return false;
                    }
                }
            }
        }
        *count -= 1;
        true
    }

    fn settle(&self, left: usize) {
        assert_eq!(std::mem::take(&mut *self.count.lock()), left);
    }
}

#[test]
fn a_notification_of_a_condition() {
    let notify = |tokens: &Tokens, ()| {
        *tokens.count.lock() += 1;
        tokens.changed.notify_one();
    };
    play(Row::new(Tokens::default, Tokens::take, notify, Tokens::settle));
}

#[test]
fn a_notification_of_a_condition_under_the_lock() {
    let notify = |tokens: &Tokens, ()| {
        let mut count = tokens.count.lock();
        *count += 1;
        tokens.changed.notify_one();
    };
    play(Row::new(Tokens::default, Tokens::take, notify, Tokens::settle));
}

#[test]
fn a_permit_of_a_semaphore() {
    play(Row::new(
        || Semaphore::new(0),
        |semaphore, until| match until {
            None => {
                semaphore.acquire().unwrap().forget();
                true
            }
            Some(until) => semaphore.acquire_deadline(until).map(|permit| permit.forget()).is_ok(),
        },
        |semaphore, ()| semaphore.add_permits(1),
        |semaphore, left| assert_eq!(semaphore.forget_permits(9), left),
    ));
}

/// Takes so many for good.
fn take_many(semaphore: &Semaphore, count: usize, until: Option<Instant>) -> bool {
    match until {
        None => {
            semaphore.acquire_many(count).unwrap().forget();
            true
        }
        Some(until) => semaphore.acquire_many_deadline(count, until).map(|permits| permits.forget()).is_ok(),
    }
}

#[test]
fn permits_of_a_semaphore_that_come_one_by_one() {
    play(Row::new(
        || Semaphore::new(0),
        |semaphore, until| take_many(semaphore, 2, until),
        |semaphore, ()| (0..2).for_each(|_| semaphore.add_permits(1)),
        |semaphore, left| assert_eq!(semaphore.forget_permits(9), 2 * left),
    ));
}

#[test]
fn permits_that_are_given_back_are_not_lost_either() {
    play(
        Row::held(
            || Semaphore::new(2),
            |semaphore| Arc::clone(semaphore).acquire_many_owned(2).unwrap(),
            |semaphore, until| match until {
                None => {
                    drop(semaphore.acquire_many(2));
                    true
                }
                Some(until) => semaphore.acquire_many_deadline(2, until).is_ok(),
            },
            |_, permits| drop(permits),
            |semaphore, _| assert_eq!(semaphore.available_permits(), 2),
        )
        .serving_all(),
    );
}

#[test]
fn a_permit_kept_for_a_bigger_request_goes_to_the_next_waiter() {
    let row = Row::new(
        || Semaphore::new(0),
        |semaphore, until| take_many(semaphore, 3, until),
        |semaphore, ()| semaphore.add_permits(1),
        |semaphore, left| assert_eq!(semaphore.forget_permits(9), left),
    );
    play(Row {
        company: Some(|semaphore, until| take_many(semaphore, 1, until)),
        always_in_company: true,
        both_win: false,
        ..row
    });
}

#[test]
fn a_set_of_an_auto_reset_event() {
    play(Row::new(
        || AutoResetEvent::new(false),
        |event, until| match until {
            None => {
                event.wait();
                true
            }
            Some(until) => event.wait_deadline(until),
        },
        |event, ()| event.set(),
        |event, left| assert_eq!(event.try_wait(), left == 1),
    ));
}

#[test]
fn a_set_of_a_manual_reset_event() {
    let row = Row::new(
        || ManualResetEvent::new(false),
        |event, until| match until {
            None => {
                event.wait();
                true
            }
            Some(until) => event.wait_deadline(until),
        },
        |event, ()| event.set(),
        |event, _| {
            assert!(event.is_set());
            event.reset();
        },
    );
    play(row.serving_all());
}

#[test]
fn the_last_signal_of_a_countdown_event() {
    let row = Row::new(
        || CountdownEvent::new(2),
        |event, until| match until {
            None => {
                event.wait();
                true
            }
            Some(until) => event.wait_deadline(until),
        },
        |event, ()| assert_eq!([(); 2].map(|()| event.signal()), [false, true]),
        |event, _| assert!(event.is_set()),
    );
    play(row.once_for_all());
}

#[test]
fn the_last_of_a_wait_group() {
    let row = Row::held(
        WaitGroup::new,
        |group| Arc::clone(group).worker_owned(),
        |group, until| match until {
            None => {
                group.wait();
                true
            }
            Some(until) => group.wait_deadline(until),
        },
        |_, worker| drop(worker),
        |group, _| assert_eq!(group.count(), 0),
    );
    play(row.serving_all());
}

/// A barrier for the victim and the notifier.
struct Pair {
    barrier: Barrier,
    met: AtomicBool,
}

#[test]
fn the_other_party_of_a_barrier() {
    let row = Row::new(
        || Pair { barrier: Barrier::new(2), met: AtomicBool::new(false) },
        |pair, until| match until {
            None => {
                pair.barrier.wait();
                true
            }
            Some(until) => pair.barrier.wait_deadline(until).is_some(),
        },
        |pair, ()| {
            let met = pair.barrier.wait_timeout(Duration::ZERO).is_some();
            pair.met.store(met, Ordering::SeqCst);
        },
        |pair, left| {
            assert_eq!(pair.met.load(Ordering::SeqCst), left == 0, "both pass, or none");
        },
    );
    // Each of the notifier's waits ends with a tick of the clock.
    play(Row { rounds: 400, ..row.alone() });
}

#[test]
fn the_end_of_an_initialization() {
    let row = Row::new(
        Once::new,
        |once, until| match until {
            None => {
                once.wait();
                true
            }
            Some(until) => once.wait_deadline(until),
        },
        |once, ()| once.call_once(|| ()),
        |once, _| assert!(once.is_completed()),
    );
    play(row.once_for_all());
}

/// An initialization that takes until the gate is open.
struct Slow {
    once: Once,
    gate: ManualResetEvent,
}

impl Slow {
    fn initialize(&self) {
        self.once.call_once(|| self.gate.wait());
    }
}

#[test]
fn the_end_of_an_initialization_that_others_want_to_run() {
    let row = Row::held(
        || Slow { once: Once::new(), gate: ManualResetEvent::new(false) },
        |slow| {
            let slow = Arc::clone(slow);
            spawn_local(move || slow.initialize())
        },
        |slow, _| {
            slow.initialize();
            true
        },
        |slow, initializer: JoinHandle<()>| {
            slow.gate.set();
            initializer.join().unwrap();
        },
        |slow, _| assert!(slow.once.is_completed()),
    );
    play(Row { lasts: 1, is_timed: false, ..row.of_a_lock() });
}

#[test]
fn the_value_of_a_cell() {
    let row = Row::new(
        OnceCell::<Box<usize>>::new,
        |cell, until| match until {
            None => **cell.wait() == 7,
            Some(until) => cell.wait_deadline(until).is_some(),
        },
        |cell, ()| cell.set(Box::new(7)).unwrap(),
        |cell, _| assert!(cell.get().is_some()),
    );
    play(row.once_for_all());
}
