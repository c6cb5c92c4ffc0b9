//! Waits that last until they are notified, with a deadline of their own and without: a cancel and a deadline around them
//! end them, and in a shield neither does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{everywhere, in_tasks, pause};
use fibra_runtime::{self as fibra, JoinHandle, task, wait};
use fibra_sync::channel::{Receiver, Select, Sender, bounded};
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, LazyLock, ManualResetEvent, Mutex, Notify, Once,
    OnceCell, Semaphore, WaitGroup, broadcast, mpsc, oneshot, select, watch,
};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

/// A wait, and what ends it.
struct Row {
    name: &'static str,
    wait: Box<dyn Fn() + Send>,
    notify: Box<dyn Fn()>,
}

fn row<T: Send + Sync + 'static>(name: &'static str, thing: T, wait: fn(&T), notify: fn(&T)) -> Row {
    let thing = Arc::new(thing);
    let theirs = Arc::clone(&thing);
    Row { name, wait: Box::new(move || wait(&theirs)), notify: Box::new(move || notify(&thing)) }
}

fn soon() -> Instant {
    Instant::now() + LONG
}

fn events() -> Vec<Row> {
    let auto_reset = |name, wait| row(name, AutoResetEvent::new(false), wait, AutoResetEvent::set);
    let notify = |name, wait| row(name, Notify::new(), wait, Notify::notify_one);
    let manual_reset = |name, wait| row(name, ManualResetEvent::new(false), wait, ManualResetEvent::set);
    let countdown = |name, wait| row(name, CountdownEvent::new(1), wait, |event| assert!(event.signal()));
    vec![
        auto_reset("AutoResetEvent::wait", AutoResetEvent::wait),
        auto_reset("AutoResetEvent::wait_timeout", |event| assert!(event.wait_timeout(LONG))),
        auto_reset("AutoResetEvent::wait_deadline", |event| assert!(event.wait_deadline(soon()))),
        notify("Notify::notified", Notify::notified),
        notify("Notify::notified_timeout", |notify| assert!(notify.notified_timeout(LONG))),
        notify("Notify::notified_deadline", |notify| assert!(notify.notified_deadline(soon()))),
        manual_reset("ManualResetEvent::wait", ManualResetEvent::wait),
        manual_reset("ManualResetEvent::wait_timeout", |event| assert!(event.wait_timeout(LONG))),
        manual_reset("ManualResetEvent::wait_deadline", |event| assert!(event.wait_deadline(soon()))),
        countdown("CountdownEvent::wait", CountdownEvent::wait),
        countdown("CountdownEvent::wait_timeout", |event| assert!(event.wait_timeout(LONG))),
        countdown("CountdownEvent::wait_deadline", |event| assert!(event.wait_deadline(soon()))),
    ]
}

fn groups() -> Vec<Row> {
    let group = |name, wait: fn(&WaitGroup)| {
        let busy = WaitGroup::new();
        busy.add(1);
        row(name, busy, wait, WaitGroup::done)
    };
    let barrier = |name, wait| row(name, Barrier::new(2), wait, |barrier| _ = barrier.wait());
    vec![
        group("WaitGroup::wait", WaitGroup::wait),
        group("WaitGroup::wait_timeout", |group| assert!(group.wait_timeout(LONG))),
        group("WaitGroup::wait_deadline", |group| assert!(group.wait_deadline(soon()))),
        barrier("Barrier::wait", |barrier| _ = barrier.wait()),
        barrier("Barrier::wait_timeout", |barrier| assert!(barrier.wait_timeout(LONG).is_some())),
        barrier("Barrier::wait_deadline", |barrier| assert!(barrier.wait_deadline(soon()).is_some())),
    ]
}

fn permits() -> Vec<Row> {
    let permits = |name, wait| row(name, Semaphore::new(1), wait, |permits| permits.add_permits(1));
    vec![
        permits("Semaphore::acquire_many", |permits| permits.acquire_many(2).forget()),
        permits("Semaphore::acquire_many_timeout", |permits| {
            permits.acquire_many_timeout(2, LONG).expect("it is notified").forget();
        }),
        permits("Semaphore::acquire_many_deadline", |permits| {
            permits.acquire_many_deadline(2, soon()).expect("it is notified").forget();
        }),
        row(
            "Semaphore::acquire_unless_closed",
            Semaphore::new(0),
            |permits| assert!(permits.acquire_unless_closed(1).is_err()),
            Semaphore::close,
        ),
    ]
}

