//! Promises of `join`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::counted::Counted;
use crate::workers::on_workers;
use fibra_runtime::{self as fibra, join, task};

fn skynet(number: usize, size: usize) -> usize {
    if size == 1 {
        return number;
    }
    let part = size / 10;
    fn over(first: usize, count: usize, part: usize) -> usize {
        if count == 1 {
            return skynet(first, part);
        }
        let half = count / 2;
        let (a, b) = join(|| over(first, half, part), || over(first + half * part, count - half, part));
        a + b
    }
    over(number, 10, part)
}

#[test]
fn both_run_and_both_values_come_back() {
    on_workers(|| {
        let text = String::from("borrowed");
        let mut numbers = [1, 2];
        let [left, right] = &mut numbers;
        let values = join(
            || {
                *left += 10;
                text.len()
            },
            || {
                *right += 10;
                text.as_str()
            },
        );
        assert_eq!((values, numbers), ((8, "borrowed"), [11, 12]));
    });
}

#[test]
fn the_first_stays_on_its_task() {
    on_workers(|| {
        let local = Rc::new(1);
        let me = task::current();
        let (first, ()) = join(|| (Rc::clone(&local), task::current() == me), || ());
        assert!(first.1);
    });
}

#[test]
fn a_hundred_thousand_leaves_are_summed() {
    on_workers(|| {
        for _ in 0..2 {
            assert_eq!(skynet(0, 100_000), 4_999_950_000);
        }
    });
}

#[test]
fn a_hundred_thousand_tasks_of_scopes_are_summed() {
    fn sum(number: usize, size: usize) -> usize {
        if size == 1 {
            return number;
        }
        let part = size / 10;
        fibra::scope(|s| {
            let parts: Vec<_> =
                (0..10).map(|place| s.spawn(move || sum(number + place * part, part))).collect();
            parts.into_iter().map(|part| part.join().unwrap()).sum()
        })
    }
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| assert_eq!(sum(0, 100_000), 4_999_950_000));
    }
}

#[test]
fn leaves_that_wait_are_summed() {
    fn count(leaves: usize) -> usize {
        match leaves {
            1 => {
                fibra::sleep(Duration::from_millis(1));
                1
            }
            _ => {
                let (a, b) = join(|| count(leaves / 2), || count(leaves - leaves / 2));
                a + b
            }
        }
    }
    on_workers(|| assert_eq!(count(1000), 1000));
}

#[test]
fn the_first_may_wait_for_the_second() {
    on_workers(|| {
        let me = task::current();
        for _ in 0..100 {
            let told = AtomicBool::new(false);
            join(
                || {
                    while !told.load(Ordering::SeqCst) {
                        task::park();
                    }
                },
                || {
                    told.store(true, Ordering::SeqCst);
                    me.unpark();
                },
            );
        }
    });
}

#[test]
fn the_first_may_spin_for_the_second() {
    on_workers(|| {
        let told = AtomicBool::new(false);
        join(
            || {
                while !told.load(Ordering::SeqCst) {
                    fibra::yield_now();
                }
            },
            || told.store(true, Ordering::SeqCst),
        );
    });
}

#[test]
fn an_idle_worker_takes_the_second() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let begun = AtomicBool::new(false);
        join(
            || {
                while !begun.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            },
            || begun.store(true, Ordering::SeqCst),
        );
    });
}

#[test]
fn off_a_task_they_run_one_after_the_other() {
    let order = std::sync::Mutex::new(Vec::new());
    join(|| order.lock().unwrap().push(1), || order.lock().unwrap().push(2));
    assert_eq!(order.into_inner().unwrap(), [1, 2]);
}

/// Runs both, the second on another task where `wait` makes the first one wait, and says what came out.
fn outcome(
    wait: bool,
    first: impl FnOnce(),
    second: impl FnOnce() + Send,
) -> Result<((), ()), Box<dyn std::any::Any + Send>> {
    catch_unwind(AssertUnwindSafe(|| {
        join(
            || {
                if wait {
                    fibra::sleep(Duration::from_millis(2));
                }
                first();
            },
            second,
        )
    }))
}

