//! What a sleeper waits for can be told from outside: by its name, and for locks with the owner.

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::in_tasks;
use fibra_runtime::task::{Owner, WaitsFor};
use fibra_runtime::{Handle, Task, block_on, scope, sleep, spawn, task, yield_now};
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, Notify, Once, RwLock,
    Semaphore, WaitGroup, broadcast, channel, oneshot, select, watch,
};

/// Returns what a task waits for, once it sleeps.
fn found(task: &Task) -> WaitsFor {
    loop {
        yield_now();
        if let Some(found) = task.waits_for() {
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
            assert_eq!(found(sleeper.task()).kind, name);
            sleeper.cancel();
            _ = sleeper.join();
        }
    });
}

/// Spawns a holder and a waiter. Returns what the waiter waits for, and the holder.
fn behind(hold: impl FnOnce() + Send + 'static, wait: impl FnOnce() + Send + 'static) -> (WaitsFor, Task) {
    let holder = spawn(hold);
    let owner = holder.task().clone();
    assert_eq!(found(holder.task()).kind, "park");
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
        assert_eq!((found.kind.as_str(), found.owner), ("mutex", Some(Owner::Task(owner))));

        let lock = Arc::new(RwLock::new(()));
        let [ours, theirs] = [0, 1].map(|_| Arc::clone(&lock));
        let hold = move || {
            let _guard = ours.write();
            task::park();
        };
        let (found, owner) = behind(hold, move || drop(theirs.read()));
        assert_eq!((found.kind.as_str(), found.owner), ("rwlock", Some(Owner::Task(owner))));

        let once = Arc::new(Once::new());
        let [ours, theirs] = [0, 1].map(|_| Arc::clone(&once));
        let (found, owner) = behind(move || ours.call_once(task::park), move || theirs.wait());
        assert_eq!((found.kind.as_str(), found.owner), ("once", Some(Owner::Task(owner))));

        let parked = spawn(task::park);
        let task = parked.task().clone();
        let joiner = spawn(move || parked.join().unwrap());
        let found = self::found(joiner.task());
        assert_eq!((found.kind.as_str(), found.owner), ("join", Some(Owner::Task(task.clone()))));
        task.unpark();
        joiner.join().unwrap();
    });
}

/// Looks at what two tasks wait for, a mutex and a lock whose owner is what `start` runs the closure on.
fn owned_by<H>(start: impl FnOnce(Box<dyn FnOnce() + Send>) -> H, look: impl Fn(&H, &WaitsFor)) -> H {
    let (mutex, lock) = (Arc::new(Mutex::new(())), Arc::new(RwLock::new(())));
    let (held, hold) = oneshot::channel();
    let (release, released) = mpsc::channel::<()>();
    let owner = start(Box::new({
        let (mutex, lock) = (Arc::clone(&mutex), Arc::clone(&lock));
        move || {
            let _guards = (mutex.lock(), lock.write());
            held.send(()).unwrap();
            _ = released.recv();
        }
    }));
    hold.recv().unwrap();
    let waiters = [spawn(move || drop(mutex.lock())), spawn(move || drop(lock.read()))];
    waiters.iter().for_each(|waiter| look(&owner, &found(waiter.task())));
    // The owner goes on, so no task waits for ever.
    assert!(Handle::current().wait_graph().cycles().is_empty());
    drop(release);
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    owner
}

#[test]
fn a_lock_names_the_thread_that_owns_it() {
    in_tasks(|| {
        let start = |own| thread::Builder::new().name("the owner".to_owned()).spawn(own).unwrap();
        let owner = owned_by(start, |_, found| {
            let is_named = |owner: &Owner| matches!(owner, Owner::Thread { name: Some(name), .. } if name == "the owner");
            assert!(found.owner.as_ref().is_some_and(is_named), "{found:?}");
            assert!(found.to_string().ends_with(" of thread 'the owner'"), "{found}");
        });
        owner.join().unwrap();
    });
}

#[test]
fn a_lock_names_the_task_on_the_blocking_pool_that_owns_it() {
    in_tasks(|| {
        let start = |own| task::Builder::new().name("the owner").spawn_blocking(own);
        let owner = owned_by(start, |owner, found| {
            assert_eq!(found.owner, Some(Owner::Task(owner.task().clone())));
            assert!(found.to_string().contains(" of task 'the owner'"), "{found}");
        });
        owner.join().unwrap();
    });
}

#[test]
fn a_running_task_and_a_ready_one_wait_for_nothing() {
    in_tasks(|| {
        let sleeper = spawn(task::park);
        assert_eq!(found(sleeper.task()).kind, "park");
        sleeper.task().unpark();
        // It is in the queue of ready tasks now.
        assert_eq!([sleeper.task(), &task::current()].map(Task::waits_for), [None, None]);
        sleeper.join().unwrap();
    });
}

#[test]
fn a_dump_shows_all_arms_of_a_select() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let (_sender, receiver) = channel::bounded::<u8>(1);
        let theirs = Arc::clone(&event);
        let sleeper = spawn(move || {
            select! {
                recv(receiver) -> _ => (),
                wait(theirs) => (),
            }
        });
        let arms = found(sleeper.task()).arms;
        let mut kinds: Vec<_> = arms.iter().map(|arm| arm.kind.as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["auto-reset event", "channel receive"]);
        let dump = Handle::current().dump().to_string();
        let line = format!("waiting for select ({}, {})", arms[0], arms[1]);
        assert!(dump.contains(&line), "{dump}");
        event.set();
        sleeper.join().unwrap();
    });
}