fn values() -> Vec<Row> {
    let once = |name, wait| row(name, Once::new(), wait, |once| once.call_once(|| ()));
    let cell = |name, wait| row(name, OnceCell::new(), wait, |cell| cell.set(1).unwrap());
    let lazy = |name, wait| row(name, LazyLock::new(|| 1), wait, |lazy| _ = LazyLock::force(lazy));
    vec![
        once("Once::wait", Once::wait),
        once("Once::wait_timeout", |once| assert!(once.wait_timeout(LONG))),
        once("Once::wait_deadline", |once| assert!(once.wait_deadline(soon()))),
        cell("OnceCell::wait", |cell| assert_eq!(*cell.wait(), 1)),
        cell("OnceCell::wait_timeout", |cell| assert_eq!(cell.wait_timeout(LONG), Some(&1))),
        cell("OnceCell::wait_deadline", |cell| assert_eq!(cell.wait_deadline(soon()), Some(&1))),
        lazy("LazyLock::wait_timeout", |lazy| assert_eq!(LazyLock::wait_timeout(lazy, LONG), Some(&1))),
        lazy("LazyLock::wait_deadline", |lazy| assert_eq!(LazyLock::wait_deadline(lazy, soon()), Some(&1))),
    ]
}

/// Both ends of a channel.
type Ends = (Sender<i32>, Receiver<i32>);

fn messages() -> Vec<Row> {
    let received = |name, wait| row(name, bounded(1), wait, |(sender, _): &Ends| sender.send(1).unwrap());
    let sent = |name, wait| {
        let (sender, receiver) = bounded(1);
        sender.send(0).unwrap();
        row(name, (sender, receiver), wait, |(_, receiver): &Ends| assert_eq!(receiver.recv(), Ok(0)))
    };
    vec![
        received("recv", |(_, receiver)| assert_eq!(receiver.recv(), Ok(1))),
        received("recv_timeout", |(_, receiver)| assert_eq!(receiver.recv_timeout(LONG), Ok(1))),
        received("recv_deadline", |(_, receiver)| assert_eq!(receiver.recv_deadline(soon()), Ok(1))),
        sent("send", |(sender, _)| sender.send(1).unwrap()),
        sent("send_timeout", |(sender, _)| sender.send_timeout(1, LONG).unwrap()),
        sent("send_deadline", |(sender, _)| sender.send_deadline(1, soon()).unwrap()),
        sent("reserve", |(sender, _)| sender.reserve().unwrap().send(1).unwrap()),
        sent("reserve_timeout", |(sender, _)| sender.reserve_timeout(LONG).unwrap().send(1).unwrap()),
        row(
            "recv of a rendezvous",
            bounded(0),
            |(_, receiver): &Ends| assert_eq!(receiver.recv(), Ok(1)),
            |(sender, _)| sender.send(1).unwrap(),
        ),
        row(
            "send of a rendezvous",
            bounded(0),
            |(sender, _): &Ends| sender.send(1).unwrap(),
            |(_, receiver)| assert_eq!(receiver.recv(), Ok(1)),
        ),
        row(
            "mpsc recv",
            mpsc::channel(),
            |(_, receiver): &Ends| assert_eq!(receiver.recv(), Ok(1)),
            |(sender, _)| sender.send(1).unwrap(),
        ),
        received("select!", |(sender, receiver)| {
            let (full, event, permits) = (bounded::<i32>(0), AutoResetEvent::new(false), Semaphore::new(0));
            select! {
                recv(receiver) -> value => assert_eq!(value, Ok(1)),
                send(full.0, 2) -> _ => unreachable!("nobody receives"),
                wait(event) => unreachable!("it was not set"),
                wait(permits) => unreachable!("there are none"),
            }
            assert!(sender.is_empty());
        }),
        received("Select::ready_timeout", |(_, receiver)| {
            let mut select = Select::new();
            select.recv(receiver);
            assert_eq!(select.ready_timeout(LONG), Ok(0));
        }),
    ]
}

