//! A wait for a message, for an end of a channel, or by a select allocates nothing: counted as `common/allocations.rs` tells.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use crate::allocations::{
    COUNTED, Executor, Row, WARM_UP, both, in_every_place, lent, many, polled, row, shared, taken, turns,
    with_executor,
};
use crate::channels::{make, ms, us};
use crate::common::{give_way, runtime};
use fibra_runtime::{CancelToken, JoinHandle, Runtime, Task, task};
use fibra_sync::channel::{Receiver, Select, Sender, after, bounded, never, tick};
use fibra_sync::{
    AutoResetEvent, CountdownEvent, ManualResetEvent, Semaphore, WaitGroup, broadcast, oneshot, select, watch,
};

/// Where those run that the rows wait for beside each other: on none of the threads whose allocations count.
static ELSEWHERE: LazyLock<Runtime> = LazyLock::new(|| runtime(1));

/// The two ends in the other order.
fn swapped<A, B>((one, other): (A, B)) -> (B, A) {
    (other, one)
}

#[test]
fn oneshots() {
    in_every_place(|| {
        let (kept, early) = oneshot::channel::<usize>();
        let (kept_too, open) = oneshot::channel::<usize>();
        vec![
            turns(
                "oneshot",
                oneshot::channel,
                |sender| sender.send(1).unwrap(),
                |receiver| assert_eq!(receiver.recv(), Ok(1)),
            ),
            turns(
                "oneshot, in time",
                oneshot::channel,
                |sender| sender.send(1).unwrap(),
                |mut receiver| assert_eq!(receiver.recv_timeout(ms(60_000)), Ok(1)),
            ),
            turns(
                "oneshot, closed",
                || swapped(oneshot::channel::<usize>()),
                drop,
                |mut sender| sender.closed(),
            ),
            turns(
                "oneshot, closed in time",
                || swapped(oneshot::channel::<usize>()),
                drop,
                |mut sender| assert!(sender.closed_timeout(ms(60_000))),
            ),
            turns(
                "oneshot, polled",
                || with_executor(oneshot::channel()),
                |sender| sender.send(1).unwrap(),
                |(receiver, executor)| assert_eq!(executor.drive(receiver), Ok(1)),
            ),
            turns(
                "oneshot, closed, polled",
                || with_executor(swapped(oneshot::channel::<usize>())),
                drop,
                |(mut sender, executor)| executor.drive(sender.closed_async()),
            ),
            row(
                "oneshot, timed out",
                lent(early, |receiver| _ = receiver.recv_timeout(us(20)).unwrap_err()),
                move || assert!(!kept.is_closed()),
            ),
            row(
                "oneshot, open until timed out",
                lent(kept_too, |sender| assert!(!sender.closed_timeout(us(20)))),
                move || assert!(open.is_empty()),
            ),
        ]
    });
}

/// Receives what is sent elsewhere when asked for: a send puts its value into an allocation of its own, a wait does not.
fn heard(name: &'static str, hear: fn(&mut broadcast::Receiver<usize>, &Executor)) -> Row {
    let (sender, listener) = broadcast::channel(4);
    let asked = Arc::new(AutoResetEvent::new(false));
    let asks = Arc::clone(&asked);
    ELSEWHERE.spawn(move || {
        for _ in 0..WARM_UP + COUNTED {
            asked.wait();
            sender.send(1).unwrap();
        }
    });
    let listen = lent((listener, Executor::default()), move |(listener, executor)| {
        asks.set();
        hear(listener, executor);
    });
    row(name, listen, || {})
}

#[test]
fn broadcasts() {
    in_every_place(|| {
        let (said, listener) = broadcast::channel::<()>(4);
        let (open, kept) = broadcast::channel::<()>(4);
        vec![
            heard("broadcast", |listener, _| assert_eq!(listener.recv(), Ok(1))),
            heard("broadcast, in time", |listener, _| assert_eq!(listener.recv_timeout(ms(60_000)), Ok(1))),
            heard("broadcast, polled", |listener, executor| {
                assert_eq!(executor.drive(listener.recv_async()), Ok(1))
            }),
            turns(
                "broadcast, at its end",
                || broadcast::channel::<()>(1),
                drop,
                |mut listener| assert_eq!(listener.recv(), Err(broadcast::error::RecvError::Closed)),
            ),
            turns(
                "broadcast, closed",
                || swapped(broadcast::channel::<()>(1)),
                drop,
                |sender| sender.closed(),
            ),
            turns(
                "broadcast, closed in time",
                || swapped(broadcast::channel::<()>(1)),
                drop,
                |sender| assert!(sender.closed_timeout(ms(60_000))),
            ),
            turns(
                "broadcast, closed, polled",
                || with_executor(swapped(broadcast::channel::<()>(1))),
                drop,
                |(sender, executor)| executor.drive(sender.closed_async()),
            ),
            row(
                "broadcast, timed out",
                lent(listener, |listener| _ = listener.recv_timeout(us(20)).unwrap_err()),
                move || _ = said.len(),
            ),
            row(
                "broadcast, open until timed out",
                move || assert!(!open.closed_timeout(us(20))),
                move || assert!(!kept.is_closed()),
            ),
        ]
    });
}

