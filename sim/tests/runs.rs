//! Promises of a single simulated run.

#[path = "../../runtime/tests/common/message.rs"]
mod message;

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibra::sync::channel::bounded;
use fibra_sim::{Schedule, Sim, random, replay};
use message::message;

const HOUR: Duration = Duration::from_secs(3600);

/// Five tasks note their order, over a channel and sleeps.
fn in_some_order() -> Vec<u32> {
    let (sender, receiver) = bounded(2);
    let tasks: Vec<_> = (0..5)
        .map(|n| {
            let sender = sender.clone();
            fibra::spawn(move || {
                fibra::sleep(Duration::from_millis(random() % 4));
                (0..3).for_each(|_| sender.send(n).unwrap());
            })
        })
        .collect();
    drop(sender);
    let order = receiver.iter().collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    order
}

/// Two ends of a place for what a run tells.
fn slot<T: Default>() -> (Arc<Mutex<T>>, Arc<Mutex<T>>) {
    let place = Arc::new(Mutex::new(T::default()));
    (Arc::clone(&place), place)
}

fn order_of(seed: u64) -> (Vec<u32>, u64) {
    let (order, told) = slot();
    let report = Sim::builder().seed(seed).run(move || *told.lock().unwrap() = in_some_order());
    (order.lock().unwrap().clone(), report.fingerprint())
}

#[test]
fn a_simulation_is_in_virtual_time() {
    let report = Sim::builder().run(|| fibra::sleep(HOUR));
    assert!(report.elapsed() >= HOUR && report.steps() > 0);
}

#[test]
fn the_seed_decides_the_order() {
    let orders: Vec<_> = (0..20).map(order_of).collect();
    assert_eq!(orders, (0..20).map(order_of).collect::<Vec<_>>());
    assert!(orders.iter().any(|order| *order != orders[0]), "another seed, another order");
}

#[test]
fn fifo_keeps_the_order_of_readiness() {
    let (seen, told) = slot::<Vec<u32>>();
    Sim::builder().seed(9).schedule(Schedule::Fifo).run(move || {
        let children: Vec<_> = (0..10).map(|n| fibra::spawn(move || n)).collect();
        (0..2).for_each(|_| fibra::yield_now());
        assert!(children.iter().all(|child| child.is_finished()));
        told.lock().unwrap().extend(children.into_iter().map(|child| child.join().unwrap()));
    });
    assert_eq!(*seen.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

const CHILD: &str = "FIBRA_SIM_TEST_PRINTS_TRACES";

#[test]
fn the_same_seed_gives_the_same_trace_in_two_processes_over_a_thousand_seeds() {
    let trace = || {
        // FNV over all fingerprints.
        (0..1000).fold(7_u64, |hash, seed| (hash ^ order_of(seed).1).wrapping_mul(0x0100_0000_01b3))
    };
    if env::var_os(CHILD).is_some() {
        return println!("traces: {}", trace());
    }
    let name = "the_same_seed_gives_the_same_trace_in_two_processes_over_a_thousand_seeds";
    let child = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains(&format!("traces: {}\n", trace())), "{said}");
}

#[test]
fn a_failure_is_told_with_the_line_that_repeats_it() {
    let program = || {
        let order = in_some_order();
        assert!(order.is_sorted(), "out of order: {order:?}");
    };
    let failure = (0..100).find_map(|seed| Sim::builder().seed(seed).build().try_run(program).err());
    let failure = failure.expect("some seed mixes them");
    let text = failure.to_string();
    assert!(text.contains("main") && text.contains("out of order"), "{text}");
    let line =
        format!("replay with FIBRA_SIM_SEED={} FIBRA_SIM_REPLAY={}", failure.seed(), failure.schedule());
    assert!(text.ends_with(&line), "{text}");
    let again = message(|| replay(failure.seed(), failure.schedule(), program));
    assert_eq!(again, text, "a schedule string replays");
}

#[test]
fn the_environment_repeats_a_run() {
    if env::var_os("FIBRA_SIM_SEED").is_some() {
        let (order, told) = slot();
        let report = Sim::builder().seed(1).run(move || *told.lock().unwrap() = in_some_order());
        return println!("seed {} order {:?}", report.seed(), order.lock().unwrap());
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["the_environment_repeats_a_run", "--exact", "--nocapture"])
        .env("FIBRA_SIM_SEED", "17")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains(&format!("seed 17 order {:?}", order_of(17).0)), "{said}");
}