#[test]
fn a_panic_comes_out_after_both_have_ended() {
    on_workers(|| {
        let alive = AtomicUsize::new(0);
        for wait in [false, true] {
            let counted = (Counted::new(&alive), Counted::new(&alive));
            let result = outcome(
                wait,
                move || {
                    let _counted = counted.0;
                    std::panic::resume_unwind(Box::new("first"))
                },
                move || {
                    let _counted = counted.1;
                    fibra::sleep(Duration::from_millis(4));
                    std::panic::resume_unwind(Box::new("second"))
                },
            );
            assert_eq!(alive.load(Ordering::SeqCst), 0);
            assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "first");
            let result = outcome(wait, || (), || std::panic::resume_unwind(Box::new("second")));
            assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "second");
        }
    });
}

#[test]
fn an_unstarted_second_closure_is_dropped_when_the_first_panics() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let alive = AtomicUsize::new(0);
        let counted = Counted::new(&alive);
        let ran = AtomicBool::new(false);
        let second = || {
            let _counted = &counted;
            ran.store(true, Ordering::SeqCst);
        };
        assert!(outcome(false, || std::panic::resume_unwind(Box::new(1)), second).is_err());
        assert!(!ran.into_inner());
        drop(counted);
        assert_eq!(alive.into_inner(), 0);
    });
}

