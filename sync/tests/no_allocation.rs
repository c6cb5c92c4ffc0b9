//! A wait allocates nothing: counted by an allocator of our own, so this test has a binary to itself.
//!
//! Each primitive has its rows in a table: two sides that wait for each other. A row is run in two tasks of one worker, in
//! two of two workers, in two threads, and in a task and a thread; the sides count what their thread allocates after some
//! rounds to warm up.

#[path = "common/channels.rs"]
mod channels;
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use channels::{make, ms, us};
use common::{give_way, guarded, runtime};
use fibra_runtime::{self as fibra, CancelToken, JoinHandle, Runtime, Task, task};
use fibra_sync::channel::{Receiver, Sender, bounded, never, tick};
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, OnceCell, ReentrantMutex,
    RwLock, Semaphore, WaitGroup, broadcast, oneshot, select, watch,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all of it is the system's allocator; the counter is a `const` thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // To give memory back is none: a worker that rests does so now and then.
        ALLOCATIONS.set(ALLOCATIONS.get() + usize::from(size > layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rounds before the count begins, and rounds that are counted.
const WARM_UP: usize = 100;
const COUNTED: usize = 100;

/// What one side does in one round.
type Side = Box<dyn Fn() + Send>;

/// Two sides that wait for each other, once or more in each round.
type Row = (&'static str, Side, Side);

fn row(name: &'static str, one: impl Fn() + Send + 'static, other: impl Fn() + Send + 'static) -> Row {
    (name, Box::new(one), Box::new(other))
}

/// As [`row`], with two sides of one thing.
fn shared<T: Send + Sync + 'static>(name: &'static str, thing: T, one: fn(&T), other: fn(&T)) -> Row {
    let here = Arc::new(thing);
    let there = Arc::clone(&here);
    row(name, move || one(&here), move || other(&there))
}

/// As [`shared`], with two sides that do the same.
fn both<T: Send + Sync + 'static>(name: &'static str, thing: T, side: fn(&T)) -> Row {
    shared(name, thing, side, side)
}

/// How often this thread allocates in the rounds that are counted. The side comes back: what it holds is not to end before
/// the other side has.
fn count(side: Side) -> (usize, Side) {
    // A thread gets what it waits with in its first wait. By then the other side may be through with its rounds.
    ManualResetEvent::new(false).wait_timeout(us(1));
    (0..WARM_UP).for_each(|_| side());
    let before = ALLOCATIONS.get();
    (0..COUNTED).for_each(|_| side());
    (ALLOCATIONS.get() - before, side)
}

/// Runs each row by `run`, which gives the counts of both sides.
fn assert_none(place: &str, rows: fn() -> Vec<Row>, run: impl Fn(Side, Side) -> [(usize, Side); 2]) {
    for (name, one, other) in rows() {
        let counts = run(one, other).map(|(count, _)| count);
        assert_eq!(counts, [0, 0], "{name}, in {place}");
    }
}

fn in_every_place(rows: fn() -> Vec<Row>) {
    guarded(|| {
        runtime(1).run(|| {
            assert_none("tasks of one worker", rows, |one, other| {
                // One count is of both sides; the other side begins later, and what its task's end allocates does not count.
                let other = fibra::spawn_local(move || {
                    (0..WARM_UP + COUNTED).for_each(|_| other());
                    other
                });
                let counted = count(one);
                [counted, (0, other.join().unwrap())]
            });
        });
    });
    guarded(|| {
        runtime(2).run(|| {
            assert_none("tasks of two workers", rows, |one, other| {
                let other = fibra::spawn(move || count(other));
                [count(one), other.join().unwrap()]
            });
        });
    });
    guarded(|| {
        assert_none("threads", rows, |one, other| {
            let other = thread::spawn(move || count(other));
            [count(one), other.join().unwrap()]
        });
    });
    guarded(|| {
        runtime(1).run(|| {
            assert_none("a task and a thread", rows, |one, other| {
                let other = fibra::spawn_blocking(move || count(other));
                [count(one), other.join().unwrap()]
            });
        });
    });
}

#[test]
fn events() {
    in_every_place(|| {
        let [ping, pong] = [(); 2].map(|()| Arc::new(ManualResetEvent::new(false)));
        let (there, back) = (Arc::clone(&ping), Arc::clone(&pong));
        let never = ManualResetEvent::new(false);
        vec![
            row(
                "manual-reset event",
                move || {
                    ping.set();
                    pong.wait();
                    pong.reset();
                },
                move || {
                    there.wait();
                    there.reset();
                    back.set();
                },
            ),
            row("manual-reset event, timed out", move || assert!(!never.wait_timeout(us(20))), || {}),
        ]
    });
}

/// Waits until it is `mine`, and makes it the other one's.
fn take_turns((turn, changed): &(Mutex<usize>, Condvar), mine: usize) {
    let mut turn = turn.lock();
    while *turn != mine {
        changed.wait(&mut turn);
    }
    *turn = 1 - mine;
    changed.notify_one();
}

#[test]
fn locks() {
    in_every_place(|| {
        vec![
            both("mutex", Mutex::new(0), |mutex| {
                let _guard = mutex.lock();
                give_way();
            }),
            both("mutex, timed", Mutex::new(0), |mutex| {
                let _guard = mutex.try_lock_for(us(50));
                give_way();
            }),
            both("reentrant mutex", ReentrantMutex::new(0), |mutex| {
                let _guards = (mutex.lock(), mutex.lock());
                give_way();
            }),
            shared("condvar", Default::default(), |pair| take_turns(pair, 0), |pair| take_turns(pair, 1)),
            both("condvar, timed out", <(Mutex<usize>, Condvar)>::default(), |(mutex, changed)| {
                assert!(changed.wait_for(&mut mutex.lock(), us(20)).timed_out());
            }),
            shared(
                "read-write lock",
                RwLock::new(0),
                |lock| {
                    let _guard = lock.read();
                    give_way();
                },
                |lock| {
                    let _guard = lock.write();
                    give_way();
                },
            ),
        ]
    });
}

#[test]
fn counts() {
    in_every_place(|| {
        vec![
            both("semaphore", Semaphore::new(1), |semaphore| {
                let _permit = semaphore.acquire();
                give_way();
            }),
            both("semaphore, many", Semaphore::new(3), |semaphore| {
                let _permits = semaphore.acquire_many(2);
                give_way();
            }),
            both("semaphore, timed out", Semaphore::new(0), |semaphore| {
                assert!(semaphore.acquire_timeout(us(20)).is_none());
            }),
            shared(
                "auto-reset event",
                [(); 2].map(|()| AutoResetEvent::new(false)),
                |[ping, pong]| {
                    ping.set();
                    pong.wait();
                },
                |[ping, pong]| {
                    ping.wait();
                    pong.set();
                },
            ),
            both("auto-reset event, timed out", AutoResetEvent::new(false), |event| {
                assert!(!event.wait_timeout(us(20)));
            }),
            both("countdown event, timed out", CountdownEvent::new(1), |event| {
                assert!(!event.wait_timeout(us(20)));
            }),
            both("wait group", WaitGroup::new(), |group| {
                let worker = group.worker();
                give_way();
                drop(worker);
                group.wait();
            }),
            both("barrier", Barrier::new(2), |barrier| _ = barrier.wait()),
        ]
    });
}

/// One for each round.
fn many<T>(make: impl Fn() -> T) -> Vec<T> {
    (0..WARM_UP + COUNTED).map(|_| make()).collect()
}

/// What a side takes one of in each round.
fn taken<T>(things: Vec<T>) -> impl Fn() -> T {
    let things = Cell::new(things);
    move || {
        let mut left = things.take();
        let thing = left.pop().expect("one for each round");
        things.set(left);
        thing
    }
}

/// Lends a side what it needs for itself.
fn lent<T>(thing: T, side: impl Fn(&mut T)) -> impl Fn() {
    let thing = Cell::new(Some(thing));
    move || {
        let mut own = thing.take().expect("it comes back");
        side(&mut own);
        thing.set(Some(own));
    }
}

#[test]
fn cells() {
    in_every_place(|| {
        let (senders, receivers): (Vec<_>, Vec<_>) = many(oneshot::channel::<usize>).into_iter().unzip();
        let (sender, receiver) = (taken(senders), taken(receivers));
        let (told, watcher) = watch::channel(0);
        let (answer, answers) = watch::channel(0);
        // A send puts its value into an allocation of its own; a wait does not.
        let (said, listener) = broadcast::channel::<()>(4);
        vec![
            both("once cell", (many(OnceCell::new), AtomicUsize::new(0)), |(cells, next)| {
                // Both come to a cell, in two steps of this number, and one of them waits for the other.
                let number = next.fetch_add(1, Ordering::Relaxed) / 2;
                cells[number].get_or_init(give_way);
            }),
            row("oneshot", move || sender().send(1).unwrap(), move || assert_eq!(receiver().recv(), Ok(1))),
            row(
                "watch",
                lent(answers, move |answers| {
                    told.send(1).unwrap();
                    answers.changed().unwrap();
                }),
                lent(watcher, move |watcher| {
                    watcher.changed().unwrap();
                    answer.send(1).unwrap();
                }),
            ),
            row(
                "broadcast, timed out",
                lent(listener, |listener| _ = listener.recv_timeout(us(20)).unwrap_err()),
                move || _ = said.len(),
            ),
        ]
    });
}

/// Sends and waits for the answer; receives and answers.
fn talk(name: &'static str, capacity: Option<usize>, several: usize) -> Row {
    let ((ask, asked), (answer, answers)) = (make(capacity), make(capacity));
    if capacity.is_none() {
        // The memory that it keeps. What it takes for more is for messages, not for a wait.
        for (sender, receiver) in [(&ask, &asked), (&answer, &answers)] {
            (0..50).for_each(|number| sender.send(number).unwrap());
            assert_eq!(receiver.try_iter().count(), 50);
        }
    }
    row(
        name,
        move || {
            (0..several).for_each(|number| ask.send(number).unwrap());
            assert_eq!(answers.recv(), Ok(several));
        },
        move || {
            (0..several).for_each(|number| assert_eq!(asked.recv(), Ok(number)));
            answer.send(several).unwrap();
        },
    )
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
        vec![
            talk("rendezvous", Some(0), 1),
            talk("rendezvous, several", Some(0), 5),
            talk("one slot", Some(1), 1),
            talk("one slot, several", Some(1), 5),
            talk("unbounded", None, 1),
            alone("send, timed out", 0, |sender, _| _ = sender.send_timeout((), us(20)).unwrap_err()),
            alone("send to a full one, timed out", 1, |sender, _| {
                _ = sender.send_timeout((), us(20)).unwrap_err();
            }),
            alone("recv, timed out", 0, |_, receiver| _ = receiver.recv_timeout(us(20)).unwrap_err()),
        ]
    });
}

#[test]
fn timers() {
    in_every_place(|| {
        let (ticks, never) = (tick(us(20)), never::<()>());
        vec![
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
                        default(ms(60_000)) => panic!("nobody came"),
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

/// Where the tasks run that the rows join: on none of the threads whose allocations count.
static ELSEWHERE: LazyLock<Runtime> = LazyLock::new(|| runtime(1));

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
                        wait(semaphore) -> permit => permit.forget(),
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
