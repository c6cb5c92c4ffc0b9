//! Locks where a suspension is forbidden: what cannot be done panics, and leaves every lock as it was.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use common::{guarded, runtime};
use fibra_runtime::{spawn, task, yield_now};
use fibra_sync::{
    Mutex, MutexGuard, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockUpgradableReadGuard,
    RwLockWriteGuard, channel,
};

/// Runs `bump` where a suspension is forbidden, beside a task that waits for what `wait` locks and keeps it for a while. Then
/// `release` gives the guard up.
fn bumps<G>(
    mut guard: G,
    bump: impl FnOnce(&mut G),
    wait: impl FnOnce(&dyn Fn()) + Send + 'static,
    is_free: impl Fn() -> bool,
) {
    let inside = Arc::new(AtomicBool::new(false));
    let tells = Arc::clone(&inside);
    let waiter = spawn(move || {
        wait(&|| {
            tells.store(true, SeqCst);
            fibra_runtime::sleep(Duration::from_millis(3));
            tells.store(false, SeqCst);
        });
    });
    (0..3).for_each(|_| yield_now());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _here = task::forbid_suspend();
        bump(&mut guard);
    }));
    assert!(outcome.is_err(), "it would have to wait");
    (0..3).for_each(|_| yield_now());
    assert!(!inside.load(SeqCst), "the lock is still the guard's");
    drop(guard);
    while !inside.load(SeqCst) {
        assert!(!waiter.is_finished());
        yield_now();
    }
    assert!(!is_free(), "the lock is the waiter's, that was not unlocked twice");
    waiter.join().unwrap();
    assert!(is_free());
}

#[test]
fn a_bump_that_may_not_wait_keeps_the_mutex() {
    guarded(|| {
        runtime(1).run(|| {
            let mutex = Arc::new(Mutex::new(()));
            let other = Arc::clone(&mutex);
            let wait = move |inside: &dyn Fn()| {
                let _guard = other.lock();
                inside();
            };
            bumps(mutex.lock(), MutexGuard::bump, wait, || mutex.try_lock().is_some());
        });
    });
}

#[test]
fn a_bump_that_may_not_wait_keeps_the_reentrant_mutex() {
    guarded(|| {
        runtime(1).run(|| {
            let mutex = Arc::new(ReentrantMutex::new(()));
            let other = Arc::clone(&mutex);
            let wait = move |inside: &dyn Fn()| {
                let _guard = other.lock();
                inside();
            };
            bumps(mutex.lock(), ReentrantMutexGuard::bump, wait, || mutex.try_lock().is_some());
        });
    });
}

#[test]
fn a_bump_that_may_not_wait_keeps_the_hold_of_a_read_write_lock() {
    guarded(|| {
        runtime(1).run(|| {
            for kind in 0..3 {
                let lock = Arc::new(RwLock::new(()));
                let other = Arc::clone(&lock);
                let wait = move |inside: &dyn Fn()| {
                    let _guard = other.write();
                    inside();
                };
                let is_free = || lock.try_write().is_some();
                match kind {
                    0 => bumps(lock.write(), RwLockWriteGuard::bump, wait, is_free),
                    1 => bumps(lock.read(), fibra_sync::RwLockReadGuard::bump, wait, is_free),
                    _ => bumps(lock.upgradable_read(), RwLockUpgradableReadGuard::bump, wait, is_free),
                }
            }
        });
    });
}

#[test]
fn a_receive_that_need_not_wait_is_no_suspension() {
    common::in_tasks(|| {
        let (sender, ended) = channel::unbounded::<i32>();
        drop(sender);
        let (offering, meeting) = channel::bounded(0);
        let waiting = fibra_runtime::spawn_local(move || offering.send(7));
        // The other one goes to sleep with its message.
        common::give_way();
        let here = task::forbid_suspend();
        assert_eq!(ended.recv(), Err(channel::RecvError));
        assert_eq!(meeting.recv(), Ok(7));
        drop(here);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}
