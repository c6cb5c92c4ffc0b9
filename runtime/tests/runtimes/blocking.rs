//! Promises of the blocking pool: `unblock` and `spawn_blocking`.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, Runtime, task};

#[test]
fn unblock_borrows_from_the_task_and_returns_a_value() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let mut text = String::from("a");
        let length = fibra::unblock(|| {
            text.push('b');
            text.len()
        });
        assert_eq!((length, text.as_str()), (2, "ab"));
    });
}

#[test]
fn unblock_runs_on_a_thread_of_the_pool_while_others_run() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).thread_name("kitchen").build().unwrap();
    runtime.run(|| {
        let (ran, home) = (Arc::new(AtomicBool::new(false)), thread::current().id());
        let run = Arc::clone(&ran);
        let beside = fibra::spawn(move || run.store(true, Ordering::SeqCst));
        fibra::unblock(|| {
            assert_ne!(thread::current().id(), home);
            assert_eq!(thread::current().name(), Some("kitchen-blocking"));
            assert!(task::try_current().is_none());
            while !ran.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        assert_eq!(thread::current().id(), home);
        beside.join().unwrap();
    });
}

#[test]
fn a_panic_of_an_unblocked_closure_goes_on_in_the_task() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let mut local = vec![1, 2, 3];
            let thrown = panic::catch_unwind(AssertUnwindSafe(|| {
                fibra::unblock(|| {
                    local.push(4);
                    panic::resume_unwind(Box::new(local[2]))
                });
            }));
            assert_eq!(*thrown.unwrap_err().downcast::<i32>().unwrap(), 3);
            assert_eq!(local, [1, 2, 3, 4], "what was lent is back, with what was done to it");
            assert_eq!(fibra::unblock(|| 5), 5, "the thread of the pool is as good as before");
        });
    }
}

#[test]
fn unblock_on_a_plain_thread_runs_in_place() {
    let here = thread::current().id();
    assert_eq!(fibra::unblock(|| thread::current().id()), here);
}

#[test]
fn unblock_inside_an_unblock_runs_in_place() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_blocking_threads(1).build().unwrap();
    runtime.run(|| {
        fibra::unblock(|| {
            let outer = thread::current().id();
            assert_eq!(fibra::unblock(|| thread::current().id()), outer);
        });
    });
}

#[test]
fn a_blocking_task_gives_its_value_its_panic_and_its_name() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        assert_eq!(fibra::spawn_blocking(|| 6).join().unwrap(), 6);
        let error =
            fibra::spawn_blocking(|| panic::resume_unwind(Box::new(1_u8))).join().map(drop).unwrap_err();
        assert!(error.is_panic());
        let named = task::Builder::new().name("reader").spawn_blocking(|| ());
        assert_eq!(named.task().name(), Some("reader"));
        named.join().unwrap();
    });
}

#[test]
fn a_blocking_task_may_spawn_and_wait_for_tasks() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let blocking = fibra::spawn_blocking(|| {
            let handle = fibra::Handle::current();
            let sum = fibra::spawn(|| 1).join().unwrap() + handle.spawn(|| 2).join().unwrap();
            sum + handle.run(|| 3) + fibra::spawn_blocking(|| 4).join().unwrap()
        });
        assert_eq!(blocking.join().unwrap(), 10);
    });
}

#[test]
fn a_task_wakes_a_blocking_task_that_waits_as_a_thread() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        for _ in 0..50 {
            let slow = fibra::spawn(|| fibra::sleep(Duration::from_micros(200)));
            fibra::spawn_blocking(move || slow.join().unwrap()).join().unwrap();
        }
    });
}

#[test]
fn the_pool_grows_to_its_limit_and_not_beyond() {
    let _guard = hang_guard();
    const LIMIT: usize = 4;
    let runtime = Runtime::builder().workers(1).max_blocking_threads(LIMIT).build().unwrap();
    runtime.run(|| {
        let (all, together) =
            (Arc::new(Barrier::new(LIMIT)), Arc::new((AtomicUsize::new(0), AtomicUsize::new(0))));
        let tasks: Vec<_> = (0..5 * LIMIT)
            .map(|_| {
                let (all, together) = (Arc::clone(&all), Arc::clone(&together));
                fibra::spawn_blocking(move || {
                    let now = together.0.fetch_add(1, Ordering::SeqCst) + 1;
                    together.1.fetch_max(now, Ordering::SeqCst);
                    // Passed only if as many closures as allowed do run at once.
                    all.wait();
                    together.0.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(together.1.load(Ordering::SeqCst), LIMIT);
    });
}

#[test]
fn jobs_beyond_the_limit_wait_in_line() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(2).max_blocking_threads(1).build().unwrap();
    runtime.run(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let order = Arc::clone(&order);
                fibra::spawn_blocking(move || order.lock().unwrap().push(number))
            })
            .collect();
        fibra::unblock(|| order.lock().unwrap().push(100));
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(*order.lock().unwrap(), (0..=100).collect::<Vec<_>>());
    });
}

/// Counts the threads of this process with names that begin so.
/// What the system says of the threads that are called so, each by its name and its state.
fn stats_of(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&format!("({name}"))).collect()
}

