//! What the suites of other runtimes ask of a cancellation, asked of ours: the moments at which it comes, the tasks that
//! survive it, and the tasks that are told. The plain promises are in `cancel.rs`.

use std::hint::spin_loop;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::at_end::AtEnd;
use crate::counted::Counted;
use crate::in_both_times;
use crate::workers::on_workers;
use fibra_runtime::task::DropGuard;
use fibra_runtime::{self as fibra, CancelToken, JoinHandle, TaskGroup, race, task};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

fn until(done: impl Fn() -> bool) {
    while !done() {
        fibra::yield_now();
    }
}

fn raised(flag: &AtomicBool) -> bool {
    flag.load(Ordering::SeqCst)
}

/// A task that never returns, and has begun.
fn forever() -> JoinHandle<()> {
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let task = fibra::spawn(move || {
        begins.store(true, Ordering::SeqCst);
        task::park();
        unreachable!("no task unparks it");
    });
    until(|| raised(&begun));
    task
}

#[test]
fn every_point_ends_a_task_that_was_cancelled_before_it() {
    let points: [(&str, fn()); 15] = [
        ("sleep", || fibra::sleep(LONG)),
        ("sleep_until", || fibra::sleep_until(Instant::now())),
        ("park", task::park),
        ("park_timeout", || _ = task::park_timeout(LONG)),
        ("yield_now", fibra::yield_now),
        ("yield_if_due", task::yield_if_due),
        ("check_cancelled", task::check_cancelled),
        ("join", || _ = fibra::spawn(task::park).join()),
        ("join_timeout", || _ = fibra::spawn(task::park).join_timeout(LONG)),
        ("join_next of no task", || _ = TaskGroup::<()>::new().join_next()),
        ("race", || _ = race(task::park, task::park)),
        ("the end of a scope", || {
            fibra::scope(|s| _ = s.spawn(task::park));
        }),
        ("unblock", || fibra::unblock(|| ())),
        ("cancelled", || CancelToken::new().cancelled()),
        ("cancelled already", || {
            let done = CancelToken::new();
            done.cancel();
            done.cancelled();
        }),
    ];
    on_workers(|| {
        for (name, point) in points {
            let task = fibra::spawn(move || {
                task::current().cancel();
                assert!(task::is_cancelled());
                point();
            });
            assert!(task.join().is_err_and(|error| error.is_cancelled()), "{name}");
        }
    });
}

#[test]
fn a_join_of_an_ended_task_returns_its_result_also_to_a_cancelled_task() {
    on_workers(|| {
        let done = fibra::spawn(|| 5);
        until(|| done.is_finished());
        let joiner = fibra::spawn(move || {
            task::current().cancel();
            done.join().unwrap()
        });
        assert_eq!(joiner.join().unwrap(), 5);
    });
}