#[test]
fn a_cancelled_task_takes_the_second_with_it() {
    on_workers(|| {
        static ALIVE: AtomicUsize = AtomicUsize::new(0);
        let parent = fibra::spawn(|| {
            join(
                || {
                    let _counted = Counted::new(&ALIVE);
                    task::park();
                },
                || {
                    let _counted = Counted::new(&ALIVE);
                    task::park();
                },
            )
        });
        while ALIVE.load(Ordering::SeqCst) < 2 {
            fibra::yield_now();
        }
        parent.task().cancel();
        assert!(parent.join().unwrap_err().is_cancelled());
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_task_that_waits_for_the_second_hears_a_cancellation() {
    on_workers(|| {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        BEGUN.store(false, Ordering::SeqCst);
        let parent = fibra::spawn(|| {
            join(
                || {
                    while !BEGUN.load(Ordering::SeqCst) {
                        fibra::sleep(Duration::from_micros(100));
                    }
                },
                || {
                    BEGUN.store(true, Ordering::SeqCst);
                    task::park();
                },
            )
        });
        while !BEGUN.load(Ordering::SeqCst) {
            fibra::yield_now();
        }
        fibra::sleep(Duration::from_micros(300));
        parent.task().cancel();
        assert!(parent.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_second_that_cancels_its_own_task_cancels_all() {
    on_workers(|| {
        for wait in [false, true] {
            let parent = fibra::spawn(move || {
                let second = || {
                    task::current().cancel();
                    fibra::yield_now();
                };
                _ = join(
                    || {
                        if wait {
                            fibra::sleep(Duration::from_millis(1));
                        }
                    },
                    second,
                );
                unreachable!("it was cancelled");
            });
            assert!(parent.join().unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn cancelled_at_any_moment_it_leaves_nothing_behind() {
    fn tree(depth: u32, alive: &AtomicUsize) {
        let _counted = Counted::new(alive);
        match depth {
            0 => fibra::yield_now(),
            _ => _ = join(|| tree(depth - 1, alive), || tree(depth - 1, alive)),
        }
    }
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    on_workers(|| {
        for round in 0..1000_u32 {
            let parent = fibra::spawn(|| tree(4, &ALIVE));
            for _ in 0..round % 7 {
                fibra::yield_now();
            }
            parent.task().cancel();
            _ = parent.join();
            assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
        }
    });
}

#[test]
fn the_end_of_the_runtime_ends_it() {
    let _guard = hang_guard();
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    for workers in [1, 2, 4] {
        for round in 0..20 {
            let runtime = runtime(workers);
            for _ in 0..10 {
                runtime.spawn(|| {
                    let wait = || {
                        let _counted = Counted::new(&ALIVE);
                        task::park();
                    };
                    join(wait, || join(wait, wait))
                });
            }
            std::thread::sleep(Duration::from_micros(100 * round));
            runtime.shutdown();
            assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
        }
    }
}

#[test]
fn over_the_limit_of_tasks_it_runs_in_turn() {
    let _guard = hang_guard();
    let runtime = fibra::Runtime::builder().workers(2).max_tasks(1).build().expect("a runtime");
    runtime.run(|| {
        let (a, b) = join(
            || {
                fibra::sleep(Duration::from_millis(2));
                1
            },
            || 2,
        );
        assert_eq!(a + b, 3);
    });
}

#[test]
fn it_may_be_called_while_a_panic_unwinds() {
    struct Joins<'a>(&'a AtomicUsize);
    impl Drop for Joins<'_> {
        fn drop(&mut self) {
            let (a, b) = join(
                || {
                    fibra::sleep(Duration::from_millis(1));
                    1
                },
                || 2,
            );
            self.0.fetch_add(a + b, Ordering::SeqCst);
        }
    }
    on_workers(|| {
        let sum = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let _joins = Joins(&sum);
            std::panic::resume_unwind(Box::new(1));
        }));
        assert!(result.is_err());
        assert_eq!(sum.into_inner(), 3);
    });
}

#[test]
fn join_that_waits_for_its_other_half_beside_a_busy_task_is_not_forgotten() {
    const PAIRS: usize = 60;
    let _guard = hang_guard();
    runtime(1).run(|| {
        let ended = AtomicUsize::new(0);
        fibra::scope(|scope| {
            // It always has something to run.
            scope.spawn(|| {
                while ended.load(Ordering::SeqCst) < PAIRS {
                    fibra::yield_now();
                }
            });
            for _ in 0..PAIRS {
                scope.spawn(|| {
                    let set = AtomicBool::new(false);
                    let waits = || {
                        while !set.load(Ordering::SeqCst) {
                            fibra::yield_now();
                        }
                    };
                    join(waits, || set.store(true, Ordering::SeqCst));
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
    });
}

#[test]
fn any_number_run_and_their_values_come_back_in_order() {
    on_workers(|| {
        let text = String::from("borrowed");
        let local = Rc::new(1);
        let mut numbers = [0; 2];
        let [left, right] = &mut numbers;
        let one = fibra::join!(|| Rc::clone(&local));
        let two = fibra::join!(|| Rc::clone(&local), || 2);
        let four = fibra::join!(|| *left += 1, || text.len(), move || *right += 2, || text.as_str(),);
        assert_eq!((one, two, four), ((Rc::new(1),), (Rc::new(1), 2), ((), 8, (), "borrowed")));
        assert_eq!(numbers, [1, 2]);
    });
}

#[test]
fn each_of_many_may_wait_for_a_later_one() {
    on_workers(|| {
        let ran = AtomicUsize::new(0);
        let wait_for = |count| {
            while ran.load(Ordering::SeqCst) < count {
                fibra::yield_now();
            }
            ran.fetch_add(1, Ordering::SeqCst)
        };
        let order = fibra::join!(|| wait_for(3), || wait_for(2), || wait_for(1), || wait_for(0));
        assert_eq!(order, (3, 2, 1, 0));
    });
}

#[test]
fn a_panic_of_one_of_many_is_resumed_after_all_have_ended() {
    on_workers(|| {
        let ended = AtomicUsize::new(0);
        let ends = || {
            fibra::yield_now();
            ended.fetch_add(1, Ordering::SeqCst);
        };
        let joined = catch_unwind(AssertUnwindSafe(|| {
            fibra::join!(ends, || std::panic::resume_unwind(Box::new("second")), ends)
        }));
        assert_eq!(joined.unwrap_err().downcast_ref(), Some(&"second"));
        assert!((1..=2).contains(&ended.load(Ordering::SeqCst)));
    });
}