/// Two halves of which each is used up, or changed, by its use.
type Halves<S, R> = (Mutex<Option<S>>, Mutex<Option<R>>);

fn halves<S, R>((sender, receiver): (S, R)) -> Halves<S, R> {
    (Mutex::new(Some(sender)), Mutex::new(Some(receiver)))
}

/// Takes one of them.
fn taken<T>(half: &Mutex<Option<T>>) -> T {
    half.lock().take().expect("it is used once")
}

fn news() -> Vec<Row> {
    type Once = Halves<oneshot::Sender<i32>, oneshot::Receiver<i32>>;
    type Broadcast = Halves<broadcast::Sender<i32>, broadcast::Receiver<i32>>;
    type Watch = Halves<watch::Sender<i32>, watch::Receiver<i32>>;
    let once =
        |name, wait| row(name, halves(oneshot::channel()), wait, |(to, _): &Once| taken(to).send(1).unwrap());
    let broadcast = |name, wait| {
        row(name, halves(broadcast::channel(2)), wait, |(to, _): &Broadcast| _ = taken(to).send(1).unwrap())
    };
    let watch =
        |name, wait| row(name, halves(watch::channel(0)), wait, |(to, _): &Watch| taken(to).send(1).unwrap());
    vec![
        once("oneshot recv", |(_, from)| assert_eq!(taken(from).recv(), Ok(1))),
        once("oneshot recv_timeout", |(_, from)| assert_eq!(taken(from).recv_timeout(LONG), Ok(1))),
        row(
            "oneshot closed",
            halves(oneshot::channel()),
            |(to, _): &Once| taken(to).closed(),
            |(_, from)| drop(taken(from)),
        ),
        broadcast("broadcast recv", |(_, from)| assert_eq!(taken(from).recv(), Ok(1))),
        broadcast("broadcast recv_timeout", |(_, from)| assert_eq!(taken(from).recv_timeout(LONG), Ok(1))),
        row(
            "broadcast closed",
            halves(broadcast::channel(2)),
            |(to, _): &Broadcast| taken(to).closed(),
            |(_, from)| drop(taken(from)),
        ),
        watch("watch changed", |(_, from)| assert_eq!(taken(from).changed(), Ok(()))),
        watch("watch changed_timeout", |(_, from)| assert_eq!(taken(from).changed_timeout(LONG), Ok(()))),
        watch("watch wait_for", |(_, from)| {
            assert!(taken(from).wait_for(|value| *value == 1).is_ok());
        }),
        row(
            "watch closed",
            halves(watch::channel(0)),
            |(to, _): &Watch| taken(to).closed(),
            |(_, from)| drop(taken(from)),
        ),
    ]
}

fn conditions() -> Vec<Row> {
    type Flag = (Mutex<bool>, Condvar);
    let flag = |name, wait| {
        row(name, Flag::default(), wait, |(raised, changed)| {
            *raised.lock() = true;
            assert!(changed.notify_one());
        })
    };
    vec![
        flag("Condvar::wait", |(raised, changed)| {
            let mut raised = raised.lock();
            changed.wait(&mut raised);
            assert!(*raised);
        }),
        flag("Condvar::wait_for", |(raised, changed)| {
            assert!(!changed.wait_for(&mut raised.lock(), LONG).timed_out());
        }),
        flag("Condvar::wait_until", |(raised, changed)| {
            assert!(!changed.wait_until(&mut raised.lock(), soon()).timed_out());
        }),
        flag("Condvar::wait_while", |(raised, changed)| {
            changed.wait_while(&mut raised.lock(), |raised| !*raised);
        }),
        flag("Condvar::wait_while_for", |(raised, changed)| {
            assert!(!changed.wait_while_for(&mut raised.lock(), |raised| !*raised, LONG).timed_out());
        }),
        flag("Condvar::wait_while_until", |(raised, changed)| {
            assert!(!changed.wait_while_until(&mut raised.lock(), |raised| !*raised, soon()).timed_out());
        }),
    ]
}

