//! What a runtime counts: each number moves when its thing happens, and the sums agree.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use fibra_runtime::metrics::{Histogram, RuntimeMetrics, WorkerMetrics};
use fibra_runtime::{self as fibra, Handle, Runtime, Task, task};

/// Waits until a condition holds.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Keeps what a number counts while it is looked at.
type Kept = Box<dyn Any>;

/// A number, how many workers it needs, how it is read, and what makes it grow.
struct Row {
    name: &'static str,
    workers: usize,
    read: fn(&RuntimeMetrics) -> u64,
    cause: fn(&Handle) -> Kept,
}

/// Returns two ends; the closure for the receiver holds its thread until the sender is dropped.
fn held() -> (Sender<()>, impl FnOnce() + Send + 'static) {
    let (sender, receiver): (_, Receiver<()>) = channel();
    (sender, move || _ = receiver.recv())
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn done() -> Kept {
    Box::new(())
}

/// Runs a closure as a task to its end.
fn ran(handle: &Handle, f: impl FnOnce() + Send + 'static) -> Kept {
    _ = handle.spawn(f).join();
    done()
}

/// Spawns a task that sleeps until the runtime ends.
fn parked(handle: &Handle) -> Kept {
    Box::new(handle.spawn(task::park))
}

/// Holds the only worker.
fn worker_held(handle: &Handle) -> Kept {
    let (sender, wait) = held();
    let busy = handle.spawn(wait);
    until(|| handle.metrics().tasks.running == 1);
    Box::new((sender, busy))
}

/// Holds the only worker, with a ready task behind.
fn ready(handle: &Handle) -> Kept {
    let sleeper = handle.spawn(task::park);
    until(|| handle.metrics().tasks.suspended == 1);
    let (sender, wait) = held();
    let waker = sleeper.task().clone();
    let busy = handle.spawn(move || {
        waker.unpark();
        wait();
    });
    Box::new((sender, busy, sleeper))
}

/// Holds the only thread of a pool, with a job behind.
fn pool_held(handle: &Handle) -> Kept {
    let (sender, wait) = held();
    let first = handle.spawn_blocking(wait);
    let second = handle.spawn_blocking(|| ());
    Box::new((sender, first, second))
}

/// Wakes a sleeping task from a plain thread.
fn woken_from_outside(handle: &Handle) -> Kept {
    let sleeper = handle.spawn(task::park);
    until(|| handle.metrics().tasks.suspended == 1);
    sleeper.task().unpark();
    sleeper.join().unwrap();
    done()
}

/// Holds a worker until the other one has stolen from it.
fn stolen(handle: &Handle) -> Kept {
    let own = handle.clone();
    ran(handle, move || {
        let before = own.metrics().sum(|worker| worker.stolen);
        let children: Vec<_> = (0..100).map(|_| fibra::spawn(|| ())).collect();
        until(|| own.metrics().sum(|worker| worker.stolen) > before);
        children.into_iter().for_each(|child| child.join().unwrap());
    })
}

fn slept(handle: &Handle) -> Kept {
    ran(handle, || fibra::sleep(Duration::from_millis(1)))
}

/// Ends a task whose timer is due long before the only worker looks.
fn slept_late(handle: &Handle) -> Kept {
    ran(handle, || {
        let sleeper = fibra::spawn(|| fibra::sleep(Duration::from_millis(5)));
        // It runs, and sleeps.
        fibra::yield_now();
        thread::sleep(Duration::from_millis(20));
        sleeper.join().unwrap();
    })
}

const ROWS: &[Row] = &[
    Row { name: "uptime", workers: 1, read: |m| nanos(m.uptime), cause: |_| done() },
    Row { name: "spawned", workers: 1, read: |m| m.tasks.spawned, cause: parked },
    Row { name: "ended", workers: 1, read: |m| m.tasks.ended, cause: |h| ran(h, || ()) },
    Row { name: "alive", workers: 1, read: |m| m.tasks.alive, cause: parked },
    Row { name: "panicked", workers: 1, read: |m| m.tasks.panicked, cause: |h| ran(h, || panic!("counted")) },
    Row {
        name: "panicked on the pool",
        workers: 1,
        read: |m| m.tasks.panicked,
        cause: |h| Box::new(h.spawn_blocking(|| assert!(task::is_cancelled(), "counted")).join().is_err()),
    },
    Row {
        name: "cancelled",
        workers: 1,
        read: |m| m.tasks.cancelled,
        cause: |h| {
            let sleeper = h.spawn(task::park);
            sleeper.cancel();
            Box::new(sleeper.join().is_err())
        },
    },
    Row {
        name: "unstarted",
        workers: 1,
        read: |m| m.tasks.unstarted,
        cause: |h| {
            let held = worker_held(h);
            Box::new((held, h.spawn(|| ())))
        },
    },
    Row { name: "ready", workers: 1, read: |m| m.tasks.ready, cause: ready },
    Row { name: "running", workers: 1, read: |m| m.tasks.running, cause: worker_held },
    Row { name: "suspended", workers: 1, read: |m| m.tasks.suspended, cause: parked },
    Row { name: "blocking", workers: 1, read: |m| m.tasks.blocking, cause: pool_held },
    Row { name: "used stacks", workers: 1, read: |m| m.stacks.used, cause: parked },
    Row { name: "warm stacks", workers: 1, read: |m| m.stacks.warm, cause: |h| ran(h, || ()) },
    Row {
        name: "cold stacks",
        workers: 1,
        read: |m| m.stacks.cold,
        cause: |h| {
            (0..200)
                .map(|_| h.spawn(fibra::yield_now))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|t| t.join().unwrap());
            done()
        },
    },
    Row { name: "mapped stacks", workers: 1, read: |m| m.stacks.mapped, cause: parked },
    Row { name: "threads of the pool", workers: 1, read: |m| m.blocking.threads, cause: pool_held },
    Row {
        name: "idle threads of the pool",
        workers: 1,
        read: |m| m.blocking.idle,
        cause: |h| Box::new(h.spawn_blocking(|| ()).join().is_ok()),
    },
    Row { name: "queued jobs", workers: 1, read: |m| m.blocking.queued, cause: pool_held },
    Row { name: "taken jobs", workers: 1, read: |m| m.blocking.taken, cause: pool_held },
    Row { name: "waited jobs", workers: 1, read: |m| nanos(m.blocking.waited), cause: pool_held },
    Row {
        name: "calls",
        workers: 1,
        read: |m| m.calls.taken,
        cause: |h| ran(h, || drop(task::spawn_call(|| ()).join())),
    },
    Row {
        name: "global queue",
        workers: 1,
        read: |m| m.global_queue_depth,
        cause: |h| {
            let held = worker_held(h);
            Box::new((held, h.spawn(|| ())))
        },
    },
    Row { name: "spawned outside", workers: 1, read: |m| m.outside_spawned, cause: |h| ran(h, || ()) },
    Row {
        name: "stalls",
        workers: 1,
        read: |m| m.stalls,
        cause: |h| ran(h, || thread::sleep(Duration::from_millis(60))),
    },
    Row {
        name: "spawned on a worker",
        workers: 1,
        read: |m| m.sum(|w| w.spawned),
        cause: |h| ran(h, || fibra::spawn(|| ()).join().unwrap()),
    },
    Row { name: "ended on a worker", workers: 1, read: |m| m.sum(|w| w.ended), cause: |h| ran(h, || ()) },
    Row { name: "runs", workers: 1, read: |m| m.sum(|w| w.runs), cause: |h| ran(h, || ()) },
    Row {
        name: "busy",
        workers: 1,
        read: |m| nanos(m.sum(|w| w.busy)),
        cause: |h| ran(h, || thread::sleep(Duration::from_millis(1))),
    },
    Row { name: "idle", workers: 1, read: |m| nanos(m.sum(|w| w.idle)), cause: |_| done() },
    Row { name: "idle_periods", workers: 1, read: |m| m.sum(|w| w.idle_periods), cause: |h| ran(h, || ()) },
    Row { name: "parks", workers: 1, read: |m| m.sum(|w| w.parks), cause: slept },
    Row {
        name: "idle parks",
        workers: 1,
        read: |m| m.sum(|w| w.idle_parks),
        // Its cold stacks make the worker look again.
        cause: |h| ran(h, || ()),
    },
    Row { name: "polls", workers: 1, read: |m| m.sum(|w| w.polls), cause: slept },
    Row { name: "taken", workers: 1, read: |m| m.sum(|w| w.taken), cause: |h| ran(h, || ()) },
    Row { name: "steals", workers: 2, read: |m| m.sum(|w| w.steals), cause: stolen },
    Row { name: "stolen", workers: 2, read: |m| m.sum(|w| w.stolen), cause: stolen },
    Row { name: "arrivals", workers: 1, read: |m| m.sum(|w| w.arrivals), cause: woken_from_outside },
    Row {
        name: "budget yields",
        workers: 1,
        read: |m| m.sum(|w| w.budget_yields),
        cause: |h| ran(h, || (0..1000).for_each(|_| fibra::wait::charge())),
    },
    Row { name: "timers", workers: 1, read: |m| m.sum(|w| w.timers), cause: slept },
    Row {
        name: "lateness",
        workers: 1,
        read: |m| nanos(m.sum(|w| w.timer_lateness)) / 10_000_000,
        cause: slept_late,
    },
    Row {
        name: "armed timers",
        workers: 1,
        read: |m| m.sum(|w| w.armed_timers),
        cause: |h| Box::new(h.spawn(|| fibra::sleep(Duration::from_secs(3600)))),
    },
    Row {
        name: "ready on a worker",
        workers: 1,
        read: |m| m.sum(|w| w.ready),
        cause: |h| {
            let yields = || (0..1_000_000).for_each(|_| fibra::yield_now());
            Box::new((h.spawn(yields), h.spawn(yields)))
        },
    },
    Row {
        name: "queued",
        workers: 2,
        read: |m| m.sum(|w| w.queued),
        cause: |h| {
            let (sender, wait) = held();
            let (other, wait_too) = held();
            let first = h.spawn(wait_too);
            until(|| h.metrics().tasks.running == 1);
            let spawner = h.spawn(move || {
                let children: Vec<_> = (0..100).map(|_| fibra::spawn(|| ())).collect();
                wait();
                drop(children);
            });
            Box::new((sender, other, first, spawner))
        },
    },
    Row { name: "started", workers: 1, read: |m| m.sum(|w| w.started), cause: parked },
    Row {
        name: "awaiting_stack",
        workers: 1,
        read: |m| m.sum(|w| w.awaiting_stack),
        cause: |h| Box::new((0..200).map(|_| h.spawn(task::park)).collect::<Vec<_>>()),
    },
    Row { name: "stacks of a worker", workers: 1, read: |m| m.sum(|w| w.stacks), cause: |h| ran(h, || ()) },
];

