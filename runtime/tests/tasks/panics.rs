//! Panics of tasks, and tasks that are suspended while they unwind.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, task};

const LONG: Duration = Duration::from_secs(3600);

/// A panic without a message on standard error.
fn unwind() {
    panic::resume_unwind(Box::new("unwound"))
}

#[test]
fn a_panic_ends_its_task_alone() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let well: Vec<_> = (0..50)
                .map(|number| {
                    fibra::spawn(move || {
                        fibra::sleep(Duration::from_micros(number));
                        number
                    })
                })
                .collect();
            let ill: Vec<_> = (0..50).map(|_| fibra::spawn(unwind)).collect();
            ill.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_panic()));
            assert_eq!(well.into_iter().map(|task| task.join().unwrap()).sum::<u64>(), 1225);
        });
    }
}

#[test]
fn a_panic_of_a_detached_task_ends_nothing() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        (0..20).for_each(|_| drop(fibra::spawn(unwind)));
        fibra::sleep(Duration::from_millis(1));
    });
}

#[test]
fn run_goes_on_with_the_panic_of_its_closure() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let payload = panic::catch_unwind(AssertUnwindSafe(|| runtime.run(unwind))).unwrap_err();
    assert_eq!(*payload.downcast::<&str>().unwrap(), "unwound");
    assert_eq!(runtime.run(|| 1), 1);
}

struct PanicsInDrop(Arc<AtomicUsize>);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if !thread::panicking() {
            unwind();
        }
    }
}

#[test]
fn a_panic_in_the_destructor_of_a_detached_result_ends_nothing() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let result = PanicsInDrop(Arc::clone(&drops));
        drop(fibra::spawn(move || result));
        while drops.load(Ordering::SeqCst) == 0 {
            fibra::yield_now();
        }
        fibra::spawn(|| ()).join().unwrap();
    });
}

#[test]
fn a_panic_in_the_destructor_of_a_capture_is_the_panic_of_its_task() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let capture = PanicsInDrop(Arc::clone(&drops));
        let ran = fibra::spawn(move || {
            let _capture = capture;
        });
        assert!(ran.join().unwrap_err().is_panic());
        let capture = PanicsInDrop(Arc::clone(&drops));
        let cancelled = fibra::spawn(move || drop(capture));
        cancelled.task().cancel();
        assert!(cancelled.join().unwrap_err().is_panic());
        assert_eq!(drops.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_panic_in_the_destructor_of_a_payload_ends_nothing() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        for round in 0..4 {
            let payload = PanicsInDrop(Arc::clone(&drops));
            let task = fibra::spawn(move || panic::resume_unwind(Box::new(payload)));
            match round % 2 {
                0 => drop(task),
                _ => drop(task.join().map(drop).unwrap_err()),
            }
            while drops.load(Ordering::SeqCst) <= round {
                fibra::yield_now();
            }
        }
        fibra::spawn(|| ()).join().unwrap();
    });
}

#[test]
fn a_payload_that_throws_another_payload_that_throws_has_an_end() {
    struct Throws;
    impl Drop for Throws {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic::resume_unwind(Box::new(Throws));
            }
        }
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        drop(fibra::spawn(|| panic::resume_unwind(Box::new(Throws))));
        drop(fibra::spawn(|| panic::resume_unwind(Box::new(Throws))).join().map(drop));
        drop(fibra::spawn(|| Throws));
        fibra::sleep(Duration::from_millis(1));
        fibra::spawn(|| ()).join().unwrap();
    });
}

/// Suspends in every way while its task unwinds.
struct SuspendsInDrop(usize);

impl Drop for SuspendsInDrop {
    fn drop(&mut self) {
        assert!(thread::panicking());
        for step in 0..4 {
            match (self.0 + step) % 4 {
                0 => fibra::sleep(Duration::from_micros(self.0 as u64 % 200)),
                1 => fibra::yield_now(),
                2 => fibra::spawn(|| assert!(!thread::panicking())).join().unwrap(),
                _ => fibra::unblock(|| assert!(!thread::panicking())),
            }
            assert!(thread::panicking(), "the panic of this task is its own again");
        }
    }
}

fn storm(workers: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let lock = Arc::new(Mutex::new(0_u64));
    runtime(workers).run(|| {
        let innocents: Vec<_> = (0..20)
            .map(|number| {
                let (stop, lock) = (Arc::clone(&stop), Arc::clone(&lock));
                fibra::spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        assert!(!thread::panicking(), "an innocent sees a panic");
                        *lock.lock().expect("no innocent's mutex is poisoned") += 1;
                        if number % 2 == 0 {
                            fibra::yield_now()
                        } else {
                            fibra::sleep(Duration::from_micros(50))
                        }
                    }
                })
            })
            .collect();
        let unwinding: Vec<_> = (0..1000)
            .map(|number| {
                fibra::spawn(move || {
                    let _outer = SuspendsInDrop(number);
                    let _inner = SuspendsInDrop(number + 1);
                    match number % 3 {
                        0 => task::current().cancel(),
                        1 => unwind(),
                        _ => fibra::sleep(Duration::from_micros(20)),
                    }
                    if number % 3 == 0 {
                        fibra::sleep(LONG);
                    }
                    unwind();
                })
            })
            .collect();
        for (number, task) in unwinding.into_iter().enumerate() {
            let error = task.join().unwrap_err();
            assert_eq!(error.is_cancelled(), number % 3 == 0, "{error}");
        }
        stop.store(true, Ordering::SeqCst);
        innocents.into_iter().for_each(|task| task.join().unwrap());
    });
    assert!(*lock.lock().unwrap() > 0);
}

#[test]
fn a_thousand_tasks_suspended_while_they_unwind_lose_nothing_on_one_worker() {
    let _guard = hang_guard();
    storm(1);
}

#[test]
fn a_thousand_tasks_suspended_while_they_unwind_lose_nothing_on_two_workers() {
    let _guard = hang_guard();
    storm(2);
}

#[test]
fn a_panic_inside_a_destructor_that_runs_in_a_panic_and_is_caught_leaves_the_count_right() {
    struct CatchesInDrop;
    impl Drop for CatchesInDrop {
        fn drop(&mut self) {
            fibra::yield_now();
            let inner = panic::catch_unwind(|| {
                let _inner = SuspendsInDrop(1);
                unwind();
            });
            assert!(inner.is_err());
            fibra::sleep(Duration::from_micros(20));
            assert!(thread::panicking());
        }
    }
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    fibra::spawn(|| {
                        let caught = panic::catch_unwind(|| {
                            let _catches = CatchesInDrop;
                            unwind();
                        });
                        assert!(caught.is_err() && !thread::panicking());
                        fibra::yield_now();
                        assert!(!thread::panicking());
                    })
                })
                .collect();
            while !tasks.iter().all(fibra::JoinHandle::is_finished) {
                assert!(!thread::panicking());
                fibra::yield_now();
            }
            tasks.into_iter().for_each(|task| task.join().unwrap());
        });
    }
}

#[test]
fn a_std_mutex_held_by_a_task_that_panics_is_poisoned_as_ever() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let lock = Arc::new(Mutex::new(()));
        let locked = Arc::clone(&lock);
        let holder = fibra::spawn(move || {
            let _held = locked.lock().unwrap();
            unwind();
        });
        assert!(holder.join().is_err());
        assert!(lock.is_poisoned());
    });
}

#[test]
fn a_local_task_that_panics_gives_its_payload() {
    let _guard = hang_guard();
    runtime(1).run(|| assert!(fibra::spawn_local(unwind).join().unwrap_err().is_panic()));
}
