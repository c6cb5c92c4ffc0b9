//! What the suites of other runtimes ask of deadlines, asked of ours: how far code gets after its deadline, and which tasks
//! end with it. The plain promises are in `timeouts.rs`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::at_end::AtEnd;
use crate::counted::Counted;
use crate::in_both_times;
use crate::workers::on_workers;
use fibra_runtime::time::now;
use fibra_runtime::{self as fibra, CancelToken, Elapsed, TaskGroup, task, timeout, timeout_at};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

/// Runs code under a deadline that passed before it began.
fn too_late<T>(f: impl FnOnce() -> T) -> Result<T, Elapsed> {
    timeout_at(now(), f)
}

#[test]
fn code_after_its_deadline_runs_to_its_first_cancellation_point() {
    in_both_times(|| {
        let reached = Cell::new(false);
        let ended = too_late(|| {
            assert!(task::is_cancelled());
            reached.set(true);
            fibra::yield_now();
            unreachable!("a point");
        });
        assert!(ended.is_err() && reached.get());
        assert_eq!(too_late(|| 42), Ok(42), "what meets none returns");
        assert!(!task::is_cancelled());
    });
}

#[test]
fn children_of_a_scope_after_its_deadline_are_cancelled_and_waited_for() {
    in_both_times(|| {
        let alive = AtomicUsize::new(0);
        let ended = too_late(|| {
            fibra::scope(|s| {
                for _ in 0..10 {
                    let capture = Counted::new(&alive);
                    s.spawn(move || {
                        let _capture = capture;
                        task::park();
                        unreachable!("no task unparks it");
                    });
                }
            });
        });
        assert!(ended.is_err());
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_computation_ends_at_its_deadline_by_asking_or_by_a_check() {
    on_workers(|| {
        let begin = now();
        let asking = timeout(SHORT, || {
            while !task::is_cancelled() {
                std::hint::spin_loop();
            }
            42
        });
        assert_eq!(asking, Ok(42), "its own way to end counts");
        assert!(now() - begin >= SHORT);
        let checking = timeout(SHORT, || -> () {
            loop {
                task::check_cancelled();
            }
        });
        assert!(checking.is_err());
    });
}

#[test]
fn a_deadline_that_is_not_reached_ends_nothing() {
    in_both_times(|| {
        let (never, soon) = (CancelToken::new(), CancelToken::new());
        let fires = soon.clone();
        let firing = fibra::spawn(move || {
            fibra::sleep(SHORT);
            fires.cancel();
        });
        let value = timeout(LONG, || {
            assert!(!never.cancelled_timeout(SHORT), "an own deadline is an answer");
            assert!(!never.cancelled_deadline(now() + SHORT));
            assert!(!task::is_cancelled());
            soon.cancelled();
            assert!(soon.cancelled_deadline(now()));
            assert!(!task::is_cancelled());
            42
        });
        assert_eq!(value, Ok(42));
        firing.join().unwrap();
    });
}

#[test]
fn one_deadline_follows_another_in_the_same_task() {
    in_both_times(|| {
        let task = fibra::spawn(|| {
            timeout(LONG, task::park).expect("it is unparked long before");
            assert!(!task::is_cancelled());
            assert!(timeout(SHORT, task::park).is_err());
            assert!(!task::is_cancelled());
            timeout(LONG, || fibra::sleep(SHORT)).expect("the last one is over and done with");
            42
        });
        task.task().unpark();
        assert_eq!(task.join().unwrap(), 42);
    });
}

#[test]
fn a_shield_waits_on_though_the_time_around_it_is_over() {
    in_both_times(|| {
        let waited = Cell::new(false);
        let ended = too_late(|| {
            task::shield(|| {
                let begin = now();
                assert!(!CancelToken::new().cancelled_timeout(SHORT));
                assert!(now() - begin >= SHORT && !task::is_cancelled());
                waited.set(true);
            });
            assert!(task::is_cancelled());
            CancelToken::new().cancelled();
            unreachable!("a point");
        });
        assert!(ended.is_err() && waited.get());
    });
}

#[test]
fn a_parents_deadline_ends_its_children_before_it_unwinds_further() {
    in_both_times(|| {
        let (begun, child_ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let ended = timeout(SHORT, || {
            let unwinding = catch_unwind(AssertUnwindSafe(|| {
                fibra::scope(|s| {
                    s.spawn(|| {
                        let _ends = AtEnd(|| {
                            fibra::sleep(SHORT);
                            child_ended.store(true, Ordering::SeqCst);
                        });
                        begun.store(true, Ordering::SeqCst);
                        task::park();
                    });
                });
            }))
            .expect_err("the deadline is met at the end of the scope");
            assert_eq!(child_ended.load(Ordering::SeqCst), begun.load(Ordering::SeqCst));
            resume_unwind(unwinding);
        });
        assert!(ended.is_err());
    });
}

#[test]
fn a_childs_deadline_is_not_its_parents() {
    in_both_times(|| {
        let child = fibra::spawn(|| timeout(SHORT, task::park));
        assert!(child.join().unwrap().is_err());
        assert!(!task::is_cancelled());
        fibra::scope(|s| assert!(s.spawn(|| timeout(SHORT, task::park)).join().unwrap().is_err()));
        assert!(!task::is_cancelled());
    });
}

#[test]
fn a_detached_task_keeps_its_own_deadline() {
    in_both_times(|| {
        let begin = now();
        let ended = CancelToken::new();
        let says = ended.clone();
        let parent = fibra::spawn(move || {
            drop(fibra::spawn(move || {
                assert!(timeout(SHORT * 2, task::park).is_err());
                says.cancel();
            }));
        });
        parent.join().unwrap();
        ended.cancelled();
        assert!(now() - begin >= SHORT * 2);
    });
}

#[test]
fn an_unclaimed_result_is_dropped_in_its_task_whatever_timers_it_had() {
    in_both_times(|| {
        let dropped = CancelToken::new();
        let says = dropped.clone();
        let result = AtEnd(move || {
            assert!(task::try_current().is_some());
            says.cancel();
        });
        let detached = fibra::spawn(move || {
            // Unparked long before any of these deadlines.
            let unparked = timeout(LONG, || task::park_timeout(LONG));
            assert_eq!(unparked, Ok(true));
            result
        });
        let last_name = detached.task().clone();
        drop(detached);
        last_name.unpark();
        dropped.cancelled();
        drop(last_name);
    });
}

/// Tasks of which each waits until it is unparked.
fn parked(count: usize) -> (TaskGroup<usize>, Vec<fibra::Task>) {
    let group = TaskGroup::new();
    let spawn = |number| {
        group.spawn(move || {
            task::park();
            number
        })
    };
    let tasks = (0..count).map(spawn).collect();
    (group, tasks)
}

#[test]
fn a_wait_for_all_ends_by_its_deadline_and_the_tasks_go_on() {
    in_both_times(|| {
        let (group, tasks) = parked(4);
        assert!(timeout(SHORT, || group.join_all()).is_err());
        assert!(too_late(|| group.join_all()).is_err());
        assert!(group.join_next_timeout(SHORT).is_err());
        assert!(tasks.iter().all(|task| !task.is_finished()));
        tasks.iter().for_each(fibra::Task::unpark);
        let results = timeout(LONG, || group.into_results()).expect("they have been unparked");
        assert!(results.into_iter().map(Result::unwrap).eq(0..4));
    });
}

#[test]
fn a_wait_for_all_that_owns_the_group_cancels_it_with_its_deadline() {
    in_both_times(|| {
        let (group, tasks) = parked(4);
        assert!(timeout(SHORT, || group.into_results()).is_err());
        while !tasks.iter().all(fibra::Task::is_finished) {
            fibra::yield_now();
        }
    });
}

#[test]
fn tasks_that_end_last_to_first_are_all_waited_for() {
    in_both_times(|| {
        let tokens: Arc<[CancelToken]> = (0..10).map(|_| CancelToken::new()).collect();
        let group = TaskGroup::new();
        for number in 0..10 {
            let tokens = Arc::clone(&tokens);
            group.spawn(move || {
                if let Some(next) = tokens.get(number + 1) {
                    next.cancelled();
                }
                tokens[number].cancel();
                number
            });
        }
        assert!(group.into_results().into_iter().map(Result::unwrap).eq(0..10));
    });
}
