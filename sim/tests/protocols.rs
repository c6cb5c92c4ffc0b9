//! fibra's own protocols under schedules with few changes of priority. They need `--cfg fibra_sim`; `ci/sim.sh` runs them.

#![cfg(fibra_sim)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fibra::sync::channel::{bounded, unbounded};
use fibra::sync::{
    AutoResetEvent, Barrier, Condvar, ManualResetEvent, Mutex, OnceCell, RwLock, Semaphore, oneshot, watch,
};
use fibra::{CancelToken, JoinHandle, scope, select, sleep, spawn, timeout};
use fibra_sim::check_pct;

const RUNS: u64 = 400;
const LONG: Duration = Duration::from_secs(3600);

/// Explores `program` with bugs of depth two and three in mind.
fn explore(program: impl Fn() + Copy + Send + Sync + 'static) {
    for depth in [2, 3] {
        check_pct(RUNS, depth, program);
    }
}

fn join_all<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    tasks.into_iter().map(|task| task.join().unwrap()).collect()
}

#[test]
fn a_mutex_excludes_and_forgets_nobody() {
    explore(|| {
        let total = Arc::new(Mutex::new(0));
        let adders = (0..3).map(|_| {
            let total = Arc::clone(&total);
            spawn(move || {
                for _ in 0..2 {
                    let mut total = total.lock();
                    let seen = *total;
                    fibra::yield_now();
                    *total = seen + 1;
                }
            })
        });
        join_all(adders.collect());
        assert_eq!(*total.lock(), 6);
    });
}

#[test]
fn a_timed_lock_is_taken_or_left_whole() {
    explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let tasks = (0..3).map(|n| {
            let lock = Arc::clone(&lock);
            spawn(move || match lock.try_lock_for(Duration::from_millis(n)) {
                Some(mut total) => {
                    sleep(Duration::from_millis(1));
                    *total += 1;
                    1
                }
                None => 0,
            })
        });
        let taken: u32 = join_all(tasks.collect()).into_iter().sum();
        assert_eq!(*lock.lock(), taken);
    });
}

#[test]
fn writers_exclude_readers() {
    explore(|| {
        let pair = Arc::new(RwLock::new((0, 0)));
        let tasks = (0..4).map(|n| {
            let pair = Arc::clone(&pair);
            spawn(move || {
                if n % 2 == 0 {
                    let mut pair = pair.write();
                    pair.0 += 1;
                    fibra::yield_now();
                    pair.1 += 1;
                } else {
                    let pair = pair.read();
                    assert_eq!(pair.0, pair.1);
                }
            })
        });
        join_all(tasks.collect());
        assert_eq!(*pair.read(), (2, 2));
    });
}

#[test]
fn a_condition_wakes_each_waiter() {
    explore(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let takers = (0..2).map(|_| {
            let shared = Arc::clone(&shared);
            spawn(move || {
                let mut items = shared.0.lock();
                while *items == 0 {
                    shared.1.wait(&mut items);
                }
                *items -= 1;
            })
        });
        let takers: Vec<_> = takers.collect();
        for _ in 0..2 {
            *shared.0.lock() += 1;
            shared.1.notify_one();
        }
        join_all(takers);
        assert_eq!(*shared.0.lock(), 0);
    });
}

#[test]
fn a_channel_delivers_each_message_once() {
    for room in [0, 1, 2] {
        check_pct(RUNS, 3, move || {
            let (sender, receiver) = bounded(room);
            let senders = (0..2).map(|n| {
                let sender = sender.clone();
                spawn(move || (0..2).for_each(|i| sender.send(10 * n + i).unwrap()))
            });
            let senders: Vec<_> = senders.collect();
            drop(sender);
            let receivers = (0..2).map(|_| {
                let receiver = receiver.clone();
                spawn(move || receiver.iter().collect::<Vec<_>>())
            });
            let mut all = join_all(receivers.collect()).concat();
            all.sort();
            assert_eq!(all, [0, 1, 10, 11]);
            join_all(senders);
        });
    }
}

#[test]
fn a_timed_receive_loses_no_message() {
    explore(|| {
        let (sender, receiver) = bounded(1);
        let sending = spawn(move || {
            for n in 0..3 {
                sleep(Duration::from_millis(1));
                sender.send(n).unwrap();
            }
        });
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.extend(receiver.recv_timeout(Duration::from_millis(1)).ok());
        }
        assert_eq!(seen, [0, 1, 2]);
        sending.join().unwrap();
    });
}

#[test]
fn a_select_takes_one_message_of_one_channel() {
    explore(|| {
        let (first, firsts) = bounded(1);
        let (second, seconds) = unbounded();
        let senders = vec![spawn(move || first.send(1).unwrap()), spawn(move || second.send(2).unwrap())];
        let takers = (0..2).map(|_| {
            let (firsts, seconds) = (firsts.clone(), seconds.clone());
            spawn(move || {
                select! {
                    recv(firsts) -> n => n.or_else(|_| seconds.recv()).unwrap(),
                    recv(seconds) -> n => n.or_else(|_| firsts.recv()).unwrap(),
                }
            })
        });
        let mut taken = join_all(takers.collect());
        taken.sort();
        assert_eq!(taken, [1, 2]);
        join_all(senders);
    });
}

