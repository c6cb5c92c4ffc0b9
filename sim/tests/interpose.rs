//! Promises of `interpose!`.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fibra::net::{TcpListener, TcpStream};
use fibra_sim::{Failure, Schedule, Sim, allow_threads, host, net, random};

fibra_sim::interpose!();

const HOUR: Duration = Duration::from_secs(3600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// The first second of 2024.
const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// Runs `program` in a simulation with that seed, and returns its result.
fn run<T: Send + 'static>(seed: u64, program: impl Fn() -> T + Send + Sync + 'static) -> T {
    run_as(Sim::builder().seed(seed), program)
}

fn run_as<T: Send + 'static>(sim: fibra_sim::Builder, program: impl Fn() -> T + Send + Sync + 'static) -> T {
    let told = Arc::new(Mutex::new(None));
    let place = Arc::clone(&told);
    sim.run(move || *place.lock().unwrap() = Some(program()));
    told.lock().unwrap().take().unwrap()
}

/// Returns why `program` fails.
fn failure(program: impl Fn() + Send + Sync + 'static) -> Failure {
    Sim::builder().build().try_run(program).expect_err("it is to fail")
}

/// Runs `f` in a task named `culprit`.
fn in_culprit(f: impl FnOnce() + Send + 'static) {
    fibra::task::Builder::new().name("culprit").spawn(f).join().unwrap();
}

/// The orders of two hash maps.
fn orders() -> (Vec<u32>, Vec<u32>) {
    let set = || HashSet::<u32>::from_iter(0..100).into_iter().collect();
    (set(), set())
}

#[test]
fn std_sleep_and_std_instant_are_virtual() {
    let begin = Instant::now();
    let report = Sim::builder().run(|| {
        let begin = Instant::now();
        assert_eq!(begin, fibra::time::now());
        let other = fibra::spawn(|| {
            thread::sleep(2 * HOUR);
            Instant::now()
        });
        thread::sleep(HOUR);
        assert_eq!(Instant::now(), fibra::time::now());
        assert!((HOUR..HOUR + MILLISECOND).contains(&begin.elapsed()), "tasks sleep side by side");
        assert!(other.join().unwrap() - begin >= 2 * HOUR);
    });
    assert!(report.elapsed() >= 2 * HOUR && begin.elapsed() < HOUR);
}

#[test]
fn system_time_is_that_of_the_run() {
    let times = || {
        let begin = SystemTime::now();
        thread::sleep(HOUR);
        [begin, SystemTime::now()].map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap())
    };
    let seen = run(1, times);
    assert_eq!(seen[0], EPOCH);
    assert!((HOUR..HOUR + MILLISECOND).contains(&(seen[1] - EPOCH)));
    assert_eq!(seen, run(2, times));
}

#[test]
fn the_order_of_a_hash_map_is_the_seeds() {
    let first = run(0, orders);
    assert_eq!(first, run(0, orders));
    assert_ne!(first.0, first.1, "as in any program, each map has keys of its own");
    assert!((1..=10).any(|seed| run(seed, orders) != first), "another seed, another order");
}

#[test]
fn other_chance_leaves_the_order_of_a_hash_map() {
    let first = run(0, orders);
    let drawn = || {
        random();
        fibra::spawn(random).join().unwrap();
        orders()
    };
    assert_eq!(first, run(0, drawn));
    assert_eq!(first, run_as(Sim::builder().schedule(Schedule::Fifo), orders));
}

#[test]
fn a_program_that_depends_on_hash_maps_and_instants_is_deterministic() {
    let report = Sim::builder().seed(5).check_determinism(true).run(|| {
        let begin = Instant::now();
        let tasks: Vec<_> = orders()
            .0
            .into_iter()
            .map(|n| {
                fibra::spawn(move || {
                    thread::sleep(n * MILLISECOND);
                    (0..begin.elapsed().as_millis() % 3).for_each(|_| fibra::yield_now());
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
    assert!(report.elapsed() >= 99 * MILLISECOND);
}

#[test]
fn hosts_and_their_network_live_by_std_time() {
    let report = Sim::builder().seed(2).check_determinism(true).run(|| {
        net::loss(0.3);
        let server = host("server", || {
            let listener = TcpListener::bind("0.0.0.0:80").unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            thread::sleep(HOUR);
            let order = orders().0;
            stream.write_all(format!("{order:?}").as_bytes()).unwrap();
        });
        thread::sleep(MILLISECOND);
        let (begin, mut told) = (Instant::now(), String::new());
        TcpStream::connect("server:80").unwrap().read_to_string(&mut told).unwrap();
        assert!(begin.elapsed() >= HOUR && told.len() > 100);
        server.join();
    });
    assert!(report.elapsed() >= HOUR);
}

#[test]
fn a_real_thread_is_refused_by_name() {
    let panics = failure(|| in_culprit(|| drop(thread::spawn(|| ()))));
    let handled = failure(|| in_culprit(|| assert!(thread::Builder::new().spawn(|| ()).is_err())));
    for failure in [panics, handled] {
        assert!(failure.reason().starts_with("task 'culprit' starts a thread of the system"), "{failure}");
    }
}

#[test]
fn a_real_thread_may_be_allowed() {
    let report = Sim::builder().run(|| {
        allow_threads(|| {
            let (sender, receiver) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let begin = Instant::now();
                    thread::sleep(MILLISECOND);
                    assert!(begin.elapsed() >= MILLISECOND, "it lives by the machine's clock");
                    sender.send(fibra::task::try_current().is_none()).unwrap();
                });
                assert_eq!(receiver.recv(), Ok(true));
            });
            let begin = Instant::now();
            assert!(receiver.recv_timeout(3 * MILLISECOND).is_err());
            assert!(begin.elapsed() >= 3 * MILLISECOND, "its limit passes in virtual time");
        });
    });
    assert!(report.elapsed() < HOUR);
    let other = failure(|| allow_threads(|| in_culprit(|| drop(thread::spawn(|| ())))));
    assert!(
        other.reason().starts_with("task 'culprit' starts a thread"),
        "only the calling task may: {other}"
    );
}

#[test]
fn threads_outside_a_simulation_work() {
    let begin = Instant::now();
    Sim::builder().run(|| thread::sleep(HOUR));
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        thread::park_timeout(MILLISECOND);
        sender.send(orders()).unwrap();
    });
    let theirs = receiver.recv().unwrap();
    thread.join().unwrap();
    assert!(receiver.recv_timeout(MILLISECOND).is_err());
    assert_ne!(theirs, run(0, orders));
    assert!((MILLISECOND..HOUR).contains(&begin.elapsed()));
}