/// Tells what comes next, and waits for the other one's answer.
fn watched(name: &'static str, wait: fn(&mut watch::Receiver<usize>, usize, &Executor)) -> Row {
    let ((told, watcher), (answer, answers)) = (watch::channel(0), watch::channel(0));
    row(
        name,
        lent((answers, 0, Executor::default()), move |(answers, last, executor)| {
            *last += 1;
            told.send(*last).unwrap();
            wait(answers, *last, executor);
        }),
        lent((watcher, 0, Executor::default()), move |(watcher, last, executor)| {
            *last += 1;
            wait(watcher, *last, executor);
            answer.send(*last).unwrap();
        }),
    )
}

#[test]
fn watches() {
    in_every_place(|| {
        let ((quiet, watcher), (open, kept)) = (watch::channel(0), watch::channel(0));
        vec![
            watched("watch", |watcher, _, _| watcher.changed().unwrap()),
            watched("watch, in time", |watcher, _, _| watcher.changed_timeout(ms(60_000)).unwrap()),
            watched("watch, polled", |watcher, _, executor| executor.drive(watcher.changed_async()).unwrap()),
            watched("watch, for a value", |watcher, wanted, _| {
                drop(watcher.wait_for(|seen| *seen == wanted).unwrap());
            }),
            watched("watch, for a value in time", |watcher, wanted, _| {
                drop(watcher.wait_for_timeout(|seen| *seen == wanted, ms(60_000)).unwrap());
            }),
            watched("watch, for a value, polled", |watcher, wanted, executor| {
                drop(executor.drive(watcher.wait_for_async(|seen| *seen == wanted)).unwrap());
            }),
            turns("watch, closed", || swapped(watch::channel(0)), drop, |sender| sender.closed()),
            turns(
                "watch, closed in time",
                || swapped(watch::channel(0)),
                drop,
                |sender| assert!(sender.closed_timeout(ms(60_000))),
            ),
            turns(
                "watch, closed, polled",
                || with_executor(swapped(watch::channel(0))),
                drop,
                |(sender, executor)| executor.drive(sender.closed_async()),
            ),
            row(
                "watch, timed out",
                lent(watcher, |watcher| {
                    watcher.changed_timeout(us(20)).unwrap_err();
                    assert!(watcher.wait_for_timeout(|seen| *seen == 1, us(20)).is_err());
                }),
                move || assert!(!quiet.is_closed()),
            ),
            row(
                "watch, open until timed out",
                move || assert!(!open.closed_timeout(us(20))),
                move || _ = kept.has_changed(),
            ),
        ]
    });
}

/// How the sides of a channel send and receive.
type Ways = (fn(&Sender<usize>, usize, &Executor), fn(&Receiver<usize>, &Executor) -> usize);

const UNTIMED: Ways =
    (|sender, number, _| sender.send(number).unwrap(), |receiver, _| receiver.recv().unwrap());
const IN_TIME: Ways = (
    |sender, number, _| sender.send_timeout(number, ms(60_000)).unwrap(),
    |receiver, _| receiver.recv_timeout(ms(60_000)).unwrap(),
);
const POLLED: Ways = (
    |sender, number, executor| executor.drive(sender.send_async(number)).unwrap(),
    |receiver, executor| executor.drive(receiver.recv_async()).unwrap(),
);

/// Sends and waits for the answer; receives and answers.
fn talk(name: String, capacity: Option<usize>, several: usize, (send, receive): Ways) -> Row {
    let (asks, answers) = (make(capacity), make(capacity));
    if capacity.is_none() {
        // The memory that it keeps. What it takes for more is for messages, not for a wait.
        for (sender, receiver) in [&asks, &answers] {
            (0..50).for_each(|number| sender.send(number).unwrap());
            assert_eq!(receiver.try_iter().count(), 50);
        }
    }
    polled(
        name,
        (asks, answers),
        move |((ask, _), (_, answers)), executor| {
            (0..several).for_each(|number| send(ask, number, executor));
            assert_eq!(receive(answers, executor), several);
        },
        move |((_, asked), (answer, _)), executor| {
            (0..several).for_each(|number| assert_eq!(receive(asked, executor), number));
            send(answer, several, executor);
        },
    )
}

