//! `#[fibra::test]` with seeds and schedules.

use std::sync::atomic::{AtomicU32, Ordering};

use fibra::sync::channel::bounded;

static RUNS: AtomicU32 = AtomicU32::new(0);

#[fibra::test(seeds = 20)]
fn a_body_runs_with_each_seed() {
    RUNS.fetch_add(1, Ordering::Relaxed);
    let (sender, receiver) = bounded(0);
    let sending = fibra::spawn(move || sender.send(1).unwrap());
    assert_eq!(receiver.recv(), Ok(1));
    sending.join().unwrap();
}

#[fibra::test(schedule = "fifo", seeds = 1)]
fn a_body_may_return_a_result() -> Result<(), fibra::JoinError> {
    fibra::sleep(std::time::Duration::from_secs(3600));
    fibra::spawn(|| ()).join()
}

#[fibra::test(seeds = 100, schedule = "random")]
#[should_panic = "replay with FIBRA_SIM_SEED="]
fn a_failure_tells_its_seed() {
    let order = std::sync::Arc::new(AtomicU32::new(0));
    let tasks = [1, 2].map(|n| {
        let order = std::sync::Arc::clone(&order);
        fibra::spawn(move || order.store(n, Ordering::Relaxed))
    });
    for task in tasks {
        task.join().unwrap();
    }
    assert_eq!(order.load(Ordering::Relaxed), 2);
}

#[fibra::test(schedule = "pct")]
#[should_panic = "is no schedule"]
fn a_schedule_needs_its_number() {}

#[cfg(fibra_sim)]
#[fibra::test(schedule = "exhaustive(2)")]
#[should_panic = "an update is lost"]
fn an_exhaustive_test_finds_a_lost_update() {
    loses_an_update();
}

#[cfg(fibra_sim)]
#[fibra::test(seeds = 100, schedule = "pct(2)")]
#[should_panic = "an update is lost"]
fn a_test_by_priorities_finds_a_lost_update() {
    loses_an_update();
}

#[cfg(fibra_sim)]
fn loses_an_update() {
    let total = std::sync::Arc::new(AtomicU32::new(0));
    let adders = [(); 2].map(|()| {
        let total = std::sync::Arc::clone(&total);
        fibra::spawn(move || {
            let seen = total.load(Ordering::Relaxed);
            fibra_sim::point();
            total.store(seen + 1, Ordering::Relaxed);
        })
    });
    for adder in adders {
        adder.join().unwrap();
    }
    assert_eq!(total.load(Ordering::Relaxed), 2, "an update is lost");
}
