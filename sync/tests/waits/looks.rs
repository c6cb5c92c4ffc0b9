//! Looks and failed attempts count: a task that spins on them lets the task run that it waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{guarded, runtime};
use fibra_runtime::{CancelToken, spawn_local, yield_now};
use fibra_sync::channel::{Receiver, Select, Sender, bounded};
use fibra_sync::{
    AutoResetEvent, Condvar, CountdownEvent, FairMutex, LazyLock, ManualResetEvent, Mutex, Once, OnceCell,
    OnceState, ReentrantMutex, RwLock, RwLockExt, Semaphore, WaitGroup, broadcast, oneshot, select, watch,
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

/// Both sides of a channel, each of which can be dropped or used up.
type Ends<S, R> = (Mutex<Option<S>>, Mutex<Option<R>>);

fn ends_of<S, R>((sender, receiver): (S, R)) -> Ends<S, R> {
    (Mutex::new(Some(sender)), Mutex::new(Some(receiver)))
}

/// The only end of one side of a channel, and a weak one.
fn weak_of<S, W>(end: S, downgrade: fn(&S) -> W) -> (Mutex<Option<S>>, W) {
    let weak = downgrade(&end);
    (Mutex::new(Some(end)), weak)
}

fn full() -> (Sender<i32>, Receiver<i32>) {
    let ends = bounded(1);
    ends.0.send(1).unwrap();
    ends
}

/// Looks at a side of a channel that is left.
fn at<S, R>(side: &Mutex<Option<S>>, look: impl FnOnce(&mut S) -> R) -> R {
    look(side.lock().as_mut().unwrap())
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
    semaphore_is_closed: Semaphore::new(1), |all| later(|| all.close()), all.is_closed();
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
    condvar_notify_one: (Mutex::new(()), Condvar::new()), |pair| later(|| pair.1.wait(&mut pair.0.lock())),
        pair.1.notify_one();
    condvar_notify_all: (Mutex::new(()), Condvar::new()), |pair| later(|| pair.1.wait(&mut pair.0.lock())),
        pair.1.notify_all() > 0;
    cancel_token_is_cancelled: CancelToken::new(), |token| later(|| token.cancel()), token.is_cancelled();
    channel_try_recv: bounded(1), |ends| later(|| ends.0.send(1)), ends.1.try_recv().is_ok();
    channel_try_iter: bounded(1), |ends| later(|| ends.0.send(1)), ends.1.try_iter().next().is_some();
    channel_try_send: full(), |ends| later(|| ends.1.recv()), ends.0.try_send(2).is_ok();
    channel_len: bounded(1), |ends| later(|| ends.0.send(1)), ends.1.len() == 1;
    channel_is_empty: bounded(1), |ends| later(|| ends.0.send(1)), !ends.1.is_empty();
    channel_is_full: full(), |ends| later(|| ends.1.recv()), !ends.1.is_full();
    channel_sender_len: full(), |ends| later(|| ends.1.recv()), ends.0.len().eq(&0);
    channel_sender_is_empty: full(), |ends| later(|| ends.1.recv()), ends.0.is_empty();
    channel_drain: bounded(1), |ends| later(|| ends.0.send(1)), ends.1.drain().next().is_some();
    channel_receiver_count: ends_of(bounded::<i32>(1)), |ends| later(|| drop(ends.1.lock().take())),
        at(&ends.0, |sender| sender.receiver_count() == 0);
    channel_sender_count: ends_of(bounded::<i32>(1)), |ends| later(|| drop(ends.0.lock().take())),
        at(&ends.1, |receiver| receiver.sender_count() == 0);
    channel_weak_sender_upgrade: weak_of(bounded::<i32>(1).0, Sender::downgrade),
        |pair| later(|| drop(pair.0.lock().take())), pair.1.upgrade().is_none();
    channel_weak_receiver_upgrade: weak_of(bounded::<i32>(1).1, Receiver::downgrade),
        |pair| later(|| drop(pair.0.lock().take())), pair.1.upgrade().is_none();
    channel_try_reserve: full(), |ends| later(|| ends.1.recv()), ends.0.try_reserve().is_ok();
    channel_sender_is_full: full(), |ends| later(|| ends.1.recv()), !ends.0.is_full();
    select_default: bounded(1), |ends| later(|| ends.0.send(1)), {
        select! { recv(ends.1) -> _ => true, default => false }
    };
    select_of_two_default: (bounded(1), bounded::<()>(1)), |ends| later(|| ends.0.0.send(1)), {
        select! { recv(ends.0.1) -> _ => true, recv(ends.1.1) -> _ => unreachable!(), default => false }
    };
    select_try_ready: bounded(1), |ends| later(|| ends.0.send(1)), {
        let mut select = Select::new();
        select.recv(&ends.1);
        select.try_ready().is_ok()
    };
    oneshot_try_recv: ends_of(oneshot::channel()), |ends| later(|| ends.0.lock().take().unwrap().send(1)),
        at(&ends.1, |receiver| receiver.try_recv().is_ok());
    oneshot_is_empty: ends_of(oneshot::channel()), |ends| later(|| ends.0.lock().take().unwrap().send(1)),
        at(&ends.1, |receiver| !receiver.is_empty());
    oneshot_is_closed: ends_of(oneshot::channel::<i32>()), |ends| later(|| drop(ends.1.lock().take())),
        at(&ends.0, |sender| sender.is_closed());
    broadcast_try_recv: ends_of(broadcast::channel(1)), |ends| later(|| at(&ends.0, |sender| sender.send(1))),
        at(&ends.1, |receiver| receiver.try_recv().is_ok());
    broadcast_is_empty: ends_of(broadcast::channel(1)), |ends| later(|| at(&ends.0, |sender| sender.send(1))),
        at(&ends.1, |receiver| !receiver.is_empty());
    broadcast_len: ends_of(broadcast::channel(1)), |ends| later(|| at(&ends.0, |sender| sender.send(1))),
        at(&ends.0, |sender| sender.len() == 1);
    broadcast_is_closed: ends_of(broadcast::channel::<i32>(1)), |ends| later(|| drop(ends.0.lock().take())),
        at(&ends.1, |receiver| receiver.is_closed());
    broadcast_receiver_count: ends_of(broadcast::channel::<i32>(1)),
        |ends| later(|| drop(ends.1.lock().take())), at(&ends.0, |sender| sender.receiver_count() == 0);
    broadcast_strong_count: weak_of(broadcast::channel::<i32>(1).0, broadcast::Sender::downgrade),
        |pair| later(|| drop(pair.0.lock().take())), pair.1.strong_count() == 0;
    broadcast_weak_count: weak_of(broadcast::channel::<i32>(1).0, broadcast::Sender::downgrade),
        |pair| later(|| pair.0.lock().as_ref().map(|sender| std::mem::forget(sender.downgrade()))),
        pair.1.weak_count() == 2;
    broadcast_weak_sender_upgrade: weak_of(broadcast::channel::<i32>(1).0, broadcast::Sender::downgrade),
        |pair| later(|| drop(pair.0.lock().take())), pair.1.upgrade().is_none();
    watch_has_changed: watch::channel(0), |ends| later(|| ends.0.send(1)), ends.1.has_changed().unwrap();
    watch_borrow: watch::channel(0), |ends| later(|| ends.0.send(1)), *ends.1.borrow() == 1;
    watch_borrow_and_update: ends_of(watch::channel(0)), |ends| later(|| at(&ends.0, |sender| sender.send(1))),
        at(&ends.1, |receiver| *receiver.borrow_and_update() == 1);
    watch_sender_borrow: watch::channel(0), |ends| later(|| ends.0.send(1)), *ends.0.borrow() == 1;
    watch_receiver_count: ends_of(watch::channel(0)), |ends| later(|| drop(ends.1.lock().take())),
        at(&ends.0, |sender| sender.receiver_count() == 0);
    watch_sender_count: watch::channel(0), |ends| later(|| std::mem::forget(ends.0.clone())),
        ends.0.sender_count() == 2;
    watch_is_closed: ends_of(watch::channel(0)), |ends| later(|| drop(ends.1.lock().take())),
        at(&ends.0, |sender| sender.is_closed());
    watch_receiver_is_closed: ends_of(watch::channel(0)), |ends| later(|| drop(ends.0.lock().take())),
        at(&ends.1, |receiver| receiver.is_closed());
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