/// [`talk`] by channels of every kind.
fn talks(way: &str, ways: Ways) -> impl Iterator<Item = Row> {
    let kinds = [
        ("rendezvous", Some(0), 1),
        ("rendezvous, several", Some(0), 5),
        ("one slot", Some(1), 1),
        ("one slot, several", Some(1), 5),
        ("unbounded", None, 1),
    ];
    kinds
        .into_iter()
        .map(move |(kind, capacity, several)| talk(format!("{kind}, {way}"), capacity, several, ways))
}

/// One side's waits end by time; the handles of the other side are kept.
fn alone(name: &'static str, capacity: usize, wait: fn(&Sender<()>, &Receiver<()>)) -> Row {
    let (sender, receiver) = bounded(capacity);
    (0..capacity).for_each(|_| sender.send(()).unwrap());
    row(name, move || wait(&sender, &receiver), || {})
}

#[test]
fn channels() {
    in_every_place(|| {
        let timed_out = [
            alone("send, timed out", 0, |sender, _| _ = sender.send_timeout((), us(20)).unwrap_err()),
            alone("send to a full one, timed out", 1, |sender, _| {
                _ = sender.send_timeout((), us(20)).unwrap_err();
            }),
            alone("recv, timed out", 0, |_, receiver| _ = receiver.recv_timeout(us(20)).unwrap_err()),
        ];
        talks("untimed", UNTIMED).chain(talks("in time", IN_TIME)).chain(timed_out).collect()
    });
}

#[test]
fn futures_of_channels() {
    in_every_place(|| talks("polled", POLLED).collect());
}

/// One for each round, the first to be due at the end.
fn in_turn() -> Vec<Receiver<Instant>> {
    (1..=WARM_UP + COUNTED).rev().map(|number| after(us(200 + 20 * number as u64))).collect()
}

#[test]
fn timers() {
    in_every_place(|| {
        let (ticks, never) = (tick(us(20)), never::<()>());
        vec![
            // Made in the first round, so that none is due long before.
            row(
                "after",
                lent(None, |afters| _ = afters.get_or_insert_with(in_turn).pop().unwrap().recv().unwrap()),
                || {},
            ),
            row("tick", move || _ = ticks.recv().unwrap(), || {}),
            row("never", move || _ = never.recv_timeout(us(20)).unwrap_err(), || {}),
        ]
    });
}

#[test]
fn selects() {
    in_every_place(|| {
        let ((s1, r1), (s2, r2)) = (make::<usize>(Some(0)), make::<usize>(Some(1)));
        let (kept, quiet) = make::<usize>(Some(0));
        let ((s3, r3), (s4, r4)) = (make::<usize>(Some(0)), make::<usize>(Some(0)));
        let (ticks, kept_too) = (tick(us(20)), kept.clone());
        vec![
            row(
                "receiving select",
                move || {
                    for _ in 0..2 {
                        select! {
                            recv(r1) -> received => assert_eq!(received, Ok(1)),
                            recv(r2) -> received => assert_eq!(received, Ok(2)),
                            recv(quiet) -> _ => panic!("quiet"),
                        }
                    }
                },
                move || {
                    s1.send(1).unwrap();
                    s2.send(2).unwrap();
                },
            ),
            row(
                "two selects",
                move || {
                    select! {
                        send(s3, 1) -> sent => sent.unwrap(),
                        send(s4, 2) -> sent => sent.unwrap(),
                    }
                },
                move || {
                    select! {
                        recv(r3) -> received => assert_eq!(received, Ok(1)),
                        recv(r4) -> received => assert_eq!(received, Ok(2)),
                        default(ms(60_000)) => panic!("no message came"),
                    }
                },
            ),
            row(
                "select, timed out",
                move || select! { send(kept, 1) -> _ => {}, default(us(20)) => {} },
                || {},
            ),
            row(
                "select of a timer",
                move || select! { send(kept_too, 1) -> _ => {}, recv(ticks) -> _ => {} },
                || {},
            ),
        ]
    });
}

/// What the operations of a dynamic select borrow.
fn lasting<T>(thing: T) -> &'static T {
    Box::leak(Box::new(thing))
}

