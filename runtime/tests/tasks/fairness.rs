//! No task starves: the operation budget, `yield_now`, and the queues that are looked at beside busy tasks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, JoinHandle, Runtime, task, wait};

/// A task beside the caller that counts its turns until it is cancelled.
fn turns_beside() -> (JoinHandle<()>, Rc<Cell<usize>>) {
    let turns = Rc::new(Cell::new(0));
    let count = Rc::clone(&turns);
    let beside = fibra::spawn_local(move || {
        loop {
            count.set(count.get() + 1);
            fibra::yield_now();
        }
    });
    (beside, turns)
}

#[test]
fn a_task_yields_after_128_operations_that_did_not_wait() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (beside, turns) = turns_beside();
        fibra::yield_now();
        for round in 0..100 {
            let before = turns.get();
            (0..127).for_each(|_| wait::charge());
            assert_eq!(turns.get(), before, "not before (round {round})");
            wait::charge();
            assert_eq!(turns.get(), before + 1, "but then (round {round})");
        }
        beside.task().cancel();
    });
}

#[test]
fn a_loop_over_parks_that_find_their_token_starves_no_task() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (beside, turns) = turns_beside();
        while turns.get() < 10 {
            task::current().unpark();
            task::park();
        }
        beside.task().cancel();
    });
}

#[test]
fn a_loop_over_joins_of_finished_tasks_starves_no_task() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let finished: Vec<_> = (0..1000).map(|_| fibra::spawn(|| ())).collect();
        while !finished.iter().all(JoinHandle::is_finished) {
            fibra::yield_now();
        }
        let (beside, turns) = turns_beside();
        finished.into_iter().for_each(|task| task.join().unwrap());
        assert!(turns.get() >= 7, "{} turns beside 1000 joins", turns.get());
        beside.task().cancel();
    });
}

/// Loops over a look on one worker, until another task has run.
fn look_until(look: impl Fn() -> bool) {
    assert!(!look(), "no other task has run yet");
    let looks = (0..10_000).take_while(|_| !look()).count();
    assert!(looks < 10_000, "no other task runs");
}

#[test]
fn a_loop_over_any_look_at_tasks_starves_no_task() {
    let looks: [(&str, fn()); 8] = [
        ("JoinHandle::is_finished", || {
            let task = fibra::spawn(fibra::yield_now);
            look_until(|| task.is_finished());
        }),
        ("ScopedJoinHandle::is_finished", || {
            fibra::scope(|scope| {
                let child = scope.spawn(fibra::yield_now);
                look_until(|| child.is_finished());
            });
        }),
        ("Task::is_finished", || {
            let task = fibra::spawn(fibra::yield_now).task().clone();
            look_until(|| task.is_finished());
        }),
        ("TaskGroup::try_join_next", || {
            let group = fibra::TaskGroup::new();
            group.spawn(fibra::yield_now);
            look_until(|| group.try_join_next().is_some());
        }),
        ("TaskGroup::len", || {
            let (group, _joiner) = joined_beside();
            look_until(|| group.len().eq(&0));
        }),
        ("TaskGroup::is_empty", || {
            let (group, _joiner) = joined_beside();
            look_until(|| group.is_empty());
        }),
        ("task::is_cancelled", || {
            let looking = fibra::spawn(|| look_until(task::is_cancelled));
            let cancelled = looking.task().clone();
            fibra::spawn(move || cancelled.cancel());
            assert!(looking.join().is_ok(), "no point has unwound it");
        }),
        ("CancelToken::is_cancelled", || {
            let token = fibra::CancelToken::new();
            let other = token.clone();
            fibra::spawn(move || other.cancel());
            look_until(|| token.is_cancelled());
        }),
    ];
    let _guard = hang_guard();
    for (name, look) in looks {
        let outcome = std::panic::catch_unwind(|| runtime(1).run(look));
        assert!(outcome.is_ok(), "{name}");
    }
}

/// A group with a task, and another task that joins it.
fn joined_beside() -> (Rc<fibra::TaskGroup<()>>, JoinHandle<()>) {
    let group = Rc::new(fibra::TaskGroup::new());
    group.spawn(fibra::yield_now);
    let joined = Rc::clone(&group);
    (group, fibra::spawn_local(move || joined.join_next().unwrap().unwrap()))
}

