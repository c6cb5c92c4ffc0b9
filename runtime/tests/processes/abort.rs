//! What a cancellation means in a build with `panic = "abort"`: nothing is unwound, the code that runs is told where it can
//! be, and what it waits for comes.
#![cfg(panic = "abort")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use crate::said::{block_until_said, rerun_until_it_says};
use fibra_runtime::structured::Either;
use fibra_runtime::{self as fibra, CancelToken, TaskGroup, task, timeout};

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3600);

fn on_workers(test: impl Fn() + Send + Sync) {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        runtime(workers).run(&test);
    }
}

/// Yields until it is set, which a task cancelled before it began never does.
fn until_set(begun: &AtomicBool) {
    while !begun.load(Ordering::SeqCst) {
        fibra::yield_now();
    }
}

/// Runs `body` in a task that is cancelled before its first wait, and once more in one that is cancelled when it has begun.
fn cancelled_before_and_meanwhile(body: fn()) {
    on_workers(|| {
        let before = fibra::spawn(move || {
            task::current().cancel();
            body();
            assert!(task::is_cancelled());
        });
        let begun = Arc::new(AtomicBool::new(false));
        let begin = Arc::clone(&begun);
        let meanwhile = fibra::spawn(move || {
            begin.store(true, Ordering::SeqCst);
            body();
        });
        until_set(&begun);
        meanwhile.cancel();
        meanwhile.join().unwrap();
        before.join().unwrap();
    });
}

#[test]
fn a_cancelled_task_sees_it_and_runs_on() {
    on_workers(|| {
        let begun = Arc::new(AtomicBool::new(false));
        let begin = Arc::clone(&begun);
        let looks = fibra::spawn(move || {
            begin.store(true, Ordering::SeqCst);
            while !task::is_cancelled() {
                fibra::sleep(Duration::from_micros(50));
            }
            task::check_cancelled();
            fibra::yield_now();
            task::yield_if_due();
            let begin = Instant::now();
            fibra::sleep(SHORT);
            assert!(begin.elapsed() >= SHORT, "it could not say that it was cut short");
            "ended as it liked"
        });
        until_set(&begun);
        looks.cancel();
        assert_eq!(looks.join().unwrap(), "ended as it liked");
    });
}

#[test]
fn a_park_with_a_limit_ends() {
    cancelled_before_and_meanwhile(|| assert!(!task::park_timeout(LONG)));
}

#[test]
fn a_join_with_a_limit_ends_and_gives_the_handle_back() {
    cancelled_before_and_meanwhile(|| {
        let parked = fibra::spawn(task::park);
        let handle = parked.join_timeout(LONG).unwrap_err();
        handle.task().unpark();
        handle.join().unwrap();
    });
}

#[test]
fn a_wait_for_a_token_with_a_limit_ends() {
    cancelled_before_and_meanwhile(|| assert!(!CancelToken::new().cancelled_timeout(LONG)));
}

#[test]
fn a_wait_for_a_group_with_a_limit_ends() {
    cancelled_before_and_meanwhile(|| {
        let group = TaskGroup::new();
        let member = group.spawn(task::park);
        assert!(group.join_next_timeout(LONG).is_err());
        member.unpark();
        group.join_next().unwrap().unwrap();
    });
}

#[test]
fn notified_wait_is_no_timeout() {
    cancelled_before_and_meanwhile(|| {
        task::current().unpark();
        assert!(task::park_timeout(LONG));
        assert_eq!(fibra::spawn(|| 7).join().unwrap(), 7);
    });
}

#[test]
fn a_wait_without_a_limit_goes_on_until_it_has_what_it_waits_for() {
    on_workers(|| {
        let [begun, unparked] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (begin, sees) = (Arc::clone(&begun), Arc::clone(&unparked));
        let parks = fibra::spawn(move || {
            begin.store(true, Ordering::SeqCst);
            task::park();
            assert!(sees.load(Ordering::SeqCst));
            let joined = fibra::spawn(|| {
                fibra::sleep(SHORT);
                7
            });
            joined.join().unwrap() + fibra::unblock(|| 8)
        });
        until_set(&begun);
        parks.cancel();
        fibra::sleep(SHORT);
        unparked.store(true, Ordering::SeqCst);
        parks.task().unpark();
        assert_eq!(parks.join().unwrap(), 15);
    });
}