#[test]
fn each_number_moves_when_its_thing_happens() {
    let _guard = hang_guard();
    for row in ROWS {
        eprintln!("{}", row.name);
        let builder = Runtime::builder().workers(row.workers).max_blocking_threads(1).max_stacks(100);
        let runtime = builder.stall_limit(Duration::from_millis(10)).on_stall(|_| ()).build().unwrap();
        let handle = runtime.handle();
        let before = (row.read)(&handle.metrics());
        let kept = (row.cause)(&handle);
        until(|| (row.read)(&handle.metrics()) > before);
        drop(kept);
    }
}

#[test]
fn a_task_that_sleeps_for_the_pool_is_blocking_as_in_dumps() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    let (sender, wait) = held();
    let sleeper = handle.spawn(|| fibra::unblock(wait));
    until(|| sleeper.task().state() == task::TaskState::Blocking);
    let tasks = handle.metrics().tasks;
    assert_eq!((tasks.alive, tasks.blocking, tasks.suspended, tasks.unstarted), (1, 1, 0, 0));
    assert!(handle.dump().to_string().contains("1 task, 0 running, 0 ready, 0 suspended, 1 blocking"));
    drop(sender);
    sleeper.join().unwrap();
}

#[test]
fn counters_add_up_with_census() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let handle = runtime.handle();
    let sleepers: Vec<_> = (0..100).map(|_| handle.spawn(task::park)).collect();
    let (sender, wait) = held();
    let blocking = handle.spawn_blocking(wait);
    runtime.run(|| {
        let children: Vec<_> = (0..1000).map(|_| fibra::spawn(fibra::yield_now)).collect();
        children.into_iter().for_each(|child| child.join().unwrap());
    });
    until(|| {
        let RuntimeMetrics { tasks, stacks, .. } = handle.metrics();
        (tasks.alive, tasks.suspended, tasks.blocking, stacks.used) == (101, 100, 1, 100)
    });
    let metrics = handle.metrics();
    let tasks = &metrics.tasks;
    assert_eq!(tasks.spawned, 1102);
    assert_eq!(tasks.spawned, tasks.ended + tasks.alive);
    assert_eq!(tasks.unstarted + tasks.ready + tasks.running + tasks.suspended + tasks.blocking, tasks.alive);
    assert_eq!(metrics.sum(|worker| worker.started), 100);
    assert_eq!(metrics.sum(|worker| worker.spawned) + metrics.outside_spawned, tasks.spawned);
    drop(sender);
    blocking.join().unwrap();
    sleepers.iter().for_each(|sleeper| sleeper.task().unpark());
    sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    until(|| handle.metrics().tasks.alive == 0);
    assert_eq!((handle.metrics().tasks.cancelled, handle.metrics().tasks.panicked), (0, 0));
}

