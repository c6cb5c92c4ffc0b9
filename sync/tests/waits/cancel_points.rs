//! Waits that need not wait: each ends a task that was cancelled before it all the same, and takes nothing; and a loop over it
//! lets others run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::in_tasks;
use fibra_runtime::{self as fibra, CancelToken, TaskGroup, task};
use fibra_sync::channel::{Select, bounded, unbounded};
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, Once, OnceCell, Semaphore,
    WaitGroup, broadcast, oneshot, select, watch,
};

const LONG: Duration = Duration::from_secs(3600);

/// More than enough for a task to use up its turn.
const MANY: usize = 10_000;

/// Runs each of `points` in a task that is cancelled before, and over and over until another task of the worker has run.
fn are_points<const COUNT: usize>(points: [(&'static str, fn()); COUNT]) {
    in_tasks(|| {
        for (name, point) in points {
            let cancelled = fibra::spawn(move || {
                task::current().cancel();
                point();
            });
            assert!(cancelled.join().is_err_and(|error| error.is_cancelled()), "{name}");
            let other = fibra::spawn_local(|| ());
            let rounds = (0..MANY).take_while(|_| {
                point();
                !other.is_finished()
            });
            assert!(rounds.count() < MANY, "{name} lets no other task run");
        }
    });
}

fn soon() -> Instant {
    Instant::now() + LONG
}

#[test]
fn waits_for_what_has_come_already() {
    are_points([
        ("AutoResetEvent::wait", || AutoResetEvent::new(true).wait()),
        ("AutoResetEvent::wait_timeout", || _ = AutoResetEvent::new(true).wait_timeout(LONG)),
        ("AutoResetEvent::wait_deadline", || _ = AutoResetEvent::new(true).wait_deadline(soon())),
        ("ManualResetEvent::wait", || ManualResetEvent::new(true).wait()),
        ("ManualResetEvent::wait_timeout", || _ = ManualResetEvent::new(true).wait_timeout(LONG)),
        ("ManualResetEvent::wait_deadline", || _ = ManualResetEvent::new(true).wait_deadline(soon())),
        ("CountdownEvent::wait", || CountdownEvent::new(0).wait()),
        ("CountdownEvent::wait_timeout", || _ = CountdownEvent::new(0).wait_timeout(LONG)),
        ("WaitGroup::wait", || WaitGroup::new().wait()),
        ("WaitGroup::wait_deadline", || _ = WaitGroup::new().wait_deadline(soon())),
        ("Barrier::wait", || _ = Barrier::new(1).wait()),
        ("Barrier::wait_timeout", || _ = Barrier::new(1).wait_timeout(LONG)),
        ("CancelToken::cancelled", || {
            let token = CancelToken::new();
            token.cancel();
            token.cancelled();
        }),
        ("Once::wait", || {
            let once = Once::new();
            once.call_once(|| ());
            once.wait();
        }),
        ("OnceCell::wait", || _ = OnceCell::from(1).wait()),
        ("OnceCell::wait_timeout", || _ = OnceCell::from(1).wait_timeout(LONG)),
        ("Condvar::wait_for", || _ = Condvar::new().wait_for(&mut Mutex::new(0).lock(), Duration::ZERO)),
    ]);
}

#[test]
fn permits_that_are_free() {
    are_points([
        ("acquire", || drop(Semaphore::new(1).acquire())),
        ("acquire_many of none", || drop(Semaphore::new(1).acquire_many(0))),
        ("acquire_timeout", || drop(Semaphore::new(1).acquire_timeout(LONG))),
        ("acquire_many_deadline", || drop(Semaphore::new(2).acquire_many_deadline(2, soon()))),
        ("acquire_owned", || drop(Arc::new(Semaphore::new(1)).acquire_owned())),
        ("acquire_owned_timeout", || drop(Arc::new(Semaphore::new(1)).acquire_owned_timeout(LONG))),
        ("acquire_owned_deadline", || drop(Arc::new(Semaphore::new(1)).acquire_owned_deadline(soon()))),
    ]);
}

/// The one half of a pair without the other.
fn left<L, R>((left, _): (L, R)) -> L {
    left
}

fn right<L, R>((_, right): (L, R)) -> R {
    right
}

/// A channel with a message.
fn filled() -> (fibra_sync::channel::Sender<i32>, fibra_sync::channel::Receiver<i32>) {
    let (sender, receiver) = bounded(2);
    sender.try_send(1).unwrap();
    (sender, receiver)
}

#[test]
fn messages_that_are_there_and_room_for_some() {
    are_points([
        ("recv", || _ = filled().1.recv()),
        ("recv_timeout", || _ = filled().1.recv_timeout(LONG)),
        ("recv of what has ended", || _ = right(unbounded::<i32>()).recv()),
        ("iter", || _ = filled().1.iter().next()),
        ("send", || _ = filled().0.send(2)),
        ("send to what has ended", || _ = left(bounded(0)).send(1)),
        ("send_deadline", || _ = filled().0.send_deadline(2, soon())),
        ("send without bounds", || _ = unbounded().0.send(2)),
        ("select!", || {
            let (_sender, receiver) = filled();
            select! { recv(receiver) -> _ => {} }
        }),
        ("select! with a timeout", || {
            let (sender, _receiver) = filled();
            select! {
                send(sender, 1) -> _ => {}
                default(LONG) => {}
            }
        }),
        ("select! of an event", || {
            let event = ManualResetEvent::new(true);
            select! { wait(event) => {} }
        }),
        ("Select::ready", || {
            let (_sender, receiver) = filled();
            let mut select = Select::new();
            select.recv(&receiver);
            _ = select.ready();
        }),
        ("oneshot recv", || {
            let (sender, receiver) = oneshot::channel();
            sender.send(1).unwrap();
            _ = receiver.recv();
        }),
        ("oneshot closed", || left(oneshot::channel::<()>()).closed()),
        ("broadcast recv", || {
            let (sender, mut receiver) = broadcast::channel(2);
            sender.send(1).unwrap();
            _ = receiver.recv();
        }),
        ("broadcast recv of what has ended", || _ = right(broadcast::channel::<()>(2)).recv()),
        ("broadcast closed", || left(broadcast::channel::<()>(2)).closed()),
        ("watch changed", || {
            let (_sender, mut receiver) = watch::channel(1);
            receiver.mark_changed();
            _ = receiver.changed();
        }),
        ("watch changed of what has ended", || _ = right(watch::channel(1)).changed()),
        ("watch wait_for of what has ended", || _ = right(watch::channel(1)).wait_for(|_| false).is_ok()),
        ("watch wait_for", || _ = watch::channel(1).1.wait_for(|_| true).is_ok()),
        ("watch wait_for_timeout", || _ = watch::channel(1).1.wait_for_timeout(|_| true, LONG).is_ok()),
        ("watch closed", || left(watch::channel(1)).closed()),
    ]);
}

#[test]
fn a_cancelled_task_leaves_the_permits_it_did_not_wait_for() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(true));
        let permits = Arc::new(Semaphore::new(1));
        let (sender, receiver) = filled();
        let points: [Box<dyn FnOnce() + Send>; 4] = [
            Box::new({
                let event = Arc::clone(&event);
                move || event.wait()
            }),
            Box::new({
                let permits = Arc::clone(&permits);
                move || permits.acquire().forget()
            }),
            Box::new({
                let receiver = receiver.clone();
                move || _ = receiver.recv()
            }),
            Box::new(move || _ = sender.send(2)),
        ];
        for point in points {
            let cancelled = fibra::spawn(move || {
                task::current().cancel();
                point();
            });
            assert!(cancelled.join().unwrap_err().is_cancelled());
        }
        assert!(event.wait_timeout(Duration::ZERO));
        assert_eq!(permits.available_permits(), 1);
        assert!(receiver.iter().eq([1]));
    });
}