#[test]
fn deadlines_and_tokens_are_told_and_leave_the_value() {
    on_workers(|| {
        let late = timeout(SHORT, || {
            fibra::sleep(SHORT * 2);
            assert!(task::is_cancelled());
            assert!(!task::park_timeout(LONG), "a limit of its own ends with the deadline around it");
            7
        });
        assert_eq!(late, Ok(7));
        assert!(!task::is_cancelled());
        let token = CancelToken::new();
        let value = token.scope(|| {
            token.cancel();
            assert!(task::is_cancelled());
            fibra::yield_now();
            !task::park_timeout(LONG)
        });
        assert_eq!(value, Ok(true));
        assert!(!task::is_cancelled());
    });
}

#[test]
fn a_shield_keeps_it_out() {
    cancelled_before_and_meanwhile(|| {
        task::shield(|| {
            assert!(!task::is_cancelled());
            let begin = Instant::now();
            assert!(!task::park_timeout(SHORT));
            assert!(begin.elapsed() >= SHORT);
        });
    });
}

#[test]
fn a_task_that_has_not_started_is_dropped_un_run() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let capture = Arc::new(());
        let held = Arc::clone(&capture);
        let never = fibra::spawn(move || unreachable!("entered with {held:?}"));
        never.cancel();
        assert!(never.join().map(drop).unwrap_err().is_cancelled());
        assert_eq!(Arc::strong_count(&capture), 1);
    });
}

/// Waits until its task is told.
fn until_told() {
    while !task::is_cancelled() {
        fibra::sleep(Duration::from_micros(50));
    }
}