fn threads_called(name: &str) -> usize {
    stats_of(name).len()
}

#[test]
fn an_idle_thread_is_kept_for_a_while_and_then_goes() {
    let _guard = hang_guard();
    let builder = Runtime::builder().workers(1).thread_name("kp");
    let runtime = builder.blocking_keep_alive(Duration::from_millis(50)).build().unwrap();
    runtime.run(|| {
        fibra::unblock(|| ());
        while threads_called("kp-blocking") > 0 {
            fibra::sleep(Duration::from_millis(5));
        }
        assert_eq!(fibra::unblock(|| threads_called("kp-blocking")), 1, "and comes back when it is needed");
    });
}

#[test]
fn one_thread_serves_jobs_that_come_one_by_one() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).thread_name("one").build().unwrap();
    runtime.run(|| {
        for _ in 0..20 {
            fibra::unblock(|| ());
            // Its thread has said that it is idle before it sleeps.
            while !stats_of("one-blocking").iter().all(|stat| stat.contains(") S ")) {
                fibra::sleep(Duration::from_micros(100));
            }
        }
        let threads = threads_called("one-blocking");
        assert!((1..=3).contains(&threads), "{threads} threads for one job at a time");
    });
}

#[test]
fn a_keep_alive_of_nothing_loses_no_job() {
    let _guard = hang_guard();
    let builder = Runtime::builder().workers(2).max_blocking_threads(3);
    let runtime = builder.blocking_keep_alive(Duration::ZERO).build().unwrap();
    runtime.run(|| {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                fibra::spawn(|| {
                    for round in 0..200_u32 {
                        assert_eq!(fibra::unblock(|| round), round);
                        if round % 16 == 0 {
                            fibra::sleep(Duration::from_micros(100));
                        }
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn a_keep_alive_of_more_than_the_clock_can_tell_is_for_ever() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).blocking_keep_alive(Duration::MAX).build().unwrap();
    runtime.run(|| {
        fibra::unblock(|| ());
        fibra::sleep(Duration::from_millis(2));
        fibra::unblock(|| ());
    });
}

#[test]
fn many_tasks_unblock_at_once() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(2).max_blocking_threads(8).build().unwrap();
    runtime.run(|| {
        let tasks: Vec<_> = (0..100_u64)
            .map(|number| {
                fibra::spawn(move || {
                    let mut values = [number; 16];
                    for _ in 0..20 {
                        fibra::unblock(|| values.iter_mut().for_each(|value| *value += 1));
                    }
                    values.iter().sum::<u64>()
                })
            })
            .collect();
        for (number, task) in (0..).zip(tasks) {
            assert_eq!(task.join().unwrap(), 16 * (number + 20));
        }
    });
}

#[test]
fn closures_that_wait_for_one_another_on_std_primitives_get_threads_each() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let pair = Arc::new((Mutex::new(0), Condvar::new()));
        let tasks: Vec<_> = (0..16)
            .map(|number| {
                let pair = Arc::clone(&pair);
                fibra::spawn_blocking(move || {
                    let turn = pair.0.lock().unwrap();
                    // The last of them goes first.
                    let mut turn = pair.1.wait_while(turn, |turn| *turn != 15 - number).unwrap();
                    *turn += 1;
                    pair.1.notify_all();
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn a_blocking_task_cancelled_before_it_starts_never_runs() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_blocking_threads(1).build().unwrap();
    runtime.run(|| {
        let hold = Arc::new(AtomicBool::new(true));
        let held = Arc::clone(&hold);
        let hog = fibra::spawn_blocking(move || {
            while held.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_micros(100));
            }
        });
        let entered = Arc::new(AtomicBool::new(false));
        let enter = Arc::clone(&entered);
        let queued = fibra::spawn_blocking(move || enter.store(true, Ordering::SeqCst));
        queued.task().cancel();
        hold.store(false, Ordering::SeqCst);
        assert!(queued.join().unwrap_err().is_cancelled());
        hog.join().unwrap();
        assert!(!entered.load(Ordering::SeqCst));
    });
}

/// Queues so many closures behind one that holds the only thread, and cancels them in an order of its own.
fn withdraw(count: usize) -> Duration {
    let runtime = Runtime::builder().workers(1).max_blocking_threads(1).build().unwrap();
    runtime.run(|| {
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let hog = fibra::spawn_blocking(move || _ = gate.recv());
        let mut tasks: Vec<_> = (0..count).map(|_| fibra::spawn(|| fibra::unblock(|| ()))).collect();
        fibra::yield_now();
        let begin = std::time::Instant::now();
        // A stride without a common divisor visits all of them.
        (0..count).for_each(|step| tasks[step * 61_803 % count].task().cancel());
        tasks.drain(..).for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
        let elapsed = begin.elapsed();
        drop(open);
        hog.join().unwrap();
        elapsed
    })
}

#[test]
fn closures_are_withdrawn_in_any_order_in_a_time_that_grows_with_their_number() {
    let _guard = hang_guard();
    let (few, many) = (withdraw(4_000), withdraw(64_000));
    // Sixteen times as many take sixteen times as long; with a search of the queue it would be 256 times.
    assert!(many < 80 * few, "{few:?} and {many:?}");
}
