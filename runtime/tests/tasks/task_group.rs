//! Promises of `TaskGroup`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::counted::Counted;
use crate::rest::until_others_sleep;
use crate::workers::on_workers;
use fibra_runtime::structured::{GroupError, StillRunning};
use fibra_runtime::{self as fibra, TaskGroup, task};

fn wait_for_none(alive: &AtomicUsize) {
    while alive.load(Ordering::SeqCst) > 0 {
        fibra::sleep(Duration::from_micros(100));
    }
}

fn _is_send_and_sync(group: TaskGroup<std::cell::Cell<u8>>) -> impl Send + Sync {
    group
}

#[test]
fn results_come_in_the_order_of_the_ends() {
    on_workers(|| {
        let group = TaskGroup::new();
        let tasks = [0, 1, 2].map(|n| {
            group.spawn(move || {
                task::park();
                n
            })
        });
        assert_eq!(group.len(), 3);
        for n in [1, 2, 0] {
            tasks[n].unpark();
            // It has ended: no other task is awake.
            until_others_sleep();
        }
        let ended: Vec<usize> = group.join_all().into_iter().map(Result::unwrap).collect();
        assert_eq!(ended, [1, 2, 0]);
        assert!(group.is_empty() && group.join_next().is_none());
    });
}

#[test]
fn into_results_has_the_order_of_the_spawns() {
    on_workers(|| {
        let group = TaskGroup::new();
        for n in 0..100_u32 {
            group.spawn(move || {
                (0..(n * 37) % 11).for_each(|_| fibra::yield_now());
                n
            });
        }
        let results: Vec<u32> = group.into_results().into_iter().map(Result::unwrap).collect();
        assert!(results.into_iter().eq(0..100));
    });
}

#[test]
fn no_end_is_lost() {
    on_workers(|| {
        let group = TaskGroup::new();
        let mut sum = 0;
        for round in 0..200 {
            for n in 0..50_usize {
                group.spawn(move || {
                    if n % 3 == 0 {
                        fibra::yield_now();
                    }
                    n
                });
                if (n + round) % 7 == 0 {
                    sum += group.try_join_next().map_or(0, Result::unwrap);
                }
            }
            while let Some(result) = group.join_next() {
                sum += result.unwrap();
            }
        }
        assert_eq!(sum, 200 * (0..50).sum::<usize>());
    });
}

#[test]
fn several_may_spawn_and_join_at_once() {
    on_workers(|| {
        let group = Arc::new(TaskGroup::with_limit(8));
        let joined = AtomicUsize::new(0);
        fibra::scope(|s| {
            let spawners: Vec<_> = (0..4)
                .map(|_| {
                    s.spawn(|| {
                        for _ in 0..500 {
                            group.spawn(fibra::yield_now);
                        }
                    })
                })
                .collect();
            let join = || {
                while group.join_next().is_some() {
                    joined.fetch_add(1, Ordering::SeqCst);
                }
            };
            (0..3).for_each(|_| drop(s.spawn(join)));
            spawners.into_iter().for_each(|spawner| spawner.join().unwrap());
            join();
        });
        assert_eq!(joined.into_inner(), 2000);
    });
}

#[test]
fn threads_may_join() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    for _ in 0..200 {
        let group = runtime.run(|| {
            let group = TaskGroup::new();
            (0..10).for_each(|n| _ = group.spawn(move || n));
            group
        });
        let mut results: Vec<i32> = group.join_all().into_iter().map(Result::unwrap).collect();
        results.sort_unstable();
        assert!(results.into_iter().eq(0..10));
    }
}

#[test]
fn a_member_may_add_members() {
    fn count_down(group: &Arc<TaskGroup<u32>>, n: u32) {
        let inner = Arc::clone(group);
        group.spawn(move || {
            if n > 0 {
                count_down(&inner, n - 1);
            }
            n
        });
    }
    on_workers(|| {
        let group = Arc::new(TaskGroup::new());
        count_down(&group, 100);
        let mut sum = 0;
        while let Some(result) = group.join_next() {
            sum += result.unwrap();
        }
        assert_eq!(sum, 5050);
    });
}

#[test]
fn no_more_run_than_the_limit_allows() {
    on_workers(|| {
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let group = TaskGroup::with_limit(3);
        for _ in 0..300 {
            let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
            group.spawn(move || {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                fibra::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
            });
        }
        assert_eq!(group.join_all().len(), 300);
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
    });
}

#[test]
fn a_cancelled_spawner_leaves_its_place_to_others() {
    on_workers(|| {
        let group = Arc::new(TaskGroup::with_limit(1));
        for round in 0..2000 {
            let shared = Arc::clone(&group);
            let spawner = fibra::spawn(move || {
                shared.spawn(fibra::yield_now);
                shared.spawn(fibra::yield_now);
            });
            (0..round % 5).for_each(|_| fibra::yield_now());
            spawner.task().cancel();
            _ = spawner.join();
            // Were a place lost, this would hang.
            group.spawn(|| ());
            while let Some(result) = group.join_next() {
                result.unwrap();
            }
        }
    });
}

