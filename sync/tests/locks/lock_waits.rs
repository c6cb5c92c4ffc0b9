//! The waits for locks that a runtime counts.

use std::sync::Arc;
use std::time::Duration;

use crate::common::runtime;
use fibra_runtime::metrics::RuntimeMetrics;
use fibra_runtime::{JoinHandle, sleep, spawn};
use fibra_sync::{Mutex, RwLock};

/// How long a lock is held while others wait.
const HELD: Duration = Duration::from_millis(20);

/// Spawns tasks that take a lock.
fn wait_behind(lock: impl Fn() + Send + Sync + 'static) -> Vec<JoinHandle<()>> {
    let lock = Arc::new(lock);
    let task = |_| {
        let lock = Arc::clone(&lock);
        spawn(move || lock())
    };
    (0..9).map(task).collect()
}

#[test]
fn waits_for_locks_are_counted_and_timed() {
    let (mutex, rwlock) = (Arc::new(Mutex::new(())), Arc::new(RwLock::new(())));
    let counts = |metrics: RuntimeMetrics| (metrics.sum(|w| w.lock_waits), metrics.sum(|w| w.lock_wait));
    let runtime = runtime(1);
    let handle = runtime.handle();
    runtime.run(move || {
        drop((mutex.lock(), rwlock.read()));
        assert_eq!(counts(handle.metrics()), (0, Duration::ZERO), "a free lock is not waited for");
        let held = mutex.lock();
        let waiters = wait_behind({
            let mutex = Arc::clone(&mutex);
            move || drop(mutex.lock())
        });
        sleep(HELD);
        drop(held);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        let (waits, time) = counts(handle.metrics());
        assert!(waits >= 9 && time >= HELD, "{waits} waits, {time:?}");
        let held = rwlock.write();
        let waiters = wait_behind({
            let rwlock = Arc::clone(&rwlock);
            move || drop(rwlock.read())
        });
        sleep(HELD);
        drop(held);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        let (more, longer) = counts(handle.metrics());
        assert!(more >= waits + 9 && longer > time, "{more} waits, {longer:?}");
    });
}
