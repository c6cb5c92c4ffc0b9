//! `#[fibra::test]` with seeds and schedules.

use std::env;
use std::process::{Command, Output};
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

#[fibra::test(seeds = 2)]
fn hosts_may_be_left() {
    fibra_sim::host("server", fibra::task::park);
}

/// Runs an ignored test of this binary in a child.
fn rerun(name: &str, environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([name, "--exact", "--include-ignored"]).envs(environment.iter().copied());
    child.output().unwrap()
}

#[fibra::test(seeds = 1, timeout = "100ms")]
#[ignore = "it never ends"]
fn computes_for_ever() {
    loop {
        std::hint::spin_loop();
    }
}

#[test]
fn a_run_that_computes_for_ever_ends_the_process() {
    let output = rerun("computes_for_ever", &[]);
    assert_eq!(output.status.code(), Some(101));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("'computes_for_ever' fails") && said.contains("within 100ms"), "{said}");
    assert!(said.contains("FIBRA_SIM_SEED=0") && said.contains("computes, or is ready to"), "{said}");
}

#[fibra::test(seeds = 1)]
#[ignore = "it fails"]
fn leaves_a_task() {
    drop(fibra::spawn(fibra::task::park));
}

#[fibra::test(seeds = 1)]
#[should_panic]
#[ignore = "it fails"]
fn sleeps_for_ever() {
    fibra::task::park();
}

#[test]
fn a_task_that_is_left_and_a_deadlock_fail_a_test() {
    for (name, told) in [
        ("leaves_a_task", "these tasks are left"),
        ("sleeps_for_ever", "all tasks sleep"),
        ("sleeps_for_ever", "test did not panic as expected"),
    ] {
        let output = rerun(name, &[]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains(told), "{said}");
    }
}

#[fibra::test(seeds = 20)]
#[ignore = "it shows its runs"]
fn draws() {
    println!("drawn: {}", fibra_sim::random());
}

#[test]
fn a_seed_of_the_environment_is_the_only_one() {
    let output = rerun("draws", &[("FIBRA_SIM_SEED", "3"), ("RUST_TEST_NOCAPTURE", "1")]);
    // First in first out, and at random.
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.matches("drawn: ").count(), 2, "{said}");
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
