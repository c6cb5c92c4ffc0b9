//! A started task stays on its worker; a migratable one need not.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::rest::until_others_sleep;
use fibra_runtime::{self as fibra, Task, task};

/// Never inlined, so that no address of a thread-local lives over a suspension of its caller.
#[inline(never)]
fn this_thread() -> ThreadId {
    thread::current().id()
}

thread_local! {
    static LOCAL: RefCell<u64> = const { RefCell::new(0) };
}

/// Unparks the tasks that are sent to it, from a thread of its own.
fn unparker() -> (mpsc::Sender<Task>, thread::JoinHandle<()>) {
    let (send, receive) = mpsc::channel::<Task>();
    (send, thread::spawn(move || receive.into_iter().for_each(|task| task.unpark())))
}

#[test]
fn a_started_task_always_goes_on_on_its_home_thread() {
    let _guard = hang_guard();
    let runtime = runtime(16);
    let (unpark, thread) = unparker();
    let homes = runtime.run(|| {
        let (handle, homes) = (fibra::Handle::current(), Arc::new(Mutex::new(HashSet::new())));
        let tasks: Vec<_> = (0..200_u64)
            .map(|number| {
                let (unpark, homes) = (unpark.clone(), Arc::clone(&homes));
                let body = move || {
                    let home = this_thread();
                    homes.lock().unwrap().insert(home);
                    let local = Rc::new(number);
                    for step in 0..40 {
                        match (number + step) % 5 {
                            0 => fibra::sleep(Duration::from_micros(number * 3)),
                            1 => fibra::yield_now(),
                            2 => {
                                unpark.send(task::current()).unwrap();
                                task::park();
                            }
                            3 => fibra::unblock(|| ()),
                            _ => fibra::spawn(|| ()).join().unwrap(),
                        }
                        assert_eq!(this_thread(), home);
                        assert_eq!(*local, number);
                        LOCAL.with_borrow_mut(|count| *count += 1);
                    }
                };
                match number % 4 {
                    0 => handle.spawn_on_worker(number as usize / 4 % 16, body),
                    _ => fibra::spawn(body),
                }
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        homes.lock().unwrap().len()
    });
    drop(unpark);
    thread.join().unwrap();
    assert_eq!(homes, 16);
}

#[test]
fn a_std_mutex_guard_held_over_a_suspension_stays_valid() {
    let _guard = hang_guard();
    runtime(4).run(|| {
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                fibra::spawn(|| {
                    let mutex = Mutex::new(0);
                    let mut guard = mutex.lock().unwrap();
                    for _ in 0..20 {
                        fibra::sleep(Duration::from_micros(30));
                        *guard += 1;
                    }
                    *guard
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| assert_eq!(task.join().unwrap(), 20));
    });
}

fn compute_a_while() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(2) {
        std::hint::spin_loop();
    }
}

#[test]
fn a_migratable_task_is_seen_on_two_threads() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        // SAFETY: the task keeps nothing that is tied to a thread, and reads its thread's id out of line.
        let wanderer = unsafe { task::Builder::new().migratable() }.spawn(|| {
            let mut threads = HashSet::new();
            while threads.len() < 2 {
                threads.insert(this_thread());
                // While the hog has this worker, the other one has nothing to do.
                drop(fibra::spawn_local(compute_a_while));
                fibra::yield_now();
            }
        });
        wanderer.join().unwrap();
    });
}

#[test]
fn migratable_tasks_keep_their_stack_and_their_wakes() {
    const ROUNDS: usize = 300;
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let (unpark, thread) = unparker();
        runtime.run(|| {
            let tasks: Vec<_> = (0..20_usize)
                .map(|number| {
                    let unpark = unpark.clone();
                    // SAFETY: the task keeps nothing that is tied to a thread.
                    unsafe { task::Builder::new().migratable() }.spawn(move || {
                        let mut values = [number; 32];
                        for round in 0..ROUNDS {
                            match (number + round) % 4 {
                                0 => fibra::yield_now(),
                                1 => fibra::sleep(Duration::from_micros(number as u64)),
                                2 => {
                                    unpark.send(task::current()).unwrap();
                                    task::park();
                                }
                                _ => fibra::unblock(|| values.iter_mut().for_each(|value| *value += 4)),
                            }
                        }
                        values[31] - number
                    })
                })
                .collect();
            tasks.into_iter().for_each(|task| assert_eq!(task.join().unwrap(), ROUNDS));
        });
        drop(unpark);
        thread.join().unwrap();
    }
}