#[test]
fn std_sleep_outside_a_simulation_is_real() {
    let (begin, day) = (Instant::now(), SystemTime::now());
    thread::sleep(2 * MILLISECOND);
    assert!(begin.elapsed() >= 2 * MILLISECOND);
    assert!(day > SystemTime::UNIX_EPOCH + EPOCH + 24 * HOUR);
    // Virtual time alone makes no simulation.
    let elapsed = fibra::Runtime::builder().start_paused(true).run(|| {
        let begin = Instant::now();
        fibra::sleep(HOUR);
        begin.elapsed()
    });
    assert!(elapsed.unwrap() < HOUR);
}

#[test]
fn a_std_mutex_that_is_held_over_a_suspension_is_refused_by_name() {
    let failure = failure(|| {
        let lock = Arc::new(Mutex::new(()));
        let held = Arc::clone(&lock);
        let holder = fibra::spawn(move || {
            let _held = held.lock().unwrap_or_else(PoisonError::into_inner);
            fibra::sleep(HOUR);
        });
        fibra::sleep(MILLISECOND);
        in_culprit(move || drop(lock.lock().unwrap()));
        holder.join().unwrap();
    });
    assert!(failure.reason().starts_with("task 'culprit' waits for a lock"), "{failure}");
}

#[test]
fn timed_waits_of_std_are_refused_by_name() {
    let waits: [fn(); 3] = [
        || thread::park_timeout(MILLISECOND),
        || {
            let (_sender, receiver) = mpsc::channel::<()>();
            _ = receiver.recv_timeout(MILLISECOND);
        },
        || {
            let (lock, changed) = (Mutex::new(()), Condvar::new());
            drop(changed.wait_timeout(lock.lock().unwrap(), MILLISECOND));
        },
    ];
    for wait in waits {
        let failure = failure(move || in_culprit(wait));
        assert!(failure.reason().contains("task 'culprit' waits for a lock, a condition"), "{failure}");
    }
    // What does not wait is free.
    Sim::builder().run(|| {
        let (sender, receiver) = mpsc::channel();
        sender.send(1).unwrap();
        assert_eq!(receiver.recv_timeout(MILLISECOND), Ok(1));
        assert!(receiver.recv_timeout(Duration::ZERO).is_err());
        thread::park_timeout(Duration::ZERO);
    });
}

#[test]
fn a_std_mutex_that_another_thread_holds_is_waited_for() {
    static LOCK: Mutex<()> = Mutex::new(());
    static WANTED: AtomicBool = AtomicBool::new(false);
    let (held, is_held) = mpsc::channel();
    let holder = thread::spawn(move || {
        let _held = LOCK.lock();
        held.send(()).unwrap();
        while !WANTED.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        thread::sleep(20 * MILLISECOND);
    });
    is_held.recv().unwrap();
    let report = Sim::builder().run(|| {
        WANTED.store(true, Ordering::Relaxed);
        drop(LOCK.lock());
    });
    holder.join().unwrap();
    assert_eq!(report.elapsed(), Duration::ZERO);
}

#[test]
fn a_cancelled_task_sleeps_to_its_end() {
    struct Sleepy;
    impl Drop for Sleepy {
        fn drop(&mut self) {
            thread::sleep(HOUR);
        }
    }
    let report = Sim::builder().run(|| {
        let late = fibra::timeout(MILLISECOND, || {
            let _sleepy = Sleepy;
            thread::sleep(HOUR);
            fibra::yield_now();
        });
        assert!(late.is_err());
    });
    assert!(report.elapsed() >= 2 * HOUR);
}

#[test]
fn limits_end_a_run_that_sleeps_by_std() {
    let late = Sim::builder().time_limit(HOUR).build().try_run(|| thread::sleep(2 * HOUR)).unwrap_err();
    assert!(late.reason().contains("time limit"), "{late}");
    let endless = || {
        loop {
            thread::sleep(MILLISECOND);
        }
    };
    let counted = Sim::builder().max_steps(1000).build().try_run(endless).unwrap_err();
    assert!(counted.reason().contains("more than 1000 steps"), "{counted}");
}

#[test]
fn what_cannot_go_on_is_told_by_name() {
    let spins = failure(|| {
        in_culprit(|| {
            let begin = Instant::now();
            while begin.elapsed() < MILLISECOND {}
        });
    });
    assert!(spins.reason().starts_with("task 'culprit' waits for the clock in a loop"), "{spins}");
    let forbidden = failure(|| {
        in_culprit(|| {
            let _here = fibra::task::forbid_suspend();
            thread::sleep(MILLISECOND);
        });
    });
    assert!(forbidden.reason().starts_with("task 'culprit' calls a sleep of std"), "{forbidden}");
}