#[test]
fn a_cancel_loses_no_message() {
    explore(|| {
        let (sender, receiver) = bounded(2);
        let other = receiver.clone();
        let taker = spawn(move || other.recv().ok());
        let sending = spawn(move || (0..2).for_each(|n| sender.send(n).unwrap()));
        taker.cancel();
        let mut seen: Vec<u32> = taker.join().ok().flatten().into_iter().collect();
        seen.extend(receiver.iter());
        assert_eq!(seen, [0, 1]);
        sending.join().unwrap();
    });
}

#[test]
fn a_cancelled_task_gives_its_permit_back() {
    explore(|| {
        let permits = Arc::new(Semaphore::new(1));
        let tasks = (0..3).map(|_| {
            let permits = Arc::clone(&permits);
            spawn(move || {
                let _permit = permits.acquire();
                sleep(Duration::from_millis(1));
            })
        });
        let tasks: Vec<_> = tasks.collect();
        tasks[1].cancel();
        for task in tasks {
            _ = task.join();
        }
        assert_eq!(permits.available_permits(), 1);
    });
}

#[test]
fn events_wake_all_or_one() {
    explore(|| {
        let (gate, turn) = (Arc::new(ManualResetEvent::new(false)), Arc::new(AutoResetEvent::new(true)));
        let inside = Arc::new(AtomicU32::new(0));
        let tasks = (0..3).map(|_| {
            let (gate, turn, inside) = (Arc::clone(&gate), Arc::clone(&turn), Arc::clone(&inside));
            spawn(move || {
                gate.wait();
                turn.wait();
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                fibra::yield_now();
                inside.fetch_sub(1, Ordering::Relaxed);
                turn.set();
            })
        });
        let tasks = tasks.collect();
        gate.set();
        join_all(tasks);
    });
}

#[test]
fn a_cell_is_initialized_once() {
    explore(|| {
        let (cell, runs) = (Arc::new(OnceCell::new()), Arc::new(AtomicU32::new(0)));
        let tasks = (0..3).map(|_| {
            let (cell, runs) = (Arc::clone(&cell), Arc::clone(&runs));
            spawn(move || {
                *cell.get_or_init(|| {
                    fibra::yield_now();
                    runs.fetch_add(1, Ordering::Relaxed)
                })
            })
        });
        assert_eq!(join_all(tasks.collect()), [0, 0, 0]);
    });
}

#[test]
fn a_barrier_has_one_leader() {
    explore(|| {
        let barrier = Arc::new(Barrier::new(3));
        let tasks = (0..3).map(|_| {
            let barrier = Arc::clone(&barrier);
            spawn(move || barrier.wait().is_leader())
        });
        assert_eq!(join_all(tasks.collect()).into_iter().filter(|leads| *leads).count(), 1);
    });
}

#[test]
fn one_value_and_its_absence_arrive() {
    explore(|| {
        let (sender, receiver) = oneshot::channel();
        let (dropped, nothing) = oneshot::channel::<u32>();
        let sending = spawn(move || sender.send(7));
        let dropping = spawn(move || drop(dropped));
        assert!(nothing.recv().is_err());
        assert_eq!(receiver.recv(), Ok(7));
        sending.join().unwrap().unwrap();
        dropping.join().unwrap();
    });
}

#[test]
fn a_watcher_sees_the_last_value() {
    explore(|| {
        let (sender, mut receiver) = watch::channel(0);
        let sending = spawn(move || (1..4).for_each(|n| sender.send(n).unwrap()));
        while receiver.changed().is_ok() {}
        assert_eq!(*receiver.borrow(), 3);
        sending.join().unwrap();
    });
}

#[test]
fn a_token_cancels_what_waits_and_what_comes() {
    explore(|| {
        let token = CancelToken::new();
        let waits = (0..2).map(|_| {
            let token = token.clone();
            spawn(move || token.scope(|| sleep(LONG)).is_err())
        });
        let waits: Vec<_> = waits.collect();
        token.cancel();
        assert_eq!(join_all(waits), [true, true]);
    });
}

#[test]
fn a_scope_ends_after_its_children() {
    explore(|| {
        let ended = AtomicU32::new(0);
        let end = timeout(Duration::from_millis(2), || {
            scope(|scope| {
                for n in 1..4 {
                    let ended = &ended;
                    scope.spawn(move || {
                        let _end = Ends(ended);
                        sleep(Duration::from_millis(n));
                    });
                }
            });
        });
        assert_eq!((end.is_err(), ended.load(Ordering::Relaxed)), (true, 3));
    });
}

/// Counts its drop.
struct Ends<'a>(&'a AtomicU32);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_end_of_the_runtime_unwinds_all_tasks() {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    static ENDED: AtomicU32 = AtomicU32::new(0);
    explore(|| {
        let (sender, receiver) = bounded::<u32>(0);
        for n in 0..3 {
            let (sender, receiver) = (sender.clone(), receiver.clone());
            drop(spawn(move || {
                STARTED.fetch_add(1, Ordering::Relaxed);
                let _end = Ends(&ENDED);
                match n {
                    0 => sleep(LONG),
                    1 => drop(sender.send(1)),
                    _ => drop(receiver.recv()),
                }
            }));
        }
        fibra::yield_now();
    });
    assert_eq!(STARTED.load(Ordering::Relaxed), ENDED.load(Ordering::Relaxed));
}
