//! What explorations find. They need `--cfg fibra_sim`; `ci/sim.sh` runs them.

#![cfg(fibra_sim)]

#[path = "../../runtime/tests/common/message.rs"]
mod message;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use fibra_sim::{check, check_exhaustive, check_pct, point, replay};
use message::message;

/// Two tasks add to a number in two steps.
fn loses_an_update() {
    let total = Arc::new(AtomicU32::new(0));
    let adders: Vec<_> = [(); 2]
        .into_iter()
        .map(|()| {
            let total = Arc::clone(&total);
            fibra::spawn(move || {
                let seen = total.load(Ordering::Relaxed);
                point();
                total.store(seen + 1, Ordering::Relaxed);
            })
        })
        .collect();
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    assert_eq!(total.load(Ordering::Relaxed), 2, "an update is lost");
}

/// Three tasks lock two of three mutexes each, in a circle.
fn locks_in_a_circle() {
    let forks: Arc<[fibra::sync::Mutex<()>; 3]> = Arc::default();
    let diners: Vec<_> = (0..3)
        .map(|n| {
            let forks = Arc::clone(&forks);
            fibra::spawn(move || {
                let _left = forks[n].lock();
                let _right = forks[(n + 1) % 3].lock();
            })
        })
        .collect();
    diners.into_iter().for_each(|diner| diner.join().unwrap());
}

#[test]
fn pct_finds_the_lost_update_in_a_hundred_runs() {
    let text = message(|| assert!(check_pct(100, 2, loses_an_update).runs == 100));
    assert!(text.contains("an update is lost"), "{text}");
}

#[test]
fn random_schedules_find_it_too() {
    let text = message(|| assert!(check(1000, loses_an_update).runs == 1000));
    assert!(text.contains("an update is lost"), "{text}");
}

#[test]
fn pct_finds_a_deadlock_of_depth_three() {
    let text = message(|| assert!(check_pct(10_000, 3, locks_in_a_circle).runs == 10_000));
    assert!(text.contains("all tasks sleep for ever") && text.contains("waits for mutex of"), "{text}");
}

#[test]
fn a_failing_schedule_is_shrunk_to_few_preemptions_and_replays() {
    let text = message(|| assert!(check(1000, loses_an_update).runs == 1000));
    let line = text.lines().last().unwrap();
    let (seed, schedule) = line.strip_prefix("replay with FIBRA_SIM_SEED=").unwrap().split_once(' ').unwrap();
    let schedule = schedule.strip_prefix("FIBRA_SIM_REPLAY=").unwrap();
    assert_eq!(schedule.matches('=').count(), 1, "one preemption suffices: {schedule}");
    let again = message(|| replay(seed.parse().unwrap(), schedule, loses_an_update));
    assert_eq!(again, text);
}

/// Runs two tasks of two steps each, and returns how often each order of steps came.
fn orders(preemptions: usize) -> Vec<Vec<u32>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let exploration = check_exhaustive(preemptions, move || {
        let order = Mutex::new(Vec::new());
        fibra::scope(|scope| {
            // The spawns are no points of preemption here.
            fibra::task::unconstrained(|| {
                for task in [0, 10] {
                    let order = &order;
                    scope.spawn_local(move || {
                        order.lock().unwrap().push(task);
                        point();
                        order.lock().unwrap().push(task + 1);
                    });
                }
            });
        });
        told.lock().unwrap().push(order.into_inner().unwrap());
    });
    let seen = seen.lock().unwrap().clone();
    assert_eq!(exploration.runs as usize, seen.len());
    seen
}

#[test]
fn exhaustive_visits_all_interleavings() {
    let mut seen = orders(2);
    seen.sort();
    // The ends of the tasks are points as well, so some orders come by several schedules.
    seen.dedup();
    let all =
        [[0, 1, 10, 11], [0, 10, 1, 11], [0, 10, 11, 1], [10, 0, 1, 11], [10, 0, 11, 1], [10, 11, 0, 1]];
    assert_eq!(seen, all);
}

#[test]
fn without_preemptions_the_tasks_run_to_their_waits() {
    let mut seen = orders(0);
    seen.sort();
    seen.dedup();
    assert_eq!(seen, [[0, 1, 10, 11], [10, 11, 0, 1]]);
}

#[test]
fn an_exploration_of_a_loop_of_yields_ends() {
    let exploration = check_exhaustive(2, || {
        let flag = Arc::new(AtomicU32::new(0));
        let set = Arc::clone(&flag);
        let setter = fibra::spawn(move || set.store(1, Ordering::Relaxed));
        while flag.load(Ordering::Relaxed) == 0 {
            fibra::yield_now();
        }
        setter.join().unwrap();
    });
    assert!(exploration.runs > 1);
}