#[test]
fn unconstrained_lifts_the_budget_and_puts_it_back() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (beside, turns) = turns_beside();
        fibra::yield_now();
        let before = turns.get();
        let value = task::unconstrained(|| {
            (0..10_000).for_each(|_| wait::charge());
            task::unconstrained(|| (0..1000).for_each(|_| wait::charge()));
            (0..1000).for_each(|_| wait::charge());
            9
        });
        assert_eq!((value, turns.get()), (9, before));
        _ = std::panic::catch_unwind(|| task::unconstrained(|| std::panic::resume_unwind(Box::new(()))));
        (0..257).for_each(|_| wait::charge());
        assert!(turns.get() > before);
        beside.task().cancel();
    });
}

#[test]
fn unconstrained_and_charge_do_nothing_on_a_plain_thread() {
    assert_eq!(task::unconstrained(|| 4), 4);
    (0..1000).for_each(|_| wait::charge());
}

#[test]
fn tasks_that_yield_take_turns_in_their_order() {
    const TASKS: usize = 10;
    let _guard = hang_guard();
    runtime(1).run(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let order = Rc::clone(&order);
                fibra::spawn_local(move || {
                    for _ in 0..300 {
                        order.borrow_mut().push(number);
                        fibra::yield_now();
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        for round in order.borrow().chunks(TASKS) {
            assert_eq!(round, (0..TASKS).collect::<Vec<_>>());
        }
    });
}

/// Tasks that yield for ever, on every worker, until dropped.
struct Spinners(Vec<JoinHandle<()>>);

impl Spinners {
    fn start(count: usize) -> Self {
        let spin = || {
            loop {
                fibra::yield_now();
            }
        };
        Spinners((0..count).map(|_| fibra::spawn(spin)).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.0.iter().for_each(|spinner| spinner.task().cancel());
    }
}

fn beside_spinners(check: impl Fn() + Send + Sync) {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let _spinners = Spinners::start(3 * workers);
            (0..20).for_each(|_| fibra::yield_now());
            check();
        });
    }
}

#[test]
fn new_tasks_run_beside_spinners() {
    beside_spinners(|| {
        let tasks: Vec<_> = (0..200).map(|i| fibra::spawn(move || i)).collect();
        assert_eq!(tasks.into_iter().map(|task| task.join().unwrap()).sum::<i32>(), 19_900);
    });
}

#[test]
fn local_tasks_run_beside_spinners() {
    beside_spinners(|| (0..50).for_each(|_| fibra::spawn_local(|| ()).join().unwrap()));
}

#[test]
fn timers_fire_beside_spinners() {
    beside_spinners(|| (0..5).for_each(|_| fibra::sleep(Duration::from_millis(1))));
}

#[test]
fn wakes_from_threads_arrive_beside_spinners() {
    beside_spinners(|| {
        for _ in 0..20 {
            let me = task::current();
            let waker = thread::spawn(move || me.unpark());
            task::park();
            waker.join().unwrap();
        }
    });
}

#[test]
fn spawns_from_threads_run_beside_spinners() {
    beside_spinners(|| {
        let (handle, ran) = (fibra::Handle::current(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..20 {
            let (handle, ran) = (handle.clone(), Arc::clone(&ran));
            thread::spawn(move || drop(handle.spawn(move || ran.fetch_add(1, Ordering::SeqCst))));
        }
        while ran.load(Ordering::SeqCst) < 20 {
            fibra::yield_now();
        }
    });
}

#[test]
fn the_pool_answers_beside_spinners() {
    beside_spinners(|| assert_eq!(fibra::unblock(|| 11), 11));
}

#[test]
fn started_tasks_run_beside_a_task_that_keeps_spawning() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let stop = Arc::new(AtomicBool::new(false));
            fn breed(stop: Arc<AtomicBool>) {
                if !stop.load(Ordering::SeqCst) {
                    drop(fibra::spawn(move || breed(stop)));
                }
            }
            (0..4).for_each(|_| breed(Arc::clone(&stop)));
            for _ in 0..100 {
                fibra::yield_now();
                fibra::sleep(Duration::from_micros(50));
            }
            stop.store(true, Ordering::SeqCst);
        });
    }
}

