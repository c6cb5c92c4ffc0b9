//! The end of a runtime, met by a task in every state and brought about in every way.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::ledger::{Entry, Ledger};
use fibra_runtime::structured::Either;
use fibra_runtime::{self as fibra, Builder, CancelToken, Runtime, task};

const LONG: Duration = Duration::from_secs(3600);

/// Brings a task into the state that a test is about; runs inside a task.
type Scene = fn(&Arc<Ledger>);

/// Ends a runtime in each of the ways that there are, with the scene set, and checks that every destructor has run.
fn every_end_meets(scene: Scene) {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let builder = || Runtime::builder().workers(workers).max_blocking_threads(2);
        for end in [by_drop, by_drop_in_a_task, by_return, by_timeout] {
            let ledger = Arc::new(Ledger::default());
            end(builder(), scene, &ledger);
            ledger.check();
        }
    }
}

fn by_drop(builder: Builder, scene: Scene, ledger: &Arc<Ledger>) {
    let runtime = builder.build().unwrap();
    runtime.run(|| scene(ledger));
    drop(runtime);
}

fn by_drop_in_a_task(builder: Builder, scene: Scene, ledger: &Arc<Ledger>) {
    let runtime = builder.build().unwrap();
    let handle = runtime.handle();
    let ending = Arc::clone(ledger);
    let ender = handle.spawn(move || {
        scene(&ending);
        drop(runtime);
    });
    ender.join().unwrap();
    ledger.wait_until_even();
}

fn by_return(builder: Builder, scene: Scene, ledger: &Arc<Ledger>) {
    builder.run(|| scene(ledger)).unwrap();
}

fn by_timeout(builder: Builder, scene: Scene, ledger: &Arc<Ledger>) {
    let runtime = builder.build().unwrap();
    runtime.run(|| scene(ledger));
    assert!(runtime.shutdown_timeout(LONG).is_empty());
}

/// Spawns `body` with an entry on its stack, and waits until it has begun and had a moment to fall asleep.
fn spawn_and_let_begin(ledger: &Arc<Ledger>, body: impl FnOnce() + Send + 'static) {
    let (entry, begun) = (ledger.entry_of_a_task(), Arc::new(AtomicBool::new(false)));
    let begin = Arc::clone(&begun);
    drop(fibra::spawn(move || {
        let _entry = entry;
        begin.store(true, Ordering::SeqCst);
        body();
    }));
    while !begun.load(Ordering::SeqCst) {
        fibra::sleep(Duration::from_micros(50));
    }
}

#[test]
fn a_runtime_without_tasks_ends() {
    let _guard = hang_guard();
    [1, 2, 4].map(runtime).into_iter().for_each(Runtime::shutdown);
}

#[test]
fn a_task_in_the_deque_ends() {
    every_end_meets(|ledger| {
        for _ in 0..20 {
            let entry = ledger.entry_of_a_task();
            drop(fibra::spawn(move || drop(entry)));
        }
    });
}

#[test]
fn a_task_in_the_global_queue_ends() {
    every_end_meets(|ledger| {
        let (handle, entries) = (fibra::Handle::current(), [0; 20].map(|_| ledger.entry_of_a_task()));
        // This thread is stuck meanwhile, so with one worker they are still queued at the end.
        let spawn = move || entries.into_iter().for_each(|entry| drop(handle.spawn(move || drop(entry))));
        thread::spawn(spawn).join().unwrap();
    });
}

#[test]
fn a_task_placed_on_another_worker_ends() {
    every_end_meets(|ledger| {
        for _ in 0..60 {
            let entry = ledger.entry_of_a_task();
            drop(fibra::spawn(move || {
                let _entry = entry;
                fibra::sleep(LONG);
            }));
        }
        fibra::yield_now();
    });
}

#[test]
fn a_task_in_the_inbox_of_a_stuck_worker_ends() {
    every_end_meets(|ledger| {
        let (entry, begun) = (ledger.entry_at_home(), Rc::new(Cell::new(false)));
        let begin = Rc::clone(&begun);
        let sleeper = fibra::spawn_local(move || {
            let _entry = entry;
            begin.set(true);
            task::park();
            fibra::sleep(LONG);
        });
        while !begun.get() {
            fibra::yield_now();
        }
        // This worker is stuck until the wake is there, and where this task begins the end it has not looked yet.
        let task = sleeper.task().clone();
        thread::spawn(move || task.unpark()).join().unwrap();
    });
}

#[test]
fn a_task_in_the_inbox_of_a_worker_that_is_stuck_beyond_the_beginning_of_the_end_ends() {
    every_end_meets(|ledger| {
        let handle = fibra::Handle::current();
        let (last, woken) = (handle.workers() - 1, Arc::new(AtomicBool::new(false)));
        let (entry, woke) = (ledger.entry_of_a_task(), Arc::clone(&woken));
        let sleeper = handle.spawn_on_worker(last, move || {
            let _entry = entry;
            task::park();
            fibra::sleep(LONG);
        });
        let task = sleeper.task().clone();
        drop(handle.spawn_on_worker(last, move || {
            thread::spawn(move || task.unpark()).join().unwrap();
            woke.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
        }));
        while !woken.load(Ordering::SeqCst) {
            fibra::yield_now();
        }
    });
}