/// A value whose destructor waits.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        fibra::yield_now();
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn no_cancel_cuts_the_destructors_short_that_the_library_runs() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    let drops: [(&str, fn()); 7] = [
        ("bounded", || {
            let (sender, receiver) = bounded(10);
            (0..10).for_each(|_| sender.try_send(Waits(&ENDED)).unwrap());
            drop(receiver);
        }),
        ("unbounded", || {
            let (sender, receiver) = unbounded();
            (0..10).for_each(|_| sender.try_send(Waits(&ENDED)).unwrap());
            drop((sender, receiver));
        }),
        ("both ends kept", || {
            let (sender, receiver) = unbounded();
            (0..10).for_each(|_| sender.try_send(Waits(&ENDED)).unwrap());
            drop((receiver, sender));
        }),
        ("broadcast", || {
            let (sender, receiver) = broadcast::channel(10);
            (0..10).for_each(|_| drop(sender.send(Arc::new(Waits(&ENDED)))));
            drop(receiver);
        }),
        ("oneshot", || {
            for _ in 0..10 {
                let (sender, receiver) = oneshot::channel();
                assert!(sender.send(Waits(&ENDED)).is_ok());
                drop(receiver);
            }
        }),
        ("unclaimed result", || {
            let task = fibra::spawn(|| (0..10).map(|n| (n, Waits(&ENDED))).collect::<HashMap<_, _>>());
            task::shield(|| {
                while !task.is_finished() {
                    fibra::yield_now();
                }
            });
            drop(task);
        }),
        ("shielded map", || {
            drop(task::Shielded::new((0..10).map(|n| (n, Waits(&ENDED))).collect::<HashMap<_, _>>()));
        }),
    ];
    in_tasks(|| {
        for (name, drop) in drops {
            let before = ENDED.load(Ordering::SeqCst);
            assert!(fibra::timeout(Duration::ZERO, drop).is_ok(), "{name}");
            assert_eq!(ENDED.load(Ordering::SeqCst) - before, 10, "{name}");
        }
    });
}