#[test]
fn a_task_that_a_destructor_spawned_ends_by_its_own_cancellation_only() {
    in_both_times(|| {
        for is_cancelled in [false, true] {
            let begun = Arc::new(AtomicBool::new(false));
            let spawned = Arc::new(Mutex::new(None));
            let (begins, place) = (Arc::clone(&begun), Arc::clone(&spawned));
            let parent = fibra::spawn(move || {
                let _spawns = AtEnd(|| *place.lock().unwrap() = Some(fibra::spawn(task::park)));
                begins.store(true, Ordering::SeqCst);
                if is_cancelled {
                    task::park();
                }
            });
            until(|| raised(&begun));
            if is_cancelled {
                parent.cancel();
            }
            assert_eq!(parent.join().is_err(), is_cancelled);
            let child = spawned.lock().unwrap().take().expect("the destructor has run");
            let child = child.join_timeout(SHORT).expect_err("it outlives its parent");
            child.cancel();
            assert!(child.join().unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn a_child_that_is_cancelled_and_joined_while_its_parent_unwinds_is_unwound_itself() {
    on_workers(|| {
        for round in 0..100 {
            let parent = fibra::spawn(move || {
                let mut child = Some(forever());
                let _ends = AtEnd(|| {
                    assert!(thread::panicking());
                    let child = child.take().unwrap();
                    child.cancel();
                    assert!(child.join().unwrap_err().is_cancelled());
                    assert!(thread::panicking(), "by its own panic");
                });
                match round % 2 {
                    0 => resume_unwind(Box::new("mine")),
                    _ => task::current().cancel(),
                }
                task::park();
            });
            let error = parent.join().unwrap_err();
            assert_eq!(error.is_cancelled(), round % 2 == 1);
        }
    });
}

#[test]
fn a_cancelled_wait_tells_its_cause() {
    on_workers(|| {
        let awaited = forever();
        let ends = awaited.task().clone();
        let waits = Arc::new(AtomicBool::new(false));
        let says = Arc::clone(&waits);
        let waiter = fibra::spawn(move || {
            says.store(true, Ordering::SeqCst);
            let interrupted = catch_unwind(AssertUnwindSafe(|| awaited.join().unwrap_err()));
            assert!(interrupted.is_err() && task::is_cancelled());
            "told"
        });
        until(|| raised(&waits));
        waiter.cancel();
        assert_eq!(waiter.join().unwrap(), "told");
        assert!(!ends.is_finished(), "the task that it waited for runs on");
        ends.cancel();
    });
}

#[test]
fn a_joiner_that_is_cancelled_as_the_joined_one_ends_takes_its_result_or_leaves_it() {
    on_workers(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let mut taken = 0;
        for round in 0..2000_usize {
            let result = Counted::new(Arc::clone(&alive));
            let joined = fibra::spawn(move || {
                (0..round * 3 % 50).for_each(|_| spin_loop());
                result
            });
            let joiner = fibra::spawn(move || joined.join().unwrap());
            (0..round % 3).for_each(|_| fibra::yield_now());
            (0..round * 7 % 50).for_each(|_| spin_loop());
            joiner.cancel();
            match joiner.join() {
                Ok(result) => {
                    drop(result);
                    taken += 1;
                }
                Err(error) => assert!(error.is_cancelled()),
            }
        }
        assert!(taken > 0, "some were quicker than their cancel");
        until(|| alive.load(Ordering::SeqCst) == 0);
    });
}

#[test]
fn captures_are_dropped_before_the_end_of_their_task_is_told() {
    let bodies: [fn(); 4] = [
        || (),
        || resume_unwind(Box::new("on purpose")),
        || {
            task::current().cancel();
            task::park();
        },
        task::park,
    ];
    on_workers(|| {
        for (number, body) in bodies.into_iter().enumerate() {
            let alive = Arc::new(AtomicUsize::new(0));
            let capture = Counted::new(Arc::clone(&alive));
            let task = fibra::spawn(move || {
                let _capture = &capture;
                body();
            });
            if number == 3 {
                task.cancel();
            }
            until(|| task.is_finished());
            assert_eq!(alive.load(Ordering::SeqCst), 0);
            assert_eq!(task.join().is_ok(), number == 0);
        }
    });
}

#[test]
fn a_detached_task_that_was_cancelled_before_it_ran_drops_its_captures_in_a_task() {
    on_workers(|| {
        let dropped_in_a_task = Arc::new(Mutex::new(None));
        let place = Arc::clone(&dropped_in_a_task);
        let capture = AtEnd(move || *place.lock().unwrap() = Some(task::try_current().is_some()));
        // A task that another worker may have begun in the meantime ends as well.
        let detached = fibra::spawn(move || {
            let _capture = capture;
            task::park();
        });
        detached.cancel();
        drop(detached);
        until(|| dropped_in_a_task.lock().unwrap().is_some());
        assert_eq!(*dropped_in_a_task.lock().unwrap(), Some(true));
    });
}

#[test]
fn a_name_of_a_task_that_is_dropped_neither_waits_nor_cancels() {
    on_workers(|| {
        let going_on = fibra::spawn(|| {
            task::park();
            42
        });
        let names = [going_on.task().clone(), going_on.task().clone()];
        let last = names[0].clone();
        drop(names);
        assert!(!going_on.is_finished());
        last.unpark();
        drop(last);
        assert_eq!(going_on.join().unwrap(), 42);
    });
}

#[test]
fn a_cancel_after_the_end_changes_nothing() {
    on_workers(|| {
        let done = fibra::spawn(|| 1);
        until(|| done.is_finished());
        done.cancel();
        let name = done.task().clone();
        name.cancel();
        assert_eq!(done.join().unwrap(), 1);
        name.cancel();
        fibra::yield_now();
        assert!(!task::is_cancelled(), "it was not for the task that runs now");
    });
}

/// Code under a token that is cancelled when the guard goes.
fn guarded_code() -> (JoinHandle<bool>, DropGuard) {
    let token = CancelToken::new();
    let heeds = token.clone();
    (fibra::spawn(move || heeds.scope(task::park).is_err()), token.drop_guard())
}

#[test]
fn a_guard_that_is_replaced_moved_or_dropped_cancels_once_it_is_gone() {
    in_both_times(|| {
        let (first, mut guard) = guarded_code();
        let (second, other) = guarded_code();
        drop(mem::replace(&mut guard, other));
        assert!(first.join().unwrap());
        let moved = guard;
        fibra::sleep(SHORT);
        assert!(!second.is_finished());
        drop(moved);
        assert!(second.join().unwrap());
    });
}

#[test]
fn a_group_that_was_cancelled_and_joined_has_left_nothing_behind() {
    in_both_times(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let group = TaskGroup::new();
        for number in 0..20 {
            let capture = Counted::new(Arc::clone(&alive));
            group.spawn(move || {
                let _slow = AtEnd(|| fibra::sleep(Duration::from_micros(100)));
                let _capture = capture;
                match number % 2 {
                    0 => task::park(),
                    _ => fibra::yield_now(),
                }
            });
        }
        (0..3).for_each(|_| fibra::yield_now());
        group.cancel_all();
        assert_eq!(group.join_all().len(), 20);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    });
}
