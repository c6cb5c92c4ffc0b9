//! What a sleeper waits for can be told from outside: by its name, and for locks with the owner.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::common::in_tasks;
use fibra_runtime::wait::{Owner, WaitsFor};
use fibra_runtime::{Handle, Task, block_on, scope, sleep, spawn, task, yield_now};
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, Notify, Once, RwLock,
    Semaphore, WaitGroup, broadcast, oneshot, watch,
};

/// Returns what a task waits for, once it sleeps.
fn found(task: &Task) -> WaitsFor {
    let handle = Handle::current();
    loop {
        yield_now();
        if let Some(found) = handle.waits_for(task) {
            return found;
        }
    }
}

#[test]
fn each_wait_has_the_name_of_its_primitive() {
    let waits: [(&str, fn()); 18] = [
        ("park", task::park),
        ("sleep", || sleep(Duration::from_secs(1000))),
        ("join", || spawn(task::park).join().unwrap()),
        ("scope", || scope(|scope| drop(scope.spawn(task::park)))),
        ("block_on", || block_on(pending())),
        ("semaphore", || drop(Semaphore::new(0).acquire())),
        ("auto-reset event", || AutoResetEvent::new(false).wait()),
        ("notification", || Notify::new().notified()),
        ("manual event", || ManualResetEvent::new(false).wait()),
        ("countdown event", || CountdownEvent::new(1).wait()),
        ("barrier", || _ = Barrier::new(2).wait()),
        ("wait group", || {
            let group = WaitGroup::new();
            group.add(1);
            group.wait();
        }),
        ("condvar", || {
            let mutex = Mutex::new(());
            Condvar::new().wait(&mut mutex.lock());
        }),
        ("oneshot", || {
            let (_sender, receiver) = oneshot::channel::<()>();
            _ = receiver.recv();
        }),
        ("broadcast", || {
            let (_sender, mut receiver) = broadcast::channel::<u8>(1);
            _ = receiver.recv();
        }),
        ("broadcast close", || {
            let (sender, _receiver) = broadcast::channel::<u8>(1);
            sender.closed();
        }),
        ("watch change", || {
            let (_sender, mut receiver) = watch::channel(0);
            _ = receiver.changed();
        }),
        ("watch closing", || {
            let (sender, _receiver) = watch::channel(0);
            sender.closed();
        }),
    ];
    in_tasks(move || {
        for (name, wait) in waits {
            let sleeper = spawn(wait);
            assert_eq!(found(sleeper.task()).name, name);
            sleeper.cancel();
            _ = sleeper.join();
        }
    });
}

/// Spawns a holder and a waiter. Returns what the waiter waits for, and the id of the holder.
fn behind(hold: impl FnOnce() + Send + 'static, wait: impl FnOnce() + Send + 'static) -> (WaitsFor, u64) {
    let holder = spawn(hold);
    let owner = holder.task().id();
    assert_eq!(found(holder.task()).name, "park");
    let waiter = spawn(wait);
    let found = found(waiter.task());
    holder.task().unpark();
    holder.join().unwrap();
    waiter.join().unwrap();
    (found, owner)
}

#[test]
fn locks_initializers_and_joins_name_their_owner() {
    in_tasks(|| {
        let mutex = Arc::new(Mutex::new(()));
        let [ours, theirs] = [0, 1].map(|_| Arc::clone(&mutex));
        let hold = move || {
            let _guard = ours.lock();
            task::park();
        };
        let (found, owner) = behind(hold, move || drop(theirs.lock()));
        assert_eq!((found.name.as_str(), found.owner), ("mutex", Some(Owner::Number(owner))));

        let lock = Arc::new(RwLock::new(()));
        let [ours, theirs] = [0, 1].map(|_| Arc::clone(&lock));
        let hold = move || {
            let _guard = ours.write();
            task::park();
        };
        let (found, owner) = behind(hold, move || drop(theirs.read()));
        assert_eq!((found.name.as_str(), found.owner), ("rwlock", Some(Owner::Number(owner))));

        let once = Arc::new(Once::new());
        let [ours, theirs] = [0, 1].map(|_| Arc::clone(&once));
        let (found, owner) = behind(move || ours.call_once(task::park), move || theirs.wait());
        assert_eq!((found.name.as_str(), found.owner), ("once", Some(Owner::Number(owner))));

        let parked = spawn(task::park);
        let (task, id) = (parked.task().clone(), parked.task().id());
        let joiner = spawn(move || parked.join().unwrap());
        let found = self::found(joiner.task());
        assert_eq!((found.name.as_str(), found.owner), ("join", Some(Owner::Number(id))));
        task.unpark();
        joiner.join().unwrap();
    });
}

#[test]
fn a_running_task_and_a_ready_one_wait_for_nothing() {
    in_tasks(|| {
        let handle = Handle::current();
        let sleeper = spawn(task::park);
        assert_eq!(found(sleeper.task()).name, "park");
        sleeper.task().unpark();
        // It is in the queue of ready tasks now.
        assert_eq!([sleeper.task(), &task::current()].map(|task| handle.waits_for(task)), [None, None]);
        sleeper.join().unwrap();
    });
}
