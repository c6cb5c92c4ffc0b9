//! Deadlines over blocks of code.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::at_end::AtEnd;
use crate::common::{hang_guard, runtime};
use crate::paused::{TICK, is_about, paused, taken};
use fibra_runtime::time::{interval_at, now};
use fibra_runtime::{self as fibra, CancelToken, Elapsed, TaskGroup, task, timeout, timeout_at};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

fn in_task(workers: usize, promise: impl FnOnce() + Send) {
    let _guard = hang_guard();
    runtime(workers).run(promise);
}

#[test]
fn call_that_returns_in_time_keeps_its_value() {
    in_task(1, || {
        assert_eq!(timeout(LONG, || 7), Ok(7));
        assert_eq!(timeout(Duration::MAX, || fibra::spawn(|| 8).join().unwrap()), Ok(8));
        assert_eq!(timeout(Duration::ZERO, || 9), Ok(9), "nothing is interrupted that does not wait");
    });
}

#[test]
fn a_sleep_is_cut_short_and_destructors_run() {
    struct Count<'a>(&'a Cell<u32>);
    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(thread::panicking());
        }
    }
    paused(|| {
        let dropped = Cell::new(0);
        let spent = taken(|| {
            let late = timeout(SHORT, || {
                let _first = Count(&dropped);
                let _second = Count(&dropped);
                fibra::sleep(LONG);
            });
            assert!(late.is_err());
        });
        assert!(is_about(spent, SHORT), "{spent:?}");
        assert_eq!(dropped.get(), 2);
        assert!(!thread::panicking());
        fibra::sleep(Duration::from_micros(1));
    });
}

#[test]
fn joins_parks_and_loops_of_yields_are_cut_short() {
    in_task(2, || {
        assert!(timeout(SHORT, || fibra::spawn(|| fibra::sleep(LONG)).join()).is_err());
        assert!(timeout(SHORT, task::park).is_err());
        assert!(
            timeout(SHORT, || loop {
                fibra::yield_now();
            })
            .is_err()
        );
    });
}

#[test]
fn a_blocking_call_that_has_started_runs_to_its_end() {
    in_task(1, || {
        let (borrowed, started) = (Cell::new(0), AtomicU32::new(0));
        let late = timeout(SHORT * 5, || {
            let value = fibra::unblock(|| {
                started.store(7, Ordering::SeqCst);
                thread::sleep(SHORT * 10);
                7
            });
            borrowed.set(value);
            fibra::yield_now();
        });
        assert!(late.is_err());
        // On a busy machine the deadline may come before the start.
        assert_eq!(borrowed.get(), started.load(Ordering::SeqCst));
    });
}

#[test]
fn a_park_keeps_its_token_for_the_next() {
    paused(|| {
        assert!(timeout(SHORT, task::park).is_err());
        task::current().unpark();
        task::park();
    });
}

#[test]
fn the_earliest_of_nested_deadlines_counts() {
    paused(|| {
        let begin = now();
        let inner = timeout(LONG, || timeout(SHORT, || fibra::sleep(LONG)));
        assert!(matches!(inner, Ok(Err(Elapsed { .. }))));
        assert!(is_about(now() - begin, SHORT));
        let reached = Cell::new(false);
        let outer = timeout(SHORT, || {
            _ = timeout(LONG, || fibra::sleep(LONG));
            reached.set(true);
        });
        assert!(outer.is_err() && !reached.get(), "the unwinding goes through the inner one");
        let equal = now() + SHORT;
        let both = timeout_at(equal, || timeout_at(equal, || fibra::sleep(LONG)));
        assert!(both.is_err(), "of two that have passed the outer one is raised");
    });
}

#[test]
fn an_operation_with_its_own_deadline_tells_it_from_the_enclosing_one() {
    paused(|| {
        let own = taken(|| assert_eq!(timeout(LONG, || task::park_timeout(SHORT)), Ok(false)));
        let around = taken(|| assert!(timeout(SHORT, || task::park_timeout(LONG)).is_err()));
        assert!(is_about(own, SHORT) && is_about(around, SHORT));
    });
}

