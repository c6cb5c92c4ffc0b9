//! Promises of `race`.

use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::hang_guard;
use crate::counted::Counted;
use crate::message::message;
use crate::workers::on_workers;
use fibra_runtime::structured::Either;
use fibra_runtime::{self as fibra, race, task};

#[test]
fn the_first_to_end_wins_and_the_other_has_ended() {
    on_workers(|| {
        let alive = AtomicUsize::new(0);
        let forever = || {
            let _counted = Counted::new(&alive);
            task::park();
        };
        let soon = || {
            fibra::sleep(Duration::from_millis(1));
            7
        };
        assert_eq!(race(soon, forever), Either::Left(7));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(race(forever, soon), Either::Right(7));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn both_may_borrow() {
    on_workers(|| {
        let mut buffers = [vec![0; 4], vec![0; 4]];
        let [left, right] = &mut buffers;
        _ = race(|| left.fill(1), || right.fill(1));
        assert!(buffers.iter().any(|buffer| *buffer == [1; 4]));
    });
}

#[test]
fn of_two_that_end_at_once_one_wins_and_the_others_value_is_dropped() {
    on_workers(|| {
        let alive = AtomicUsize::new(0);
        for _ in 0..2000 {
            let won = race(|| Counted::new(&alive), || Counted::new(&alive));
            assert_eq!(alive.load(Ordering::SeqCst), 1);
            drop(won);
        }
        assert_eq!(alive.into_inner(), 0);
    });
}

#[test]
fn a_panic_comes_out_after_the_others_have_ended() {
    on_workers(|| {
        let alive = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            race(
                || {
                    let _counted = Counted::new(&alive);
                    task::park();
                },
                || resume_unwind(Box::new("on purpose")),
            )
        }));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
    });
}

#[test]
fn a_losers_panic_comes_out_too() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                resume_unwind(Box::new("loser"));
            }
        }
    }
    on_workers(|| {
        // A loser that has not begun has no panic.
        let begun = AtomicBool::new(false);
        let result = catch_unwind(AssertUnwindSafe(|| {
            race(
                || {
                    while !begun.load(Ordering::SeqCst) {
                        fibra::yield_now();
                    }
                },
                || {
                    begun.store(true, Ordering::SeqCst);
                    let caught = catch_unwind(task::park);
                    assert!(caught.is_err());
                    drop(Panics);
                },
            )
        }));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "loser");
    });
}

#[test]
fn one_that_cannot_inherit_has_those_cancelled_that_run() {
    struct Heir;
    impl Clone for Heir {
        fn clone(&self) -> Self {
            if CLONES.fetch_add(1, Ordering::SeqCst) == 1 {
                while ALIVE.load(Ordering::SeqCst) == 0 {
                    fibra::yield_now();
                }
                resume_unwind(Box::new("no second one"));
            }
            Heir
        }
    }
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    fibra::task_local! { #[inherit] static HEIR: Heir = Heir; }
    on_workers(|| {
        CLONES.store(0, Ordering::SeqCst);
        HEIR.with(|_| ());
        let parks = || {
            let _counted = Counted::new(&ALIVE);
            task::park();
        };
        let result = catch_unwind(|| race(parks, || ()));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "no second one");
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_winner_that_was_cancelled_from_inside_ends_its_race() {
    on_workers(|| {
        let parent = fibra::spawn(|| {
            race(
                || {
                    task::current().cancel();
                    fibra::yield_now();
                },
                task::park,
            );
            unreachable!("it was cancelled");
        });
        assert!(parent.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn cancelled_at_any_moment_it_leaves_nothing_behind() {
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    on_workers(|| {
        for round in 0..1000_u32 {
            let parent = fibra::spawn(move || {
                let run = |yields: u32| {
                    let _counted = Counted::new(&ALIVE);
                    (0..yields).for_each(|_| fibra::yield_now());
                };
                _ = race(|| run(round % 5), || run(round % 3));
            });
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
fn races_nest() {
    on_workers(|| {
        let won = race(
            || race(task::park, task::park),
            || race(task::park, || fibra::sleep(Duration::from_millis(1))),
        );
        assert_eq!(won, Either::Right(Either::Right(())));
    });
}

#[test]
fn the_macro_takes_any_number_and_evaluates_the_winners_arm() {
    fn found(which: u64) -> Option<u64> {
        let wait = |number: u64| {
            if number != which {
                task::park();
            }
            number * 10
        };
        let last = if which == 3 { Duration::from_millis(1) } else { Duration::MAX };
        let value = fibra::race! {
            zero = wait(0) => zero,
            one = wait(1) => {
                if one == 10 {
                    return Some(1);
                }
                one
            },
            two = wait(2) => two,
            () = fibra::sleep(last) => return None,
        };
        Some(value)
    }
    on_workers(|| {
        assert_eq!([found(0), found(1), found(2), found(3)], [Some(0), Some(1), Some(20), None]);
    });
}

#[test]
fn over_the_limit_of_tasks_it_says_so() {
    let _guard = hang_guard();
    // The first runtime of the process puts a hook of its own in the place of the one that it finds, so that is done with before.
    let runtime = fibra::Runtime::builder().workers(1).max_tasks(1).build().expect("a runtime");
    let ((tell, told), before) = (channel(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        _ = tell.send(info.payload_as_str().unwrap_or_default().to_owned());
        before(info);
    }));
    runtime.run(move || {
        let message = message(|| race(|| 1, || 2));
        assert!(message.contains("max_tasks"), "{message}");
        // Others panic meanwhile.
        assert!(told.try_iter().any(|told| told == message), "the hook hears of it");
    });
}

#[test]
fn off_a_task_it_says_that_the_end_of_the_runtime_has_cancelled_both() {
    let _guard = hang_guard();
    let runtime = fibra::Runtime::builder().workers(1).build().expect("a runtime");
    let (begun, has_begun) = channel();
    let asked = runtime.spawn_blocking(move || {
        begun.send(()).unwrap();
        // What is spawned once the runtime ends is cancelled.
        while !fibra::spawn_blocking(|| ()).join().is_err_and(|error| error.is_cancelled()) {
            std::thread::yield_now();
        }
        message(|| race(|| 1, || 2))
    });
    has_begun.recv().unwrap();
    drop(runtime);
    let message = asked.join().expect("it ran");
    assert!(message.contains("the end of the runtime"), "{message}");
}

#[test]
fn a_local_race_stays_here_and_its_loser_has_ended() {
    on_workers(|| {
        let (here, steps) = (std::thread::current().id(), std::rc::Rc::new(std::cell::Cell::new(0)));
        let soon = || {
            fibra::sleep(Duration::from_millis(1));
            assert_eq!(std::thread::current().id(), here);
            steps.clone()
        };
        let forever = || {
            let _shared = steps.clone();
            steps.set(steps.get() + 1);
            task::park();
        };
        assert!(matches!(fibra::race_local(soon, forever), Either::Left(won) if won.get() == 1));
        assert!(matches!(fibra::race_local(forever, soon), Either::Right(won) if won.get() == 2));
        assert_eq!(std::rc::Rc::strong_count(&steps), 1);
    });
}