/// Counts the whole drops in the test of ten values.
static WHOLE: AtomicUsize = AtomicUsize::new(0);

/// Returns ten values in a collection that leaks the rest if the drop of one is cut short.
fn ten<T>(make: impl Fn() -> T) -> HashMap<usize, T> {
    (0..10).map(|number| (number, make())).collect()
}

/// Cancels the caller from another task, after the first of its ten values.
fn cancel_once_a_drop_has_begun() {
    let (caller, before) = (task::current(), WHOLE.load(Ordering::SeqCst));
    fibra::spawn_local(move || {
        while WHOLE.load(Ordering::SeqCst) == before {
            fibra::yield_now();
        }
        caller.cancel();
    });
}

/// Drops a value in a task that is cancelled.
fn drop_cancelled<T>(value: T) {
    task::current().cancel();
    drop(value);
}

/// Waits for the end of a task, also if the caller is cancelled.
fn until_finished(task: &fibra::Task) {
    while !task.is_finished() {}
}

#[test]
fn a_cancelled_task_drops_each_of_ten_of_the_library_s_values_whole() {
    let drops: [(&str, fn()); 14] = [
        ("drains", || {
            drop_cancelled(ten(|| {
                let (sender, receiver) = unbounded();
                sender.send(Waits(&WHOLE)).unwrap();
                receiver.drain()
            }));
        }),
        ("a drain", || {
            let (sender, receiver) = unbounded();
            (0..10).for_each(|_| sender.send(Waits(&WHOLE)).unwrap());
            drop_cancelled(receiver.drain());
        }),
        ("groups with tasks that run", || {
            drop_cancelled(ten(|| {
                let (group, begun) = (TaskGroup::new(), Arc::new(ManualResetEvent::new(false)));
                let (value, begins) = (Waits(&WHOLE), Arc::clone(&begun));
                group.spawn(move || {
                    begins.set();
                    task::park();
                    drop(value);
                });
                begun.wait();
                group
            }));
        }),
        ("groups with tasks that have not begun", || {
            drop_cancelled(ten(|| {
                let (group, value) = (TaskGroup::new(), Waits(&WHOLE));
                group.spawn_local(move || drop(value));
                group
            }));
        }),
        ("groups with results", || {
            drop_cancelled(ten(|| {
                let group = TaskGroup::new();
                until_finished(&group.spawn(|| Waits(&WHOLE)));
                group
            }));
        }),
        ("handles with results", || {
            drop_cancelled(ten(|| {
                let task = fibra::spawn(|| Waits(&WHOLE));
                until_finished(task.task());
                task
            }));
        }),
        ("values behind the first failure of a group", || {
            let group = TaskGroup::new();
            group.spawn(|| Ok(ten(|| Waits(&WHOLE))));
            group.spawn(|| Err(()));
            cancel_once_a_drop_has_begun();
            assert!(group.try_join_all().is_err());
        }),
        ("the former value of a watch", || {
            let (sender, _receiver) = watch::channel(ten(|| Waits(&WHOLE)));
            task::current().cancel();
            assert!(sender.send(HashMap::new()).is_ok());
        }),
        ("the last value of a watch", || drop_cancelled(watch::channel(ten(|| Waits(&WHOLE))))),
        ("an overwritten message of a broadcast", || {
            let (sender, _receiver) = broadcast::channel(1);
            assert!(sender.send(Arc::new(ten(|| Waits(&WHOLE)))).is_ok());
            task::current().cancel();
            assert!(sender.send(Arc::new(HashMap::new())).is_ok());
        }),
        ("the value of a loser", || {
            let (me, values) = (task::current(), ten(|| Waits(&WHOLE)));
            fibra::race(move || me.cancel(), move || values);
        }),
        ("what a loser has on its stack", || {
            let (me, values) = (task::current(), ten(|| Waits(&WHOLE)));
            let loser = move || {
                task::park();
                drop(values);
            };
            let winner = move || {
                fibra::sleep(Duration::from_millis(1));
                me.cancel();
            };
            fibra::race(winner, loser);
        }),
        ("the result of a child of a scope", || {
            fibra::scope(|scope| {
                let child = scope.spawn(|| ten(|| Waits(&WHOLE)));
                until_finished(child.task());
                drop_cancelled(child);
            });
        }),
        ("a child of a scope that has not begun", || {
            let values = ten(|| Waits(&WHOLE));
            fibra::scope(|scope| {
                scope.spawn_local(move || drop(values)).cancel();
                task::current().cancel();
            });
        }),
    ];
    in_tasks(|| {
        for (name, drops) in drops {
            let before = WHOLE.load(Ordering::SeqCst);
            _ = fibra::spawn(drops).join();
            let dropped = || WHOLE.load(Ordering::SeqCst) - before;
            // Tasks that a group has detached drop theirs by and by.
            let begun = Instant::now();
            while dropped() < 10 && begun.elapsed() < Duration::from_secs(10) {
                fibra::yield_now();
            }
            assert_eq!(dropped(), 10, "{name}");
        }
    });
}