#[test]
fn histograms_sum_to_the_counts() {
    let _guard = hang_guard();
    for every in [1, 8] {
        let runtime = Runtime::builder().workers(2).histograms(every).build().unwrap();
        let handle = runtime.handle();
        let sleeper = handle.spawn(|| (0..100).for_each(|_| task::park()));
        runtime.run(|| {
            let work = || {
                (0..10).for_each(|_| fibra::yield_now());
                fibra::sleep(Duration::from_micros(100));
                fibra::unblock(|| ());
            };
            let children: Vec<_> = (0..100).map(|_| fibra::spawn(work)).collect();
            children.into_iter().for_each(|child| child.join().unwrap());
        });
        while !sleeper.task().is_finished() {
            sleeper.task().unpark();
            thread::yield_now();
        }
        let counts = || {
            let metrics = handle.metrics();
            let count = |histogram: Option<Histogram>| histogram.unwrap().count();
            let runs = metrics.sum(|worker| worker.runs);
            (runs, count(metrics.run_time()), count(metrics.schedule_delay()))
        };
        until(|| handle.metrics().tasks.alive == 0 && counts() == counts());
        match every {
            1 => until(|| matches!(counts(), (runs, measured, waits) if runs == measured && runs == waits)),
            // Each worker measures the first of eight.
            _ => until(
                || matches!(counts(), (runs, measured, waits) if measured.abs_diff(runs / 8) <= 2 && waits > 0),
            ),
        }
    }
}