#[test]
fn a_scope_tells_its_children_and_waits_for_them() {
    on_workers(|| {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let begun = Arc::new(AtomicUsize::new(0));
        let begin = Arc::clone(&begun);
        let parent = fibra::spawn(move || {
            fibra::scope(|s| {
                for _ in 0..10 {
                    s.spawn(|| {
                        begin.fetch_add(1, Ordering::SeqCst);
                        until_told();
                        count.fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
            count.load(Ordering::SeqCst)
        });
        while begun.load(Ordering::SeqCst) < 10 {
            fibra::yield_now();
        }
        parent.cancel();
        assert_eq!(parent.join().unwrap(), 10);
    });
}

#[test]
fn two_beside_each_other_and_loops_run_to_their_end() {
    cancelled_before_and_meanwhile(|| {
        let sleeps = |value: usize| {
            move || {
                fibra::sleep(SHORT);
                value
            }
        };
        assert_eq!(fibra::join(sleeps(1), sleeps(2)), (1, 2));
        let sum = AtomicUsize::new(0);
        let add = |n: usize| {
            fibra::yield_now();
            sum.fetch_add(n, Ordering::SeqCst);
        };
        fibra::parallel_for(0..100, add);
        fibra::parallel_for_each(0..100, add);
        assert_eq!(sum.into_inner(), 9900);
    });
}

#[test]
fn the_loser_of_a_race_is_told() {
    on_workers(|| {
        let told = Cell::new(false);
        let (begun, loser) = (AtomicBool::new(false), AtomicBool::new(false));
        let won = fibra::race(
            || until_set(&begun),
            || {
                begun.store(true, Ordering::SeqCst);
                until_told();
                loser.store(true, Ordering::SeqCst);
            },
        );
        told.set(loser.into_inner());
        assert!(matches!(won, Either::Left(())) && told.get());
    });
}

#[test]
fn a_race_that_is_cancelled_tells_all_and_has_a_winner() {
    cancelled_before_and_meanwhile(|| {
        let told = AtomicUsize::new(0);
        let runs = || {
            until_told();
            told.fetch_add(1, Ordering::SeqCst)
        };
        let (Either::Left(_) | Either::Right(_)) = fibra::race(runs, runs);
        assert_eq!(told.into_inner(), 2);
    });
}

#[test]
fn a_runtime_ends_when_all_cancelled_tasks_have_ended() {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let runtime = runtime(workers);
        runtime.run(|| {
            for number in 0..200 {
                let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
                fibra::spawn(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    match number % 6 {
                        0 => until_told(),
                        1 => while task::park_timeout(LONG) {},
                        2 => _ = fibra::race(until_told, || task::park_timeout(LONG)),
                        3 => _ = fibra::join(until_told, until_told),
                        4 => fibra::scope(|s| drop(s.spawn(until_told))),
                        _ => fibra::scope(|s| _ = s.spawn(until_told).join()),
                    }
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
            // All have begun, so none is dropped un-run.
            while begun.load(Ordering::SeqCst) < 200 {
                fibra::yield_now();
            }
        });
        runtime.shutdown();
        assert_eq!(ended.load(Ordering::SeqCst), 200);
    }
}

#[test]
fn an_end_with_a_deadline_names_the_tasks_left() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let may_end = Arc::new(AtomicBool::new(false));
    let waits = Arc::clone(&may_end);
    let begun = Arc::new(AtomicBool::new(false));
    let begin = Arc::clone(&begun);
    runtime.run(move || {
        drop(task::Builder::new().name("stubborn").spawn(move || {
            begin.store(true, Ordering::SeqCst);
            while !waits.load(Ordering::SeqCst) {
                fibra::sleep(SHORT);
            }
        }));
        until_set(&begun);
    });
    let left = runtime.shutdown_timeout(SHORT);
    assert_eq!(left.iter().map(|task| task.name()).collect::<Vec<_>>(), [Some("stubborn")]);
    may_end.store(true, Ordering::SeqCst);
    while !left[0].is_finished() {
        std::thread::sleep(SHORT);
    }
}

#[test]
fn an_end_that_takes_long_names_the_tasks_left() {
    if is_child() {
        return runtime(1).run(|| {
            drop(task::Builder::new().name("stubborn").spawn(|| {
                until_told();
                block_until_said();
            }));
            fibra::yield_now();
        });
    }
    let _guard = hang_guard();
    let (status, text) = rerun_until_it_says(
        "abort::an_end_that_takes_long_names_the_tasks_left",
        "still waits for 1 task, ",
        1,
    );
    assert!(status.success(), "{text}");
    assert!(text.contains("'stubborn'"), "{text}");
}

#[test]
fn a_task_that_is_told_a_hundred_times_is_named_and_lets_others_run() {
    if is_child() {
        return runtime(1).run(|| {
            let beside = fibra::spawn(|| (0..1000).for_each(|_| fibra::yield_now()));
            let deaf = task::Builder::new().name("deaf").spawn(move || {
                while !beside.is_finished() {
                    assert!(!task::park_timeout(LONG));
                }
            });
            fibra::yield_now();
            deaf.cancel();
            deaf.join().unwrap();
        });
    }
    let _guard = hang_guard();
    let text = errors(&rerun("abort::a_task_that_is_told_a_hundred_times_is_named_and_lets_others_run"));
    assert!(text.contains("'deaf'") && text.contains("told of its cancellation 100 times"), "{text}");
}

#[test]
fn a_panic_ends_the_process_and_names_the_task() {
    if is_child() {
        return runtime(2).run(|| {
            let unlucky = task::Builder::new().name("unlucky").spawn(|| panic!("thirteen"));
            _ = unlucky.join();
            println!("alive");
        });
    }
    let _guard = hang_guard();
    let output = rerun("abort::a_panic_ends_the_process_and_names_the_task");
    let text = errors(&output);
    assert!(!output.status.success() && !String::from_utf8_lossy(&output.stdout).contains("alive"));
    assert_eq!((text.matches("'unlucky'").count(), text.matches("thirteen").count()), (1, 1), "{text}");
}