#[test]
fn a_cancelled_joiner_leaves_the_result_to_others() {
    on_workers(|| {
        let group = Arc::new(TaskGroup::new());
        for round in 0..2000 {
            let taken = Arc::new(AtomicUsize::new(0));
            let (shared, counter) = (Arc::clone(&group), Arc::clone(&taken));
            let joiner = fibra::spawn(move || {
                if shared.join_next().is_some() {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
            });
            group.spawn(move || (0..round % 3).for_each(|_| fibra::yield_now()));
            (0..round % 5).for_each(|_| fibra::yield_now());
            joiner.task().cancel();
            _ = joiner.join();
            let rest = group.join_all().len();
            assert_eq!(taken.load(Ordering::SeqCst) + rest, 1);
        }
    });
}

#[test]
fn a_join_may_run_out_of_time() {
    on_workers(|| {
        let group = TaskGroup::new();
        assert!(group.join_next_timeout(Duration::ZERO).unwrap().is_none());
        let waits = group.spawn(task::park);
        assert!(matches!(group.join_next_timeout(Duration::from_millis(1)), Err(StillRunning)));
        waits.unpark();
        assert!(group.join_next_timeout(Duration::from_secs(100)).unwrap().unwrap().is_ok());
        assert!(group.is_empty());
    });
}

#[test]
fn an_end_and_a_timeout_at_once_lose_nothing() {
    on_workers(|| {
        let group = TaskGroup::new();
        for _ in 0..1000 {
            group.spawn(|| fibra::sleep(Duration::from_micros(50)));
            let mut joined = 0;
            while !group.is_empty() {
                joined +=
                    usize::from(matches!(group.join_next_timeout(Duration::from_micros(50)), Ok(Some(_))));
            }
            assert_eq!(joined, 1);
        }
    });
}

#[test]
fn panics_and_cancellations_are_errors_of_the_task() {
    on_workers(|| {
        let group = TaskGroup::new();
        group.spawn_named("bad", || panic!("on purpose"));
        let error = group.join_next().unwrap().unwrap_err();
        assert!(error.is_panic() && error.to_string().contains("'bad'"));
        group.spawn(task::park);
        group.spawn(task::park);
        fibra::yield_now();
        group.cancel_all();
        assert!(group.join_all().iter().all(|result| result.as_ref().unwrap_err().is_cancelled()));
        group.spawn(|| ());
        assert!(group.join_next().unwrap().is_ok());
    });
}

#[test]
fn the_first_failure_cancels_the_rest_and_is_returned() {
    on_workers(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let group = TaskGroup::new();
        for n in 0..10 {
            let counted = Counted::new(Arc::clone(&alive));
            group.spawn(move || {
                let _counted = counted;
                match n {
                    3 => Err("three"),
                    _ => {
                        task::park();
                        Ok(n)
                    }
                }
            });
        }
        assert!(matches!(group.try_join_all(), Err(GroupError::Failed("three"))));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert!(group.is_empty());
        (0..10).for_each(|n| _ = group.spawn(move || Ok(n)));
        assert!(group.try_join_all().unwrap().into_iter().eq(0..10));
        group.spawn(|| panic!("on purpose"));
        assert!(matches!(group.try_join_all(), Err(GroupError::Ended(error)) if error.is_panic()));
    });
}

#[test]
fn a_dropped_group_cancels_and_does_not_wait() {
    on_workers(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let (begun, stuck) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let group = TaskGroup::new();
        for _ in 0..10 {
            let (begun, stuck) = (Arc::clone(&begun), Arc::clone(&stuck));
            let counted = Counted::new(Arc::clone(&alive));
            group.spawn(move || {
                let _counted = counted;
                begun.fetch_add(1, Ordering::SeqCst);
                // Goes on in spite of its cancellation, until the group has gone.
                while stuck.load(Ordering::SeqCst) == 0 {
                    _ = std::panic::catch_unwind(|| fibra::sleep(Duration::from_micros(100)));
                }
                Counted::new(Arc::new(AtomicUsize::new(0)))
            });
        }
        // One that has not begun would never enter its body.
        while begun.load(Ordering::SeqCst) < 10 {
            fibra::yield_now();
        }
        drop(group);
        assert_eq!(alive.load(Ordering::SeqCst), 10);
        stuck.store(1, Ordering::SeqCst);
        wait_for_none(&alive);
    });
}