fn rows() -> impl Iterator<Item = Row> {
    [events, groups, permits, values, messages, news, conditions].into_iter().flat_map(|rows| rows())
}

#[test]
fn a_cancel_ends_each_of_them() {
    in_tasks(|| {
        let waiting: Vec<_> = rows().map(|row| (row.name, fibra::spawn(row.wait))).collect();
        pause();
        for (name, task) in waiting {
            assert!(!task.is_finished(), "{name}");
            task.cancel();
            assert!(task.join().unwrap_err().is_cancelled(), "{name}");
        }
    });
}

#[test]
fn a_deadline_around_ends_each_of_them_in_tasks_and_in_a_plain_thread() {
    everywhere(|| {
        for row in rows() {
            assert!(fibra::timeout(SHORT, &row.wait).is_err(), "{}", row.name);
        }
    });
}

/// One that waits in a shield, and tells when it is through.
struct Shielded {
    name: &'static str,
    task: JoinHandle<()>,
    notify: Box<dyn Fn()>,
    passed: Arc<AtomicBool>,
}

impl Shielded {
    fn start(row: Row, is_cancelled_before: bool) -> Shielded {
        let passed = Arc::new(AtomicBool::new(false));
        let passes = Arc::clone(&passed);
        let task = fibra::spawn(move || {
            if is_cancelled_before {
                task::current().cancel();
            }
            task::shield(row.wait);
            passes.store(true, Ordering::SeqCst);
            wait::cancellation_point();
        });
        Shielded { name: row.name, task, notify: row.notify, passed }
    }

    fn assert_waits(&self) {
        assert!(!self.task.is_finished() && !self.passed.load(Ordering::SeqCst), "{}", self.name);
    }
}

#[test]
fn in_a_shield_each_of_them_waits_for_its_notification() {
    for is_cancelled_before in [false, true] {
        in_tasks(|| {
            let waiting: Vec<_> = rows().map(|row| Shielded::start(row, is_cancelled_before)).collect();
            pause();
            waiting.iter().for_each(|shielded| shielded.task.cancel());
            pause();
            for shielded in waiting {
                shielded.assert_waits();
                (shielded.notify)();
                assert!(shielded.task.join().unwrap_err().is_cancelled(), "{}", shielded.name);
                assert!(shielded.passed.load(Ordering::SeqCst), "{}", shielded.name);
            }
        });
    }
}

/// A wait whose time is short. True if it ran out.
type RunsOut = (&'static str, fn() -> bool);

#[test]
fn in_a_shield_their_own_time_ends_them() {
    let run_out: [RunsOut; 10] = [
        ("AutoResetEvent", || !AutoResetEvent::new(false).wait_timeout(SHORT)),
        ("ManualResetEvent", || !ManualResetEvent::new(false).wait_timeout(SHORT)),
        ("CountdownEvent", || !CountdownEvent::new(1).wait_timeout(SHORT)),
        ("WaitGroup", || {
            let group = WaitGroup::new();
            let _busy = group.worker();
            !group.wait_timeout(SHORT)
        }),
        ("Barrier", || Barrier::new(2).wait_timeout(SHORT).is_none()),
        ("Semaphore", || Semaphore::new(0).acquire_timeout(SHORT).is_none()),
        ("Once", || !Once::new().wait_timeout(SHORT)),
        ("OnceCell", || OnceCell::<i32>::new().wait_timeout(SHORT).is_none()),
        ("Condvar::wait_for", || Condvar::new().wait_for(&mut Mutex::new(()).lock(), SHORT).timed_out()),
        ("Condvar::wait_while_for", || {
            Condvar::new().wait_while_for(&mut Mutex::new(()).lock(), |()| true, SHORT).timed_out()
        }),
    ];
    in_tasks(|| {
        for (name, runs_out) in run_out {
            let cancelled = fibra::spawn(move || {
                task::current().cancel();
                task::shield(|| {
                    let begun = Instant::now();
                    assert!(runs_out() && begun.elapsed() >= SHORT, "{name}");
                });
                wait::cancellation_point();
            });
            assert!(cancelled.join().unwrap_err().is_cancelled(), "{name}");
        }
    });
}