#[test]
fn a_task_that_waits_behind_another_shows_in_the_histograms() {
    let _guard = hang_guard();
    let longest = |wake: fn(&Handle, Task)| {
        let runtime = Runtime::builder().workers(1).histograms(1).build().unwrap();
        let handle = runtime.handle();
        let sleeper = handle.spawn(task::park);
        until(|| handle.metrics().tasks.suspended == 1);
        wake(&handle, sleeper.task().clone());
        sleeper.join().unwrap();
        let longest = |histogram: Option<Histogram>| histogram.unwrap().quantile(1.0);
        until(|| longest(handle.metrics().run_time()) >= Some(HELD));
        longest(handle.metrics().schedule_delay()).unwrap()
    };
    let by_a_task = longest(|handle, sleeper| {
        let wake = move || {
            sleeper.unpark();
            thread::sleep(HELD);
        };
        handle.spawn(wake).join().unwrap();
    });
    let by_a_thread = longest(|handle, sleeper| {
        let busy = worker_held(handle);
        sleeper.unpark();
        thread::sleep(HELD);
        drop(busy);
    });
    assert!(by_a_task >= HELD && by_a_thread >= HELD, "{by_a_task:?}, {by_a_thread:?}");
}

/// How long a task holds its worker.
const HELD: Duration = Duration::from_millis(30);