#[test]
fn nothing_outlives_its_timeout() {
    in_task(1, || {
        for _ in 0..100 {
            assert!(timeout(Duration::from_micros(50), || fibra::sleep(LONG)).is_err());
            assert_eq!(timeout(Duration::from_micros(50), || 1), Ok(1));
            fibra::sleep(Duration::from_micros(100));
        }
    });
}

#[test]
fn other_tasks_do_not_inherit() {
    in_task(2, || {
        let child = timeout(LONG, || fibra::spawn(|| fibra::sleep(SHORT * 2))).unwrap();
        let spawned = timeout(SHORT, || {
            let child = fibra::spawn(|| fibra::sleep(LONG));
            child.join()
        });
        assert!(spawned.is_err());
        child.join().unwrap();
    });
}

#[test]
fn children_of_a_scope_end_with_the_timeout_around_it() {
    in_task(2, || {
        let unwound = AtomicU32::new(0);
        struct Count<'a>(&'a AtomicU32);
        impl Drop for Count<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let late = timeout(SHORT, || {
            fibra::scope(|s| {
                for _ in 0..10 {
                    // Also counted if its task is not entered any more.
                    let count = Count(&unwound);
                    s.spawn(move || {
                        fibra::sleep(LONG);
                        drop(count);
                    });
                }
            });
        });
        assert!(late.is_err());
        assert_eq!(unwound.load(Ordering::SeqCst), 10);
    });
}

#[test]
fn a_panic_goes_through() {
    in_task(1, || {
        let caught = catch_unwind(AssertUnwindSafe(|| timeout(LONG, || panic!("mine"))));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"mine"));
        timeout(LONG, || fibra::sleep(Duration::from_micros(1))).unwrap();
    });
}

#[test]
fn swallowed_unwinding_comes_again() {
    paused(|| {
        let rounds = Cell::new(0);
        let late = timeout(SHORT, || {
            for _ in 0..5 {
                _ = catch_unwind(AssertUnwindSafe(|| fibra::sleep(LONG)));
                rounds.set(rounds.get() + 1);
            }
            fibra::sleep(LONG);
        });
        assert!(late.is_err());
        assert_eq!(rounds.get(), 5);
        let stubborn = timeout(SHORT, || {
            _ = catch_unwind(AssertUnwindSafe(|| fibra::sleep(LONG)));
            7
        });
        assert_eq!(stubborn, Ok(7), "what returns has returned");
    });
}

#[test]
fn a_swallowed_inner_timeout_does_not_hide_the_outer_one() {
    paused(|| {
        let begin = now();
        let late = timeout(SHORT * 2, || {
            timeout(SHORT, || {
                _ = catch_unwind(AssertUnwindSafe(|| fibra::sleep(LONG)));
                fibra::sleep(SHORT * 4);
            })
            .unwrap_or(());
            fibra::sleep(LONG);
        });
        assert!(late.is_err() && is_about(now() - begin, SHORT * 2));
    });
}