#[test]
fn the_environment_replays_by_choices_and_by_name() {
    const CHILD: &str = "FIBRA_SIM_TEST_REPLAYS";
    if env::var_os(CHILD).is_some() {
        let (order, told) = slot();
        Sim::builder().run(move || *told.lock().unwrap() = in_some_order());
        return println!("order {:?}", order.lock().unwrap());
    }
    let choices = if cfg!(fibra_sim) { "1p:0=2,3=1" } else { "1:0=2,3=1" };
    for schedule in ["random", "fifo", "pct(3,500)", choices] {
        let (order, told) = slot();
        replay(17, schedule, move || *told.lock().unwrap() = in_some_order());
        let child = Command::new(env::current_exe().unwrap())
            .args(["the_environment_replays_by_choices_and_by_name", "--exact", "--nocapture"])
            .envs([("FIBRA_SIM_SEED", "17"), ("FIBRA_SIM_REPLAY", schedule), (CHILD, "1")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains(&format!("order {:?}", order.lock().unwrap())), "{schedule}: {said}");
    }
}

#[test]
fn a_deadlock_is_a_failure_that_lists_all_waits() {
    let failure = Sim::builder().build().try_run(fibra::task::park).unwrap_err();
    assert!(failure.reason().contains("all tasks sleep") && failure.reason().contains("park"), "{failure}");
    let after_a_panic = Sim::builder().build().try_run(|| {
        assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
        fibra::task::park();
    });
    assert!(after_a_panic.unwrap_err().reason().starts_with("all tasks sleep"));
}

#[test]
fn tasks_that_wait_for_locks_in_a_circle_fail_the_run() {
    let program = || {
        let locks = Arc::new([fibra::sync::Mutex::new(()), fibra::sync::Mutex::new(())]);
        let tasks = [0, 1].map(|n| {
            let locks = Arc::clone(&locks);
            fibra::spawn(move || {
                let _first = locks[n].lock();
                fibra::sleep(Duration::from_millis(1));
                let _second = locks[1 - n].lock();
            })
        });
        for task in tasks {
            task.join().unwrap();
        }
    };
    let failure = Sim::builder().build().try_run(program).unwrap_err();
    assert_eq!(failure.reason().matches("waits for mutex of").count(), 2, "{failure}");
}

#[test]
fn a_panic_that_no_join_observes_fails_the_run() {
    let lost = Sim::builder().build().try_run(|| {
        drop(fibra::spawn(|| panic!("lost")));
        fibra::sleep(HOUR);
    });
    assert!(lost.unwrap_err().reason().contains("lost"));
    let told = Sim::builder().build().try_run(|| {
        assert!(fibra::spawn(|| panic!("observed")).join().is_err());
        fibra::task::park();
    });
    let told = told.unwrap_err();
    assert!(told.reason().contains("all tasks sleep") && !told.reason().contains("observed"), "{told}");
}

#[test]
fn a_run_of_many_tasks_that_never_ends_is_ended() {
    let endless = || {
        let lock = Arc::new(fibra::sync::Mutex::new(()));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                fibra::spawn(move || {
                    loop {
                        drop(lock.lock());
                        fibra::yield_now();
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    };
    let counted = Sim::builder().max_steps(1000).build().try_run(endless).unwrap_err();
    assert!(counted.reason().contains("more than 1000 steps"), "{counted}");
}

#[test]
fn a_run_that_a_cancel_does_not_end_is_ended() {
    let endless = || {
        fibra::task::shield(|| {
            loop {
                fibra::yield_now();
            }
        })
    };
    let counted = Sim::builder().max_steps(1000).build().try_run(endless).unwrap_err();
    assert!(counted.reason().contains("more than 1000 steps"), "{counted}");
}

#[test]
fn limits_end_a_run() {
    let timed = Sim::builder().time_limit(HOUR).build().try_run(|| fibra::sleep(HOUR * 2)).unwrap_err();
    assert!(timed.reason().contains("time limit"), "{timed}");
    let endless = || {
        loop {
            fibra::yield_now();
        }
    };
    let counted = Sim::builder().max_steps(1000).build().try_run(endless).unwrap_err();
    assert!(counted.reason().contains("more than 1000 steps"), "{counted}");
}

#[test]
fn a_nondeterministic_program_is_found_and_named() {
    let runs = AtomicU32::new(0);
    let program = move || {
        let extra = runs.fetch_add(1, Ordering::Relaxed);
        let tasks: Vec<_> = (0..3 + extra).map(|_| fibra::spawn(fibra::yield_now)).collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    };
    let failure = Sim::builder().check_determinism(true).build().try_run(program).unwrap_err();
    assert!(failure.reason().contains("not deterministic: at step"), "{failure}");
    assert!(failure.reason().contains("went on with the task spawned at sim/tests/runs.rs:"), "{failure}");
    Sim::builder().check_determinism(true).run(|| drop(in_some_order()));
}

#[test]
fn blocking_calls_run_in_the_simulation() {
    Sim::builder().check_determinism(true).run(|| {
        let here = std::thread::current().id();
        assert_eq!(fibra::unblock(|| std::thread::current().id()), here);
        let blocking = fibra::spawn_blocking(|| {
            fibra::sleep(HOUR);
            std::thread::current().id()
        });
        assert_eq!(blocking.join().unwrap(), here);
    });
}

#[test]
fn each_run_begins_with_new_thread_locals() {
    thread_local!(static COUNT: AtomicU64 = const { AtomicU64::new(0) });
    for _ in 0..3 {
        Sim::builder().run(|| assert_eq!(COUNT.with(|count| count.fetch_add(1, Ordering::Relaxed)), 0));
    }
}

#[test]
fn priorities_do_not_starve_the_tasks_that_a_spinner_waits_for() {
    for seed in 0..50 {
        Sim::builder().seed(seed).schedule(Schedule::Pct { depth: 3 }).run(|| {
            let flag = Arc::new(AtomicU32::new(0));
            let set = Arc::clone(&flag);
            let setter = fibra::spawn(move || set.store(1, Ordering::Relaxed));
            while flag.load(Ordering::Relaxed) == 0 {
                fibra::yield_now();
            }
            setter.join().unwrap();
        });
    }
}

#[test]
#[ignore = "it shows a figure"]
fn switches_a_second() {
    let begin = std::time::Instant::now();
    let report = Sim::builder().run(|| {
        let tasks = [(); 2].map(|()| fibra::spawn(|| (0..1_000_000).for_each(|_| fibra::yield_now())));
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
    println!("{:.1} million switches a second", report.steps() as f64 / begin.elapsed().as_micros() as f64);
}

#[test]
fn misuse_explains_itself() {
    let nested = message(|| _ = Sim::builder().run(|| _ = Sim::builder().run(|| ())));
    assert!(nested.contains("a simulation was started inside a simulation"), "{nested}");
    let timeless = message(|| _ = Sim::builder().time_limit(Duration::ZERO));
    assert!(timeless.contains("time limit of zero"), "{timeless}");
    let other = message(|| replay(0, "7:1=1", || ()));
    assert!(other.contains("version 7, and this build reads version 1"), "{other}");
    assert!(message(|| replay(0, "3=1", || ())).contains("does not begin with a version"));
    let version = if cfg!(fibra_sim) { "1p" } else { "1" };
    assert!(message(|| replay(0, &format!("{version}:3=x"), || ())).contains("no choice"));
    let flat = message(|| _ = Sim::builder().schedule(Schedule::Pct { depth: 0 }));
    assert!(flat.contains("a depth from 1 on"), "{flat}");
    assert!(message(|| assert!(random() > 0)).contains("outside of one"));
    for refused in [fibra::time::resume, || drop(fibra::time::hold())] {
        let real = Sim::builder().build().try_run(refused).unwrap_err();
        assert!(real.reason().contains("has no place in a simulation"), "{real}");
    }
    if !cfg!(fibra_sim) {
        let explored = message(|| assert!(fibra_sim::check(1, || ()).runs == 1));
        assert!(explored.contains("--cfg fibra_sim"), "{explored}");
    }
}