#[test]
fn a_yield_lets_everything_run_that_was_spawned_before_it() {
    fn descend(levels: usize, beside: &JoinHandle<()>) {
        let ran: Arc<[AtomicBool; 3]> = Arc::default();
        let spawned: Vec<_> = (0..3)
            .map(|number| {
                let ran = Arc::clone(&ran);
                fibra::spawn(move || ran[number].store(true, Ordering::SeqCst))
            })
            .collect();
        fibra::yield_now();
        assert!(ran.iter().all(|ran| ran.load(Ordering::SeqCst)), "{levels} levels above the last");
        spawned.into_iter().for_each(|task| task.join().unwrap());
        if levels > 0 {
            // The next level runs in a task that has just been started itself.
            let (send, receive) = std::sync::mpsc::channel();
            fibra::spawn_local(move || {
                let (beside, _turns) = turns_beside();
                descend(levels - 1, &beside);
                beside.task().cancel();
                send.send(()).unwrap();
            })
            .join()
            .unwrap();
            receive.recv().unwrap();
        }
        assert!(!beside.is_finished());
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (beside, _turns) = turns_beside();
        descend(4, &beside);
        fibra::spawn(|| {
            let (beside, _turns) = turns_beside();
            descend(4, &beside);
            beside.task().cancel();
        })
        .join()
        .unwrap();
        beside.task().cancel();
    });
    for _ in 0..50 {
        // First of all, and pushed by another thread.
        runtime(1).run(|| {
            let (beside, _turns) = turns_beside();
            descend(1, &beside);
            beside.task().cancel();
        });
    }
}

#[test]
fn un_started_tasks_run_beside_tasks_that_wake_each_other() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let me = task::current();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let other = fibra::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                me.unpark();
                task::park();
            }
        });
        let ran = Arc::new(AtomicBool::new(false));
        let run = Arc::clone(&ran);
        drop(fibra::spawn(move || run.store(true, Ordering::SeqCst)));
        while !ran.load(Ordering::SeqCst) {
            other.task().unpark();
            task::park();
        }
        stop.store(true, Ordering::SeqCst);
        other.task().unpark();
        other.join().unwrap();
    });
}

#[test]
fn un_started_tasks_are_stolen_from_a_worker_that_is_stuck_in_a_loop() {
    let _guard = hang_guard();
    for workers in [2, 8] {
        runtime(workers).run(|| {
            let ran = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..500)
                .map(|number| {
                    let ran = Arc::clone(&ran);
                    let task = fibra::spawn(move || ran.fetch_add(1, Ordering::SeqCst));
                    // Both kinds: held ones and detached ones are placed differently.
                    (number % 2 == 0).then_some(task)
                })
                .collect();
            while ran.load(Ordering::SeqCst) < 500 {
                thread::yield_now();
            }
            tasks.into_iter().flatten().for_each(|task| _ = task.join().unwrap());
        });
    }
}

#[test]
fn tasks_placed_on_a_worker_stuck_in_a_loop_are_stolen_too() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        for _ in 0..20 {
            let (ran, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let hog_stop = Arc::clone(&stop);
            let hog = fibra::spawn(move || {
                while !hog_stop.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            });
            for _ in 0..100 {
                let ran = Arc::clone(&ran);
                drop(fibra::spawn(move || {
                    fibra::sleep(Duration::from_micros(100));
                    ran.fetch_add(1, Ordering::SeqCst);
                }));
            }
            // Should the hog be here, the sleep below only ends when it is through; so it watches the others itself.
            let (watched, stopper) = (Arc::clone(&ran), Arc::clone(&stop));
            let watch = thread::spawn(move || {
                let begin = Instant::now();
                while watched.load(Ordering::SeqCst) < 100 && begin.elapsed() < Duration::from_secs(30) {
                    thread::sleep(Duration::from_micros(100));
                }
                stopper.store(true, Ordering::SeqCst);
                watched.load(Ordering::SeqCst)
            });
            let ran = fibra::unblock(|| watch.join().unwrap());
            hog.join().unwrap();
            assert_eq!(ran, 100);
        }
    });
}

#[test]
fn spawns_from_outside_wake_a_worker_that_is_parked() {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        for round in 0..300 {
            if round % 50 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
            assert_eq!(runtime.spawn(move || round).join().unwrap(), round);
        }
    }
}

fn be_busy(micros: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(micros) {}
}