#[test]
fn a_migratable_task_that_unwinds_stays_where_it_is() {
    struct StaysHere(Arc<AtomicUsize>);
    impl Drop for StaysHere {
        fn drop(&mut self) {
            let home = this_thread();
            for _ in 0..50 {
                fibra::yield_now();
                fibra::sleep(Duration::from_micros(20));
                assert!(thread::panicking());
                assert_eq!(this_thread(), home);
            }
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _guard = hang_guard();
    runtime(3).run(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..12)
            .map(|_| {
                let drops = Arc::clone(&drops);
                // SAFETY: before it unwinds the task keeps nothing that is tied to a thread.
                unsafe { task::Builder::new().migratable() }.spawn(move || {
                    let _stays = StaysHere(drops);
                    fibra::yield_now();
                    std::panic::resume_unwind(Box::new(()))
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| assert!(task.join().map(drop).unwrap_err().is_panic()));
        assert_eq!(drops.load(Ordering::SeqCst), 12);
    });
}

/// True if each of two workers has a fifth of them at the least.
fn are_spread(counts: &[usize]) -> bool {
    let all: usize = counts.iter().sum();
    counts.len() == 2 && counts.iter().all(|count| *count >= all / 5)
}

#[test]
fn sleeping_tasks_are_spread_over_the_workers() {
    let _guard = hang_guard();
    let counts = runtime(2).run(|| {
        let homes = Arc::new(Mutex::new(std::collections::HashMap::<ThreadId, usize>::new()));
        let counts = || homes.lock().unwrap().values().copied().collect::<Vec<_>>();
        let trickle = |number: usize| {
            for _ in 0..number {
                let homes = Arc::clone(&homes);
                drop(fibra::spawn(move || {
                    *homes.lock().unwrap().entry(this_thread()).or_default() += 1;
                    fibra::sleep(Duration::from_secs(3600));
                }));
                fibra::sleep(Duration::from_micros(100));
            }
            until_others_sleep();
        };
        trickle(200);
        // What a worker has missed that the machine held back for a while, it gets of those that come next.
        while !are_spread(&counts()) && counts().iter().sum::<usize>() < 2000 {
            trickle(100);
        }
        counts()
    });
    println!("homes: {counts:?}");
    assert_eq!(counts.len(), 2, "connections that trickle in settle on both workers");
    assert!(are_spread(&counts), "{counts:?}");
}

#[test]
fn a_task_spawned_on_a_worker_starts_and_stays_there() {
    let _guard = hang_guard();
    let runtime = runtime(4);
    let handle = runtime.handle();
    let thread_of = |worker| handle.spawn_on_worker(worker, this_thread).join().unwrap();
    let threads: Vec<ThreadId> = (0..handle.workers()).map(thread_of).collect();
    assert_eq!(threads.iter().collect::<HashSet<_>>().len(), 4);
    let spawn_many = |handle: &fibra::Handle| {
        let spawn = |number: usize| {
            let threads = threads.clone();
            handle.spawn_on_worker(number % 4, move || {
                assert_eq!(this_thread(), threads[number % 4]);
                fibra::yield_now();
                fibra::sleep(Duration::from_micros(number as u64));
                assert_eq!(this_thread(), threads[number % 4]);
            })
        };
        let tasks: Vec<_> = (0..400).map(spawn).collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    };
    // From a plain thread, and from tasks of its own.
    spawn_many(&handle);
    runtime.run(|| {
        let spawners = [(), (), ()].map(|()| || spawn_many(&fibra::Handle::current()));
        fibra::scope(|scope| spawners.iter().for_each(|spawn| drop(scope.spawn(spawn))));
    });
}

#[test]
fn a_task_spawned_on_a_worker_of_a_runtime_that_has_ended_is_cancelled() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let handle = runtime.handle();
    runtime.shutdown();
    let (captured, dropped) = mpsc::channel::<()>();
    let task = handle.spawn_on_worker(1, move || drop(captured));
    assert!(task.join().unwrap_err().is_cancelled());
    assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

/// Spawners race with the end: each task either runs or is cancelled, and the runtime ends.
#[test]
fn tasks_spawned_on_workers_while_their_runtime_ends_run_or_are_cancelled() {
    let _guard = hang_guard();
    for round in 0..50 {
        let runtime = runtime(2);
        let handle = runtime.handle();
        let ran = Arc::new(AtomicUsize::new(0));
        let spawner = {
            let ran = Arc::clone(&ran);
            thread::spawn(move || {
                let spawn = |number: usize| {
                    let ran = Arc::clone(&ran);
                    handle.spawn_on_worker(number % 2, move || ran.fetch_add(1, Ordering::SeqCst))
                };
                (0..200).map(spawn).collect::<Vec<_>>()
            })
        };
        if round % 2 == 0 {
            thread::yield_now();
        }
        drop(runtime);
        let joined = spawner.join().unwrap().into_iter().filter_map(|task| task.join().ok()).count();
        assert_eq!(joined, ran.load(Ordering::SeqCst));
    }
}

#[test]
#[should_panic(expected = "there is no worker 2: this runtime has 2, from 0 on")]
fn a_worker_that_is_not_there_is_named() {
    let _guard = hang_guard();
    drop(runtime(2).handle().spawn_on_worker(2, || ()));
}
