//! Looks and failed attempts count: a task that spins on them lets the task run that it waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{guarded, runtime};
use fibra_runtime::{spawn_local, yield_now};
use fibra_sync::{
    AutoResetEvent, CountdownEvent, FairMutex, LazyLock, ManualResetEvent, Mutex, Once, OnceCell, OnceState,
    ReentrantMutex, RwLock, RwLockExt, Semaphore, WaitGroup,
};

/// Spins on a look, on one worker, beside the task that changes what is looked at.
///
/// That task runs `other` up to its yield before the first look.
fn ends<T: Send + Sync + 'static>(object: T, other: fn(&T), look: impl Fn(&Arc<T>) -> bool + Sync) {
    guarded(|| {
        runtime(1).run(|| {
            let object = Arc::new(object);
            let shared = Arc::clone(&object);
            let other = spawn_local(move || other(&shared));
            yield_now();
            assert!(!look(&object), "nothing has changed at first");
            let mut looks = 0;
            while !look(&object) {
                looks += 1;
                assert!(looks < 10_000, "no other task runs");
            }
            other.join().unwrap();
        });
    });
}

/// Keeps a lock until the spinning task has looked at it.
fn hold<G>(guard: G) {
    yield_now();
    drop(guard);
}

/// Makes a change after the spinning task has looked.
fn later<R>(change: impl FnOnce() -> R) {
    yield_now();
    change();
}

macro_rules! looks {
    ($($name:ident: $new:expr, |$object:ident| $other:expr, $look:expr;)*) => {
        $(
            #[test]
            fn $name() {
                ends($new, |$object| $other, |$object| $look);
            }
        )*
    };
}

looks! {
    mutex_try_lock: Mutex::new(()), |lock| hold(lock.lock()), lock.try_lock().is_some();
    mutex_try_lock_arc: Mutex::new(()), |lock| hold(lock.lock()), lock.try_lock_arc().is_some();
    fair_mutex_try_lock: FairMutex::new(()), |lock| hold(lock.lock()), lock.try_lock().is_some();
    mutex_is_locked: Mutex::new(()), |lock| hold(lock.lock()), !lock.is_locked();
    reentrant_mutex_try_lock: ReentrantMutex::new(()), |lock| hold(lock.lock()), lock.try_lock().is_some();
    reentrant_mutex_is_locked: ReentrantMutex::new(()), |lock| hold(lock.lock()), !lock.is_locked();
    rwlock_try_read: RwLock::new(()), |lock| hold(lock.write()), lock.try_read().is_some();
    rwlock_try_read_arc: RwLock::new(()), |lock| hold(lock.write()), lock.try_read_arc().is_some();
    rwlock_try_read_recursive: RwLock::new(()), |lock| hold(lock.write()), lock.try_read_recursive().is_some();
    rwlock_try_write: RwLock::new(()), |lock| hold(lock.read()), lock.try_write().is_some();
    rwlock_try_upgradable_read: RwLock::new(()), |lock| hold(lock.write()), lock.try_upgradable_read().is_some();
    rwlock_is_locked: RwLock::new(()), |lock| hold(lock.read()), !lock.is_locked();
    rwlock_is_locked_exclusive: RwLock::new(()), |lock| hold(lock.write()), !lock.is_locked_exclusive();
    semaphore_try_acquire: Semaphore::new(1), |all| hold(all.acquire()), all.try_acquire().is_ok();
    semaphore_try_acquire_owned: Semaphore::new(1), |all| hold(all.acquire()),
        Arc::clone(all).try_acquire_owned().is_ok();
    semaphore_available_permits: Semaphore::new(1), |all| hold(all.acquire()), all.available_permits() > 0;
    wait_group_count: WaitGroup::new(), |group| hold(group.worker()), group.count() == 0;
    auto_reset_event_try_wait: AutoResetEvent::new(false), |event| later(|| event.set()), event.try_wait();
    auto_reset_event_is_set: AutoResetEvent::new(false), |event| later(|| event.set()), event.is_set();
    manual_reset_event_is_set: ManualResetEvent::new(false), |event| later(|| event.set()), event.is_set();
    manual_reset_event_is_reset: ManualResetEvent::new(true), |event| later(|| event.reset()), !event.is_set();
    countdown_event_is_set: CountdownEvent::new(1), |event| later(|| event.signal()), event.is_set();
    countdown_event_count: CountdownEvent::new(1), |event| later(|| event.signal()), event.count() == 0;
    once_is_completed: Once::new(), |once| later(|| once.call_once(|| ())), once.is_completed();
    once_state: Once::new(), |once| later(|| once.call_once(|| ())), once.state() == OnceState::Done;
    once_cell_get: OnceCell::new(), |cell| later(|| cell.set(1)), cell.get().is_some();
    lazy_lock_get: LazyLock::new(|| 1), |lazy| later(|| **lazy), LazyLock::get(lazy).is_some();
}

/// A free lock that is taken again and again keeps no other task from its worker.
#[test]
fn rwlock_taken_while_it_is_free() {
    let takes: [fn(&RwLock<bool>) -> bool; 9] = [
        |lock| *lock.read(),
        |lock| *lock.read_recursive(),
        |lock| *lock.upgradable_read(),
        |lock| *lock.write(),
        |lock| *lock.try_read().unwrap(),
        |lock| *lock.try_write().unwrap(),
        |lock| *lock.try_read_for(Duration::ZERO).unwrap(),
        |lock| *lock.try_write_until(Instant::now()).unwrap(),
        |lock| *lock.try_read_recursive_for(Duration::ZERO).unwrap(),
    ];
    for take in takes {
        ends(RwLock::new(false), |lock| later(|| *lock.write() = true), |lock| take(lock));
    }
}