#[test]
fn without_histograms_there_are_none() {
    let metrics = runtime(1).metrics();
    assert!(metrics.run_time().is_none() && metrics.schedule_delay().is_none());
}

#[test]
fn the_counters_of_a_worker_tell_what_it_has_done() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    runtime.run(|| {
        let children: Vec<_> = (0..100).map(|_| fibra::spawn(fibra::yield_now)).collect();
        children.into_iter().for_each(|child| child.join().unwrap());
        (0..10).for_each(|_| fibra::sleep(Duration::from_millis(1)));
    });
    let count = |number: fn(&WorkerMetrics) -> u64| handle.metrics().sum(number);
    // Each child has run twice, and the first task once for each time that it slept.
    let runs = || count(|worker| worker.runs);
    until(|| count(|worker| worker.ended) == 101 && runs() >= 211 && count(|worker| worker.parks) > 0);
    assert!(runs() <= 311, "{}", runs());
    assert_eq!((count(|worker| worker.spawned), count(|worker| worker.timers)), (100, 10));
    assert!(count(|worker| worker.polls) >= count(|worker| worker.parks));
}

#[test]
fn a_worker_does_not_poll_until_a_timer_is_due() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    // Shorter than a poll.
    runtime.run(|| (0..1000).for_each(|_| fibra::sleep(Duration::from_micros(10))));
    let parks = runtime.metrics().sum(|worker| worker.parks);
    assert!(parks > 500, "{parks}");
}

#[test]
fn tasks_that_are_taken_back_do_not_count_as_taken() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    runtime.run(|| {
        let (spawned, taken) =
            (handle.metrics().sum(|worker| worker.spawned), handle.metrics().sum(|worker| worker.taken));
        // Each slice of the loop takes its helper back.
        fibra::parallel_for(0..100, |_| std::thread::sleep(Duration::from_micros(100)));
        assert!(handle.metrics().sum(|worker| worker.spawned) > spawned + 5);
        assert_eq!(handle.metrics().sum(|worker| worker.taken), taken);
    });
}

#[test]
fn wakes_from_afar_and_steals_are_counted() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let handle = runtime.handle();
    runtime.run(|| {
        let sleeper = fibra::spawn_local(|| (0..100).for_each(|_| task::park()));
        let arrivals = handle.metrics().sum(|worker| worker.arrivals);
        let waker = sleeper.task().clone();
        std::thread::spawn(move || {
            while !waker.is_finished() {
                waker.unpark();
                std::thread::yield_now();
            }
        });
        sleeper.join().unwrap();
        assert!(handle.metrics().sum(|worker| worker.arrivals) > arrivals);
        // This task holds its worker until the other one has stolen from it.
        let children: Vec<_> = (0..100).map(|_| fibra::spawn(|| ())).collect();
        until(|| handle.metrics().sum(|worker| worker.steals) > 0);
        children.into_iter().for_each(|child| child.join().unwrap());
    });
}