#[test]
fn dynamic_selects() {
    in_every_place(|| {
        let [asks, answers, quiet] = [1, 0, 0].map(|capacity| lasting(make::<usize>(Some(capacity))));
        let never = lasting((CountdownEvent::new(1), CancelToken::new()));
        let beside = |add: &dyn Fn(&mut Select<'static>)| {
            let mut select = Select::new();
            add(&mut select);
            select.recv(&quiet.1);
            select.wait(&never.0);
            select.wait(&never.1);
            select
        };
        let asking = beside(&|select| _ = select.send(&asks.0));
        let answered = beside(&|select| _ = select.recv(&answers.1));
        let watching = || {
            let mut select = Select::new();
            select.recv(&quiet.1);
            select
        };
        let mut asked = watching();
        asked.recv(&asks.1);
        vec![
            row(
                "dynamic select",
                lent((asking, answered), |(asking, answered)| {
                    asking.select().send(&asks.0, 1).unwrap();
                    assert_eq!(answered.select_timeout(ms(60_000)).unwrap().recv(&answers.1), Ok(2));
                }),
                lent(asked, |asked| {
                    assert_eq!(asked.ready(), 1);
                    assert_eq!(asks.1.try_recv(), Ok(1));
                    answers.0.send(2).unwrap();
                }),
            ),
            row(
                "dynamic select, timed out",
                lent((beside(&|_| {}), watching()), |(select, watching)| {
                    select.select_timeout(us(20)).unwrap_err();
                    watching.ready_timeout(us(20)).unwrap_err();
                }),
                || {},
            ),
        ]
    });
}

/// Waits by a select for the end of a task that the other side ends.
fn joins(name: &'static str, join: impl Fn(JoinHandle<()>) + Send + 'static) -> Row {
    let handles = many(|| ELSEWHERE.spawn(task::park));
    // Kept until all rounds are over: a worker makes room for the memory of the tasks that it frees.
    let parked: Vec<Task> = handles.iter().rev().map(|handle| handle.task().clone()).collect();
    let (handle, next) = (taken(handles), Cell::new(0));
    row(
        name,
        move || join(handle()),
        move || {
            parked[next.get()].unpark();
            next.set(next.get() + 1);
        },
    )
}

#[test]
fn selects_of_events_permits_and_tokens() {
    in_every_place(|| {
        let quiet = || (CountdownEvent::new(1), CancelToken::new());
        vec![
            shared(
                "select of an event and of a permit",
                (AutoResetEvent::new(false), Semaphore::new(0), quiet()),
                |(event, semaphore, (count, token))| {
                    semaphore.add_permits(1);
                    select! {
                        wait(event) => {},
                        wait(count) => panic!("quiet"),
                        wait(token) => panic!("quiet"),
                    }
                },
                |(event, semaphore, (count, token))| {
                    select! {
                        wait(semaphore) -> permit => permit.unwrap().forget(),
                        wait(count) => panic!("quiet"),
                        wait(token) => panic!("quiet"),
                    }
                    event.set();
                },
            ),
            shared(
                "select of what stays, and of a count",
                ([(); 2].map(|()| ManualResetEvent::new(false)), WaitGroup::new(), quiet()),
                |([ping, pong], group, (count, _))| {
                    let worker = group.worker();
                    ping.set();
                    give_way();
                    drop(worker);
                    select! {
                        wait(pong) => pong.reset(),
                        wait(count) => panic!("quiet"),
                    }
                },
                |([ping, pong], group, (count, token))| {
                    select! {
                        wait(ping) => ping.reset(),
                        wait(token) => panic!("quiet"),
                    }
                    select! {
                        wait(group) => pong.set(),
                        wait(count) => panic!("quiet"),
                    }
                },
            ),
            both("select of waits, timed out", quiet(), |(count, token)| {
                select! {
                    wait(count) => panic!("quiet"),
                    wait(token) => panic!("quiet"),
                    default(us(20)) => {},
                }
            }),
        ]
    });
}

#[test]
fn selects_of_joins() {
    in_every_place(|| {
        vec![
            joins("select of a join", |mut handle| {
                select! {
                    join(handle) => handle.join().unwrap(),
                    recv(never::<()>()) -> _ => panic!("never"),
                }
            }),
            joins("select of a join and its result", |mut handle| {
                select! {
                    join(handle) -> result => result.unwrap(),
                    recv(never::<()>()) -> _ => panic!("never"),
                }
            }),
            row(
                "select of a join, timed out",
                lent(ELSEWHERE.spawn(task::park), |handle| {
                    select! {
                        join(*handle) => panic!("it is parked"),
                        default(us(20)) => {},
                    }
                }),
                || {},
            ),
        ]
    });
}