#[test]
fn the_cancel_of_the_task_goes_through_its_timeouts() {
    in_task(1, || {
        let sleeper = fibra::spawn(|| timeout(LONG, || timeout(LONG, || fibra::sleep(LONG))));
        fibra::yield_now();
        sleeper.cancel();
        assert!(sleeper.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_shield_keeps_out_what_is_around_it_and_not_what_is_inside() {
    paused(|| {
        let finished = Cell::new(false);
        let late = timeout(SHORT, || {
            task::shield(|| {
                fibra::sleep(SHORT * 2);
                assert!(!task::is_cancelled());
                assert!(timeout(SHORT, || fibra::sleep(LONG)).is_err());
                finished.set(true);
            });
            assert!(task::is_cancelled());
            task::check_cancelled();
            unreachable!();
        });
        assert!(late.is_err() && finished.get());
    });
}

#[test]
fn a_cancelled_task_sleeps_on_inside_a_shield() {
    paused(|| {
        let finished = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&finished);
        let started = task::current();
        let sleeper = fibra::spawn(move || {
            started.unpark();
            task::shield(|| {
                fibra::sleep(SHORT);
                count.fetch_add(1, Ordering::SeqCst);
                // Open for the token inside, so that the cancel of the task rouses it for nothing.
                let token = fibra::CancelToken::new();
                token.scope(|| fibra::sleep(SHORT)).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
            });
            fibra::sleep(LONG);
        });
        task::park();
        sleeper.cancel();
        assert!(sleeper.join().unwrap_err().is_cancelled());
        assert_eq!(finished.load(Ordering::SeqCst), 2);
    });
}

/// Lets the time run out, and goes on.
fn swallow_the_end() {
    assert!(catch_unwind(|| fibra::sleep(LONG)).is_err());
}

#[test]
fn a_deadline_that_was_swallowed_does_not_take_what_ends_code_around_it() {
    paused(|| {
        let (stop, went_on) = (CancelToken::new(), Cell::new(false));
        let ended = stop.scope(|| {
            _ = timeout(SHORT, || {
                swallow_the_end();
                stop.cancel();
                fibra::sleep(LONG);
            });
            went_on.set(true);
        });
        assert!(ended.is_err() && !went_on.get());
    });
}

#[test]
fn a_deadline_that_was_swallowed_does_not_take_the_cancellation_of_its_task() {
    paused(|| {
        let cancelled = fibra::spawn(|| {
            _ = timeout(SHORT, || {
                swallow_the_end();
                task::current().cancel();
                fibra::sleep(LONG);
            });
        });
        assert!(cancelled.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn the_end_by_a_deadline_may_be_caught_and_raised_again_where_it_is_in_force_and_is_a_panic_elsewhere() {
    paused(|| {
        assert!(timeout(SHORT, || resume_unwind(catch_unwind(|| fibra::sleep(LONG)).unwrap_err())).is_err());
        let kept = timeout(SHORT, || catch_unwind(|| fibra::sleep(LONG)).unwrap_err()).unwrap();
        let raised = fibra::spawn(move || {
            _ = timeout(SHORT, || {
                swallow_the_end();
                resume_unwind(kept)
            })
        });
        assert!(raised.join().unwrap_err().is_panic());
    });
}

#[test]
fn the_end_by_a_deadline_that_was_kept_is_a_panic_in_the_next_scope_at_the_same_place() {
    paused(|| {
        let raised = fibra::spawn(|| {
            let mut kept = None;
            for _ in 0..2 {
                _ = timeout(SHORT, || {
                    let payload = catch_unwind(|| fibra::sleep(LONG)).unwrap_err();
                    if let Some(former) = kept.replace(payload) {
                        resume_unwind(former);
                    }
                });
            }
        });
        assert!(raised.join().unwrap_err().is_panic());
    });
}

/// Waits for a task that never ends, of a group.
fn wait_for_group(wait: fn(&TaskGroup<()>)) {
    let (runtime, group) = (runtime(1), TaskGroup::new());
    task::shield(|| runtime.run(|| _ = group.spawn(task::park)));
    wait(&group);
}

#[test]
fn a_timeout_ends_the_waits_of_a_plain_thread() {
    let _guard = hang_guard();
    let waits: [(&str, fn()); 15] = [
        ("sleep", || fibra::sleep(LONG)),
        ("sleep until", || fibra::sleep_until(Instant::now() + LONG)),
        ("park", task::park),
        ("loop of parks", || {
            loop {
                task::park_timeout(Duration::from_micros(100));
            }
        }),
        ("loop of yields", || {
            loop {
                fibra::yield_now();
            }
        }),
        ("join", || _ = runtime(1).spawn(task::park).join()),
        ("join_timeout", || _ = runtime(1).spawn(task::park).join_timeout(LONG)),
        ("join_next", || wait_for_group(|group| _ = group.join_next())),
        ("join_next_timeout", || wait_for_group(|group| _ = group.join_next_timeout(LONG))),
        ("join_all", || wait_for_group(|group| _ = group.join_all())),
        ("cancelled", || CancelToken::new().cancelled()),
        ("cancelled_timeout", || _ = CancelToken::new().cancelled_timeout(LONG)),
        ("tick", || _ = interval_at(Instant::now() + LONG, LONG).tick()),
        ("run", || runtime(1).run(task::park)),
        ("future", || fibra::block_on(std::future::pending())),
    ];
    let on_pool = runtime(1);
    for (name, wait) in waits {
        let ends = move || {
            let begin = Instant::now();
            assert!(timeout(SHORT, wait).is_err(), "{name}");
            assert!(begin.elapsed() >= SHORT && !thread::panicking(), "{name}");
            assert_eq!(timeout(LONG, || 7), Ok(7), "{name}");
        };
        ends();
        on_pool.spawn_blocking(ends).join().unwrap();
    }
}

#[test]
fn timeouts_of_a_plain_thread_nest_and_shields_hide_them() {
    let _guard = hang_guard();
    let inner = timeout(LONG, || timeout(SHORT, || fibra::sleep(LONG)));
    assert_eq!(inner, Ok(Err(timeout(Duration::ZERO, fibra::yield_now).unwrap_err())));
    let outer = timeout(SHORT, || timeout(LONG, || fibra::sleep(LONG)));
    assert!(outer.is_err());
    let mut shielded = false;
    let late = timeout(Duration::ZERO, || {
        task::shield(|| fibra::sleep(SHORT));
        shielded = task::is_cancelled() && task::shield(|| !task::is_cancelled());
        fibra::yield_now();
    });
    assert!(late.is_err() && shielded);
    let panic = catch_unwind(|| timeout(LONG, || resume_unwind(Box::new(7)))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&7));
    assert!(!task::is_cancelled());
    fibra::sleep(Duration::from_micros(1));
}

#[test]
fn a_scope_of_a_plain_thread_that_times_out_has_ended_its_children() {
    in_task(2, || {
        let ended = fibra::spawn_blocking(|| {
            let ended = AtomicU32::new(0);
            let late = timeout(SHORT, || {
                fibra::scope(|scope| {
                    for _ in 0..3 {
                        // Dropped with the closure also if the cancel comes before the start.
                        let count = AtEnd(|| _ = ended.fetch_add(1, Ordering::SeqCst));
                        scope.spawn(move || {
                            let _count = count;
                            task::park();
                        });
                    }
                    fibra::sleep(Duration::from_millis(1));
                })
            });
            assert!(late.is_err());
            ended.into_inner()
        });
        assert_eq!(ended.join().unwrap(), 3);
    });
}

#[test]
fn a_token_on_the_blocking_pool_says_why_it_is_none() {
    in_task(1, || {
        let told = fibra::spawn_blocking(|| CancelToken::new().scope(|| ())).join().unwrap_err();
        assert!(told.is_panic() && told.to_string().contains("threads of the blocking pool"), "{told}");
    });
}

#[test]
fn thousands_time_out_beside_each_other() {
    let sleep = Duration::from_micros(150);
    let all = |is_virtual: bool| {
        let tasks: Vec<_> = (0..2000_u64)
            .map(|number| {
                fibra::spawn(move || {
                    for round in 0..5 {
                        let time = Duration::from_micros((number * 7 + round * 13) % 300);
                        let outcome = timeout(time, || fibra::sleep(sleep));
                        assert!(!thread::panicking());
                        if is_virtual && time.abs_diff(sleep) > TICK {
                            assert_eq!(outcome.is_ok(), time > sleep, "{time:?}");
                        }
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    };
    paused(|| all(true));
    for workers in [1, 2, 4] {
        in_task(workers, || all(false));
    }
}

#[test]
fn a_forbidden_suspension_panics_at_its_place() {
    in_task(1, || {
        let caught = |f: fn()| {
            let _here = task::forbid_suspend();
            catch_unwind(f).is_err()
        };
        assert!(caught(fibra::yield_now));
        assert!(caught(|| fibra::sleep(SHORT)));
        assert!(caught(task::park));
        task::current().unpark();
        assert!(!caught(task::park), "what need not wait is not forbidden");
        assert!(!caught(|| (0..1000).for_each(|_| task::yield_if_due())), "nor does the budget suspend");
        fibra::yield_now();
    });
}
