//! Primitives where a suspension is forbidden: what cannot be done panics, and leaves every lock as it was; what needs no wait
//! is done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use fibra_runtime::{spawn_local, task, yield_now};
use fibra_sync::{
    Barrier, Mutex, MutexGuard, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockUpgradableReadGuard,
    RwLockWriteGuard, channel, select,
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
    let waiter = spawn_local(move || {
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
    crate::common::in_tasks(|| {
        let mutex = Arc::new(Mutex::new(()));
        let other = Arc::clone(&mutex);
        let wait = move |inside: &dyn Fn()| {
            let _guard = other.lock();
            inside();
        };
        bumps(mutex.lock(), MutexGuard::bump, wait, || mutex.try_lock().is_some());
    });
}

#[test]
fn a_bump_that_may_not_wait_keeps_the_reentrant_mutex() {
    crate::common::in_tasks(|| {
        let mutex = Arc::new(ReentrantMutex::new(()));
        let other = Arc::clone(&mutex);
        let wait = move |inside: &dyn Fn()| {
            let _guard = other.lock();
            inside();
        };
        bumps(mutex.lock(), ReentrantMutexGuard::bump, wait, || mutex.try_lock().is_some());
    });
}

#[test]
fn a_bump_that_may_not_wait_keeps_the_hold_of_a_read_write_lock() {
    crate::common::in_tasks(|| {
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
}

#[test]
fn an_upgrade_that_may_not_wait_leaves_the_lock_to_others() {
    const LONG: Duration = Duration::from_secs(60);
    type Upgrade = fn(RwLockUpgradableReadGuard<'_, ()>);
    let upgrades: [Upgrade; 3] = [
        |guard| drop(RwLockUpgradableReadGuard::upgrade(guard)),
        |guard| drop(RwLockUpgradableReadGuard::try_upgrade_for(guard, LONG)),
        |guard| drop(RwLockUpgradableReadGuard::try_upgrade_until(guard, Instant::now() + LONG)),
    ];
    forbidden(|| {
        for upgrade in upgrades {
            let lock = RwLock::new(());
            let reader = lock.read();
            let guard = lock.upgradable_read();
            let outcome = catch_unwind(AssertUnwindSafe(|| upgrade(guard)));
            assert!(outcome.is_err(), "it would have to wait");
            drop(reader);
            assert!(lock.try_write().is_some());
        }
    });
}

#[test]
fn a_receive_that_need_not_wait_is_no_suspension() {
    crate::common::in_tasks(|| {
        let (sender, ended) = channel::unbounded::<i32>();
        drop(sender);
        let (offering, meeting) = channel::bounded(0);
        let waiting = spawn_local(move || offering.send(7));
        // The other one goes to sleep with its message.
        crate::common::give_way();
        let here = task::forbid_suspend();
        assert_eq!(ended.recv(), Err(channel::RecvError));
        assert_eq!(meeting.recv(), Ok(7));
        drop(here);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

/// In a task where a suspension is forbidden.
fn forbidden(promise: impl Fn() + Send + Sync) {
    crate::common::in_tasks(|| {
        let _here = task::forbid_suspend();
        promise();
    });
}

#[test]
fn a_select_that_need_not_wait_is_no_suspension() {
    forbidden(|| {
        let ((sender, first), (_other, second)) = (channel::bounded(1), channel::bounded::<i32>(1));
        let chosen = || {
            select! {
                recv(first) -> received => received.ok(),
                recv(second) -> received => received.ok(),
                default => None,
            }
        };
        assert_eq!(chosen(), None);
        let mut select = channel::Select::new();
        let _ = [select.recv(&first), select.recv(&second)];
        assert!(select.try_select().is_err());
        assert!(select.try_ready().is_err());
        sender.send(7).unwrap();
        assert_eq!(select.try_ready(), Ok(0));
        assert_eq!(chosen(), Some(7));
        let waits = catch_unwind(AssertUnwindSafe(|| {
            select! {
                recv(first) -> received => received.ok(),
                recv(second) -> received => received.ok(),
            }
        }));
        assert!(waits.is_err(), "it would have to wait");
    });
}

#[test]
fn a_try_that_may_not_wait_leaves_the_arm_of_a_select_alone() {
    crate::common::in_tasks(|| {
        let (sender, receiver) = channel::bounded(0);
        let sending = fibra_runtime::spawn(move || select! { send(sender, 7) -> sent => sent });
        (0..3).for_each(|_| yield_now());
        let here = task::forbid_suspend();
        assert_eq!(receiver.try_recv(), Err(channel::TryRecvError::Empty));
        drop(here);
        assert_eq!(receiver.recv(), Ok(7));
        assert_eq!(sending.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_try_that_may_not_wait_finds_the_message_behind_the_arm_of_a_select() {
    crate::common::in_tasks(|| {
        let (sender, receiver) = channel::bounded(0);
        let (first, second) = (sender.clone(), sender.clone());
        let selecting = spawn_local(move || select! { send(first, 1) -> sent => sent });
        crate::common::give_way();
        let sending = [sender, second].map(|sender| spawn_local(move || sender.send(7)));
        crate::common::give_way();
        let here = task::forbid_suspend();
        let mut select = channel::Select::new();
        select.recv(&receiver);
        assert_eq!(select.try_ready(), Ok(0));
        let chosen = select! { recv(receiver) -> received => received, default => Ok(0) };
        assert_eq!((chosen, receiver.try_recv()), (Ok(7), Ok(7)));
        assert!(select.try_ready().is_err());
        assert_eq!(receiver.try_recv(), Err(channel::TryRecvError::Empty));
        drop(here);
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(selecting.join().unwrap(), Ok(()));
        sending.into_iter().for_each(|sending| assert_eq!(sending.join().unwrap(), Ok(())));
    });
}

#[test]
fn the_last_arrival_at_a_barrier_does_not_suspend() {
    forbidden(|| {
        let alone = Barrier::new(1);
        assert!(alone.wait().is_leader() && alone.wait_timeout(Duration::ZERO).is_some());
    });
    crate::common::in_tasks(|| {
        let barrier = Arc::new(Barrier::new(2));
        for _ in 0..3 {
            let first = catch_unwind(AssertUnwindSafe(|| {
                let _here = task::forbid_suspend();
                barrier.wait();
            }));
            assert!(first.is_err(), "it would have to wait, and has not come");
            let party = Arc::clone(&barrier);
            let other = spawn_local(move || party.wait().is_leader());
            // It comes, and sleeps.
            crate::common::give_way();
            let here = task::forbid_suspend();
            assert!(barrier.wait().is_leader());
            drop(here);
            assert!(!other.join().unwrap());
        }
    });
}