#[test]
fn a_group_dropped_at_any_moment_leaks_nothing() {
    on_workers(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        for round in 0..1000 {
            let group = TaskGroup::new();
            for n in 0..5 {
                let counted = Counted::new(Arc::clone(&alive));
                group.spawn(move || {
                    (0..n).for_each(|_| fibra::yield_now());
                    counted
                });
            }
            (0..round % 7).for_each(|_| fibra::yield_now());
            if round % 2 == 0 {
                _ = group.try_join_next();
            }
            drop(group);
        }
        wait_for_none(&alive);
    });
}

#[test]
fn a_forgotten_group_runs_on() {
    on_workers(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let group = TaskGroup::new();
        let counted = Counted::new(Arc::clone(&alive));
        group.spawn(move || {
            fibra::sleep(Duration::from_millis(1));
            drop(counted);
        });
        std::mem::forget(group);
        wait_for_none(&alive);
    });
}

#[test]
fn the_end_of_the_runtime_ends_its_tasks() {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let group = runtime.run(|| {
            let group = TaskGroup::new();
            (0..10).for_each(|_| _ = group.spawn(task::park));
            group
        });
        let joiner = thread::spawn(move || group.join_all());
        runtime.shutdown();
        let results = joiner.join().unwrap();
        assert!(
            results.len() == 10 && results.iter().all(|result| result.as_ref().unwrap_err().is_cancelled())
        );
    }
}

#[test]
fn over_the_limit_of_tasks_the_result_says_so() {
    let _guard = hang_guard();
    let runtime = fibra::Runtime::builder().workers(1).max_tasks(1).build().expect("a runtime");
    runtime.run(|| {
        let group = TaskGroup::new();
        group.spawn(|| ());
        assert!(group.join_next().unwrap().unwrap_err().is_not_started());
    });
}

#[test]
fn off_a_runtime_a_spawn_panics_and_takes_no_place() {
    let group = TaskGroup::with_limit(1);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| group.spawn(|| ()))).is_err());
    assert!(group.is_empty() && group.join_next().is_none());
}

thread_local! {
    static CLONES_PANIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

struct Fragile;

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!CLONES_PANIC.get(), "not to be cloned now");
        Fragile
    }
}

fibra_runtime::task_local! {
    #[inherit]
    static FRAGILE: Fragile = Fragile;
}

#[test]
fn a_spawn_that_unwinds_gives_its_place_back() {
    fibra_runtime::Runtime::builder().workers(1).build().unwrap().run(|| {
        FRAGILE.with(|_| ());
        let group = fibra_runtime::TaskGroup::with_limit(1);
        CLONES_PANIC.set(true);
        let spawn = std::panic::AssertUnwindSafe(|| group.spawn(|| 1));
        assert!(std::panic::catch_unwind(spawn).is_err());
        CLONES_PANIC.set(false);
        assert!(group.is_empty() && group.join_next().is_none());
        group.spawn(|| 2);
        assert_eq!(group.join_next().unwrap().unwrap(), 2);
    });
}

#[test]
fn a_task_may_be_joined_and_gone_before_its_spawn_returns() {
    const ROUNDS: usize = 20_000;
    let _guard = hang_guard();
    runtime(2).run(|| {
        let group = Arc::new(TaskGroup::new());
        let theirs = Arc::clone(&group);
        let spawner = fibra::spawn_blocking(move || {
            let ids: Vec<u64> = (0..ROUNDS).map(|_| theirs.spawn(|| ()).id()).collect();
            assert!(ids.is_sorted_by(|a, b| a < b));
        });
        let mut joined = 0;
        while joined < ROUNDS {
            match group.try_join_next() {
                Some(result) => {
                    result.unwrap();
                    joined += 1;
                }
                None => fibra::yield_now(),
            }
        }
        spawner.join().unwrap();
    });
}

#[test]
fn local_members_own_what_is_not_send_and_stay_here() {
    on_workers(|| {
        let (group, here) = (TaskGroup::with_limit(2), thread::current().id());
        let met = std::rc::Rc::new(std::cell::Cell::new(0_usize));
        for _ in 0..10 {
            let met = std::rc::Rc::clone(&met);
            group.spawn_local(move || {
                fibra::yield_now();
                met.set(met.get() + 1);
                thread::current().id() == here
            });
        }
        assert!(group.join_all().into_iter().all(Result::unwrap));
        assert_eq!((met.get(), std::rc::Rc::strong_count(&met)), (10, 1));
    });
    let group = TaskGroup::<()>::new();
    assert!(catch_unwind(AssertUnwindSafe(|| group.spawn_local(|| ()))).is_err(), "off a worker");
    assert!(group.is_empty());
}

#[test]
fn a_result_comes_with_its_task() {
    on_workers(|| {
        let group = TaskGroup::new();
        let spawned: Vec<_> = (0..10).map(|n| group.spawn(move || n)).collect();
        while let Some((task, result)) = group.join_next_with_task() {
            assert_eq!(task, spawned[result.unwrap()]);
            assert!(task.is_finished());
        }
    });
}