#[test]
fn a_task_in_a_loop_of_yields_ends() {
    every_end_meets(|ledger| {
        spawn_and_let_begin(ledger, || {
            loop {
                fibra::yield_now();
            }
        });
    });
}

#[test]
fn a_task_that_computes_ends_at_its_next_point() {
    every_end_meets(|ledger| {
        let begun = Arc::new(AtomicBool::new(false));
        let (entry, begin) = (ledger.entry_of_a_task(), Arc::clone(&begun));
        drop(fibra::spawn(move || {
            let _entry = entry;
            begin.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
            fibra::sleep(LONG);
        }));
        // Seen at once where there are two workers; where there is one, after the computation.
        while !begun.load(Ordering::SeqCst) {
            fibra::yield_now();
        }
    });
}

#[test]
fn a_task_asleep_for_a_time_ends() {
    every_end_meets(|ledger| (0..10).for_each(|_| spawn_and_let_begin(ledger, || fibra::sleep(LONG))));
}

#[test]
fn a_task_asleep_for_ever_ends() {
    every_end_meets(|ledger| spawn_and_let_begin(ledger, || fibra::sleep(Duration::MAX)));
}

#[test]
fn a_parked_task_ends() {
    every_end_meets(|ledger| spawn_and_let_begin(ledger, task::park));
}

#[test]
fn a_task_that_joins_another_ends() {
    every_end_meets(|ledger| {
        let inner = ledger.entry_of_a_task();
        spawn_and_let_begin(ledger, move || {
            let sleeper = fibra::spawn(move || {
                let _entry = inner;
                fibra::sleep(LONG);
            });
            _ = sleeper.join();
        });
    });
}

#[test]
fn a_task_ends_after_its_closure_on_the_pool() {
    every_end_meets(|ledger| {
        let (entry, inner) = (ledger.entry_of_a_task(), ledger.entry());
        let started = Arc::new(AtomicBool::new(false));
        let start = Arc::clone(&started);
        drop(fibra::spawn(move || {
            let entry = entry;
            let kept = inner;
            fibra::unblock(|| {
                start.store(true, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(5));
                // Borrowed from the task's stack, which is still there.
                _ = (&entry, &kept);
            });
        }));
        while !started.load(Ordering::SeqCst) {
            fibra::sleep(Duration::from_micros(50));
        }
    });
}

#[test]
fn a_task_with_a_closure_that_waits_for_a_thread_ends() {
    every_end_meets(|ledger| {
        for _ in 0..2 {
            let entry = ledger.entry();
            drop(fibra::spawn_blocking(move || {
                thread::sleep(Duration::from_millis(5));
                drop(entry);
            }));
        }
        let entry = ledger.entry();
        spawn_and_let_begin(ledger, move || fibra::unblock(|| drop(entry)));
    });
}

#[test]
fn blocking_tasks_that_run_end_and_those_in_line_are_dropped() {
    every_end_meets(|ledger| {
        for _ in 0..10 {
            let entry = ledger.entry();
            drop(fibra::spawn_blocking(move || {
                let _entry = entry;
                thread::sleep(Duration::from_millis(1));
            }));
        }
    });
}

#[test]
fn the_captures_of_a_local_task_that_never_ran_are_dropped_at_home() {
    every_end_meets(|ledger| {
        for _ in 0..10 {
            let entry = Rc::new(ledger.entry_at_home());
            drop(fibra::spawn_local(move || drop(entry)));
        }
    });
}

struct SleepsInDrop(Option<Entry>);

impl Drop for SleepsInDrop {
    fn drop(&mut self) {
        fibra::sleep(Duration::from_millis(3));
        fibra::spawn(|| ()).join().map_or_else(|error| assert!(error.is_cancelled()), drop);
        fibra::yield_now();
        drop(self.0.take());
    }
}

#[test]
fn a_task_that_sleeps_while_it_unwinds_ends_after_its_destructors() {
    every_end_meets(|ledger| {
        let sleeps = SleepsInDrop(Some(ledger.entry_of_a_task()));
        spawn_and_let_begin(ledger, move || {
            let _sleeps = sleeps;
            panic::resume_unwind(Box::new(()));
        });
    });
}

#[test]
fn a_task_ends_after_its_destructors_that_sleep_in_the_cancellation() {
    every_end_meets(|ledger| {
        let sleeps = [0; 5].map(|_| SleepsInDrop(Some(ledger.entry_of_a_task())));
        spawn_and_let_begin(ledger, move || {
            let _sleeps = sleeps;
            fibra::sleep(LONG);
        });
    });
}

