//! The promises of `Once`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, give_way, in_tasks, pause, until};
use crate::message::message;
use fibra_sync::{Once, OnceState};

#[test]
fn the_first_call_runs_and_no_other() {
    everywhere(|| {
        let once = Once::new();
        let mut runs = 0;
        assert!(!once.is_completed());
        once.call_once(|| runs += 1);
        assert!(once.is_completed());
        once.call_once(|| runs += 1);
        once.call_once_force(|_| runs += 1);
        assert_eq!(runs, 1);
    });
}

#[test]
fn a_stampede_runs_one_initializer_and_all_see_it() {
    everywhere(|| {
        let once = Arc::new((Once::new(), AtomicU32::new(0)));
        let sides: Vec<_> = (0..50)
            .map(|_| {
                let once = Arc::clone(&once);
                beside(move || {
                    for _ in 0..4 {
                        give_way();
                    }
                    once.0.call_once(|| {
                        pause();
                        let before = once.1.load(Ordering::Relaxed);
                        once.1.store(before + 1, Ordering::Relaxed);
                    });
                    assert_eq!(once.1.load(Ordering::Relaxed), 1);
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
    });
}

#[test]
fn tasks_and_threads_wait_for_one_another() {
    in_tasks(|| {
        let once = Arc::new(Once::new());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let once = Arc::clone(&once);
                std::thread::spawn(move || once.call_once(|| std::thread::sleep(Duration::from_millis(5))))
            })
            .collect();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let once = Arc::clone(&once);
                fibra_runtime::spawn(move || {
                    once.call_once(|| fibra_runtime::sleep(Duration::from_millis(5)))
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert!(once.is_completed());
        fibra_runtime::unblock(|| threads.into_iter().for_each(|thread| thread.join().unwrap()));
    });
}

#[test]
fn a_panic_poisons_all_but_the_forced_call() {
    everywhere(|| {
        let once = Once::new();
        assert_eq!(message(|| once.call_once(|| panic!("first"))), "first");
        assert!(message(|| once.call_once(|| unreachable!())).contains("poisoned"));
        assert!(message(|| once.wait()).contains("poisoned"));
        assert!(message(|| _ = once.wait_timeout(Duration::from_millis(1))).contains("poisoned"));
        assert_eq!(message(|| once.call_once_force(|_| panic!("second"))), "second");
        let mut told = false;
        once.call_once_force(|state| told = state.is_poisoned());
        assert!(told);
        once.call_once(|| unreachable!());
        once.wait();
    });
}

#[test]
fn its_state_is_told_at_each_step() {
    everywhere(|| {
        let once = Once::new();
        assert_eq!(once.state(), OnceState::New);
        let fails = || once.call_once(|| std::panic::resume_unwind(Box::new(())));
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        assert_eq!(once.state(), OnceState::Poisoned);
        once.call_once_force(|before| {
            assert_eq!((*before, once.state()), (OnceState::Poisoned, OnceState::InProgress));
        });
        assert!(once.state().is_completed() && !once.state().is_poisoned());
    });
}

#[test]
fn a_fresh_state_is_not_poisoned() {
    let once = Once::new();
    once.call_once_force(|state| assert!(!state.is_poisoned()));
}

#[test]
fn a_call_waits_for_a_forced_one_to_finish() {
    everywhere(|| {
        let once = Arc::new(Once::new());
        _ = catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("poison"))));
        let (entered, inside) = std::sync::mpsc::channel();
        let forcing = {
            let once = Arc::clone(&once);
            beside(move || {
                once.call_once_force(|state| {
                    assert!(state.is_poisoned());
                    entered.send(()).unwrap();
                    pause();
                });
            })
        };
        while inside.try_recv().is_err() {
            give_way();
        }
        let mut runs = 0;
        once.call_once(|| runs += 1);
        assert_eq!(runs, 0);
        forcing.join();
    });
}

#[test]
fn the_completion_wakes_all_waiters() {
    everywhere(|| {
        let once = Arc::new(Once::new());
        let sides: Vec<_> = (0..40)
            .map(|index| {
                let once = Arc::clone(&once);
                beside(move || match index % 3 {
                    0 => once.wait(),
                    1 => once.wait_force(),
                    _ => assert!(once.wait_timeout(Duration::from_secs(60))),
                })
            })
            .collect();
        pause();
        once.call_once(pause);
        sides.into_iter().for_each(|side| side.join());
    });
}

#[test]
fn waits_hear_of_a_poisoning_and_forced_waits_do_not() {
    everywhere(|| {
        let once = Arc::new(Once::new());
        let listeners: Vec<_> = (0..40)
            .map(|_| {
                let once = Arc::clone(&once);
                beside(move || message(|| once.wait()).contains("poisoned"))
            })
            .collect();
        let forced: Vec<_> = (0..40)
            .map(|_| {
                let once = Arc::clone(&once);
                beside(move || once.wait_force())
            })
            .collect();
        pause();
        assert_eq!(message(|| once.call_once(|| panic!("poison"))), "poison");
        assert!(listeners.into_iter().all(|side| side.join()));
        once.call_once_force(|_| ());
        forced.into_iter().for_each(|side| side.join());
    });
}

#[test]
fn a_forced_call_follows_a_panic_and_all_end() {
    everywhere(|| {
        for _ in 0..20 {
            let once = Arc::new((Once::new(), AtomicU32::new(0)));
            let sides: Vec<_> = (0..8)
                .map(|_| {
                    let once = Arc::clone(&once);
                    beside(move || {
                        let run = || {
                            once.0.call_once_force(|_| {
                                give_way();
                                let run = once.1.fetch_add(1, Ordering::Relaxed);
                                if run < 5 {
                                    std::panic::resume_unwind(Box::new(()));
                                }
                            });
                        };
                        catch_unwind(AssertUnwindSafe(run)).is_err()
                    })
                })
                .collect();
            let failed = sides.into_iter().map(|side| side.join()).filter(|failed| *failed).count();
            assert_eq!((failed, once.1.load(Ordering::Relaxed)), (5, 6));
        }
    });
}

/// Lets an initializer fail while a task and a thread wait with their own, and the worker of the task may compute.
///
/// `fail` runs one that fails once `begun` has returned; `run` runs one that succeeds and calls `ran`.
pub(crate) fn others_run_after_a_failure<T: Send + Sync + 'static>(
    new: fn() -> T,
    fail: fn(&T, &dyn Fn()),
    run: fn(&T, &dyn Fn()),
) {
    in_tasks(|| {
        let (once, waiting, runs) =
            (Arc::new(new()), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let side = || {
            let (once, waiting, runs) = (Arc::clone(&once), Arc::clone(&waiting), Arc::clone(&runs));
            move || {
                waiting.fetch_add(1, Ordering::Relaxed);
                run(&once, &|| _ = runs.fetch_add(1, Ordering::Relaxed));
            }
        };
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let failing = {
            let (once, waiting) = (Arc::clone(&once), Arc::clone(&waiting));
            std::thread::spawn(move || {
                fail(&once, &|| {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    ends.recv().unwrap();
                });
            })
        };
        until(|| waiting.load(Ordering::Relaxed) == 1);
        let task = fibra_runtime::spawn(side());
        until(|| waiting.load(Ordering::Relaxed) == 2);
        let thread = std::thread::spawn(side());
        until(|| waiting.load(Ordering::Relaxed) == 3);
        pause();
        end.send(()).unwrap();
        // Neither gives way nor waits: a worker that computes, with the first waiter on it if there is one worker.
        while runs.load(Ordering::Relaxed) == 0 {
            std::hint::spin_loop();
        }
        failing.join().unwrap();
        task.join().unwrap();
        thread.join().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_failure_wakes_others_though_one_waiter_has_a_busy_worker() {
    others_run_after_a_failure(
        Once::new,
        |once, begun| {
            let fails = || {
                once.call_once(|| {
                    begun();
                    std::panic::resume_unwind(Box::new(()));
                });
            };
            assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        },
        |once, ran| once.call_once_force(|_| ran()),
    );
}

#[test]
fn a_wait_ends_at_its_timeout() {
    everywhere(|| {
        let once = Once::new();
        let begin = Instant::now();
        assert!(!once.wait_timeout(Duration::from_millis(20)));
        assert!(begin.elapsed() >= Duration::from_millis(20));
        assert!(!once.wait_deadline(begin));
        once.call_once(|| ());
        assert!(once.wait_timeout(Duration::ZERO));
        assert!(once.wait_timeout(Duration::MAX));
    });
}

#[test]
fn a_recursive_initialization_panics_and_names_the_task() {
    in_tasks(|| {
        let task = fibra_runtime::task::Builder::new().name("ouroboros");
        let message = task
            .spawn(|| {
                let once = Once::new();
                message(|| once.call_once(|| once.call_once(|| ())))
            })
            .join()
            .unwrap();
        assert!(message.contains("ouroboros"), "{message}");
    });
    let once = Once::new();
    assert!(message(|| once.call_once(|| once.wait())).contains("initializing"));
}

#[test]
fn a_cancel_does_not_end_an_initializer() {
    in_tasks(|| {
        let once = Arc::new(Once::new());
        let (entered, inside) = std::sync::mpsc::channel();
        let task = {
            let once = Arc::clone(&once);
            fibra_runtime::spawn(move || {
                once.call_once(|| {
                    entered.send(()).unwrap();
                    fibra_runtime::sleep(Duration::from_millis(10));
                });
                fibra_runtime::sleep(Duration::from_secs(60));
            })
        };
        while inside.try_recv().is_err() {
            give_way();
        }
        task.task().cancel();
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(once.is_completed());
    });
}

#[test]
fn a_cancel_ends_a_wait_but_no_call() {
    in_tasks(|| {
        let once = Arc::new(Once::new());
        let waiting = {
            let once = Arc::clone(&once);
            fibra_runtime::spawn(move || once.wait())
        };
        give_way();
        waiting.task().cancel();
        assert!(waiting.join().unwrap_err().is_cancelled());

        let called = Arc::new(AtomicU32::new(0));
        let calling = {
            let (once, called) = (Arc::clone(&once), Arc::clone(&called));
            move || {
                once.call_once(|| fibra_runtime::sleep(Duration::from_millis(10)));
                called.fetch_add(1, Ordering::Relaxed);
            }
        };
        let first = fibra_runtime::spawn(calling.clone());
        let second = fibra_runtime::spawn(calling);
        fibra_runtime::sleep(Duration::from_millis(2));
        second.task().cancel();
        first.join().unwrap();
        // It either never began, or came to the end of its call.
        let cancelled = second.join().is_err();
        assert!(called.load(Ordering::Relaxed) == 2 || cancelled);
        once.wait();
    });
}

#[test]
fn it_is_shared_by_threads_and_fits_three_words() {
    fn shared<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    shared::<Once>();
    assert!(size_of::<Once>() <= 24);
    static ONCE: Once = Once::new();
    assert_eq!(format!("{ONCE:?}"), "Once { completed: false, .. }");
}