/// Starts many tasks at once, which take ten microseconds each, and counts those that have started.
fn start_many_tasks(started: &Arc<AtomicUsize>) {
    let start = |_| {
        let started = Arc::clone(started);
        fibra::spawn(move || {
            started.fetch_add(1, Ordering::SeqCst);
            be_busy(10);
        })
    };
    let tasks: Vec<_> = (0..MANY).map(start).collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

const MANY: usize = 2000;

#[test]
fn task_woken_by_a_timer_does_not_wait_for_a_batch_to_start() {
    let _guard = hang_guard();
    for beside_a_spinner in [false, true] {
        runtime(1).run(|| {
            let started = Arc::new(AtomicUsize::new(0));
            let spinner = beside_a_spinner.then(|| turns_beside().0);
            let sleepers = [1, 1, 2].map(|millis| {
                let started = Arc::clone(&started);
                fibra::spawn_local(move || {
                    fibra::sleep(Duration::from_millis(millis));
                    started.load(Ordering::SeqCst)
                })
            });
            fibra::yield_now();
            start_many_tasks(&started);
            for sleeper in sleepers {
                let before = sleeper.join().unwrap();
                assert!(before < MANY / 2, "{before} started before");
            }
            spinner.iter().for_each(|spinner| spinner.task().cancel());
        });
    }
}

#[test]
fn task_woken_while_thieves_take_the_rest_of_a_batch_runs_beside_a_spinner() {
    const ROUNDS: usize = 500;
    const MANY: usize = 8;
    let _guard = hang_guard();
    runtime(2).run(|| {
        for round in 0..ROUNDS {
            let woken = Rc::new(Cell::new(0));
            for _ in 0..2 {
                let woken = Rc::clone(&woken);
                drop(fibra::spawn_local(move || {
                    fibra::sleep(Duration::from_micros(700));
                    woken.set(woken.get() + 1);
                }));
            }
            // At another pick each time, and where the worker looks at timers while many tasks wait.
            (0..90 + round % 38).for_each(|_| drop(fibra::spawn_local(|| ())));
            fibra::yield_now();
            let ran = Arc::new(AtomicUsize::new(0));
            let others = Arc::clone(&ran);
            drop(fibra::spawn(move || {
                be_busy(1000);
                let begun = Instant::now();
                // On this worker it waits for the thief; the other worker leaves the rest.
                while others.load(Ordering::SeqCst) < MANY && begun.elapsed() < Duration::from_millis(2) {}
            }));
            for _ in 0..MANY {
                let ran = Arc::clone(&ran);
                drop(fibra::spawn(move || ran.fetch_add(1, Ordering::SeqCst)));
            }
            let mut yields = 0;
            while woken.get() < 2 {
                yields += 1;
                assert!(yields < 1_000_000, "round {round}");
                fibra::yield_now();
            }
        }
    });
}

#[test]
fn many_tasks_start_beside_timers_that_are_always_due() {
    const SLEEPERS: usize = 400;
    let _guard = hang_guard();
    runtime(1).run(|| {
        let sleep = |_| {
            fibra::spawn_local(|| {
                loop {
                    fibra::sleep(Duration::from_nanos(1));
                    be_busy(2);
                }
            })
        };
        let sleepers: Vec<_> = (0..SLEEPERS).map(sleep).collect();
        fibra::yield_now();
        start_many_tasks(&Arc::default());
        sleepers.iter().for_each(|sleeper| sleeper.task().cancel());
    });
}

/// Keeps all workers but the first from suspending until the check is through, and the first one busy with yields, so that
/// none of them idles. A task is spawned on the first, or on one that is stuck from the next moment on.
fn beside_stuck_workers(on_the_first: bool) {
    let _guard = hang_guard();
    for workers in [2, 4] {
        let runtime = runtime(workers);
        let (ran, stuck) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let spawn = {
            let ran = Arc::clone(&ran);
            move || drop(fibra::spawn(move || ran.store(true, Ordering::SeqCst)))
        };
        let (handle, mut tasks) = (runtime.handle(), Vec::new());
        for worker in 1..workers {
            let (spawn, ran, stuck) = (spawn.clone(), Arc::clone(&ran), Arc::clone(&stuck));
            tasks.push(handle.spawn_on_worker(worker, move || {
                if !on_the_first && worker == 1 {
                    spawn();
                }
                stuck.fetch_add(1, Ordering::SeqCst);
                while !ran.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            }));
        }
        // Enough of them for a task that starts beside them to be placed elsewhere.
        for number in 0..8 {
            let (spawn, ran, stuck) = (spawn.clone(), Arc::clone(&ran), Arc::clone(&stuck));
            tasks.push(handle.spawn_on_worker(0, move || {
                while stuck.load(Ordering::SeqCst) < workers - 1 {
                    fibra::yield_now();
                }
                if on_the_first && number == 0 {
                    spawn();
                }
                while !ran.load(Ordering::SeqCst) {
                    fibra::yield_now();
                }
            }));
        }
        tasks.into_iter().for_each(|task| task.join().unwrap());
    }
}

#[test]
fn tasks_placed_on_a_stuck_worker_are_taken_by_a_busy_worker_where_none_idles() {
    beside_stuck_workers(true);
}

#[test]
fn tasks_spawned_by_a_stuck_worker_are_taken_by_a_busy_worker_where_none_idles() {
    beside_stuck_workers(false);
}