#[test]
fn a_task_that_swallows_its_cancellation_is_cancelled_again() {
    every_end_meets(|ledger| {
        spawn_and_let_begin(ledger, || {
            for _ in 0..10 {
                _ = panic::catch_unwind(|| fibra::sleep(LONG));
            }
        });
    });
}

#[test]
fn task_spawned_during_the_end_ends_too() {
    struct SpawnsInDrop(Option<(Entry, Entry)>);
    impl Drop for SpawnsInDrop {
        fn drop(&mut self) {
            let (first, second) = self.0.take().unwrap();
            drop(fibra::spawn(move || drop(first)));
            drop(fibra::spawn_local(move || drop(second)));
        }
    }
    every_end_meets(|ledger| {
        let spawns = SpawnsInDrop(Some((ledger.entry_of_a_task(), ledger.entry_of_a_task())));
        spawn_and_let_begin(ledger, move || {
            let _spawns = spawns;
            fibra::sleep(LONG);
        });
    });
}

#[test]
fn results_of_detached_tasks_are_dropped_and_those_of_kept_handles_stay() {
    every_end_meets(|ledger| {
        let detached = ledger.entry_of_a_task();
        drop(fibra::spawn(move || detached));
        let kept = ledger.entry();
        let handle = fibra::spawn(move || kept);
        while !handle.is_finished() {
            fibra::yield_now();
        }
        // Dropped by the thread that the handle was sent to, perhaps after the end.
        thread::spawn(move || drop(handle)).join().unwrap();
    });
}

#[test]
fn a_migratable_task_ends() {
    every_end_meets(|ledger| {
        for number in 0..10 {
            let entry = ledger.entry_of_a_task();
            // SAFETY: the task keeps nothing that is tied to a thread.
            drop(unsafe { task::Builder::new().migratable() }.spawn(move || {
                let _entry = entry;
                loop {
                    fibra::yield_now();
                    fibra::sleep(Duration::from_micros(number * 20));
                }
            }));
        }
        fibra::sleep(Duration::from_millis(1));
    });
}

#[test]
fn tasks_in_all_states_end() {
    every_end_meets(|ledger| {
        for number in 0..200_u64 {
            let entry = ledger.entry_of_a_task();
            drop(fibra::spawn(move || {
                let _entry = entry;
                match number % 5 {
                    0 => fibra::sleep(Duration::from_micros(number * 10)),
                    1 => task::park(),
                    2 => fibra::unblock(|| thread::sleep(Duration::from_micros(number))),
                    3 => _ = fibra::spawn(|| fibra::sleep(LONG)).join(),
                    _ => (0..number).for_each(|_| fibra::yield_now()),
                }
            }));
        }
        fibra::sleep(Duration::from_micros(300));
    });
}

#[test]
fn a_destructor_that_races_joins_and_loops_has_its_values() {
    struct Races;
    impl Drop for Races {
        fn drop(&mut self) {
            let soon = || fibra::sleep(Duration::from_micros(300));
            assert_eq!(fibra::race(soon, task::park), Either::Left(()));
            fibra::join(soon, || fibra::join(soon, soon));
            fibra::parallel_for(0..10, |_| fibra::join(soon, soon).0);
        }
    }
    every_end_meets(|ledger| {
        for _ in 0..5 {
            spawn_and_let_begin(ledger, || {
                let _races = Races;
                fibra::sleep(LONG);
            });
        }
    });
}

#[test]
fn shielded_task_races_and_joins_to_its_end() {
    fn races() {
        assert_eq!(fibra::race(|| fibra::sleep(Duration::from_millis(3)), task::park), Either::Left(()));
    }
    fn joins() {
        let soon = || fibra::sleep(Duration::from_millis(3));
        fibra::join(soon, || fibra::join(soon, soon));
    }
    every_end_meets(|ledger| {
        let bodies: [fn(); 6] = [
            races,
            joins,
            || fibra::timeout(LONG, races).unwrap(),
            || fibra::timeout(LONG, joins).unwrap(),
            || CancelToken::new().scope(races).unwrap(),
            || CancelToken::new().scope(joins).unwrap(),
        ];
        for (number, body) in bodies.into_iter().enumerate() {
            let noted = Arc::clone(ledger);
            spawn_and_let_begin(ledger, move || {
                if panic::catch_unwind(|| task::shield(body)).is_err() {
                    noted.wrong(format!("body {number} was unwound"));
                }
            });
        }
    });
}

#[test]
fn a_panic_of_the_first_task_comes_out_after_the_others_have_unwound() {
    let _guard = hang_guard();
    let ledger = Arc::new(Ledger::default());
    let ran = panic::catch_unwind(AssertUnwindSafe(|| {
        Runtime::builder().workers(2).run(|| {
            spawn_and_let_begin(&ledger, || fibra::sleep(LONG));
            panic::resume_unwind(Box::new("the first"))
        })
    }));
    assert_eq!(*ran.unwrap_err().downcast::<&str>().unwrap(), "the first");
    ledger.check();
}
