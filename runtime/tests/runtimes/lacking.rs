//! What happens where something is lacking to start with.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use crate::message::message;
use fibra_runtime::{self as fibra, Runtime, driver, task};

#[test]
fn a_first_task_that_cannot_start_is_an_error_of_run() {
    for builder in [Runtime::builder().max_tasks(0), Runtime::builder().max_stacks(0)] {
        let error = builder.workers(2).run(|| 1).unwrap_err();
        assert!(error.to_string().contains("max_"), "{error}");
    }
}

#[test]
fn a_first_task_that_is_cancelled_is_a_panic_that_says_so() {
    let text = message(|| {
        Runtime::builder().workers(1).run(|| {
            task::current().cancel();
            task::park();
        })
    });
    assert!(text.contains("was cancelled"), "{text}");
}

#[test]
fn a_stack_of_impossible_size_delays_no_task() {
    Runtime::builder().workers(1).build().unwrap().run(|| {
        let impossible = task::Builder::new().stack_size(usize::MAX).spawn(|| ());
        fibra::spawn(|| ()).join().unwrap();
        // One turn to find no stack, and one to end. What waits for a stack to come free takes hundreds.
        (0..2).for_each(|_| fibra::yield_now());
        assert!(impossible.is_finished());
        assert!(impossible.join().unwrap_err().is_not_started());
    });
}

#[test]
fn many_starved_tasks_end_together() {
    Runtime::builder().workers(1).max_stacks(1).build().unwrap().run(|| {
        let begin = Instant::now();
        let tasks: Vec<_> = (0..50).map(|_| fibra::spawn(|| ())).collect();
        assert!(tasks.into_iter().all(|task| task.join().unwrap_err().is_not_started()));
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    });
}

#[test]
fn each_task_that_cannot_start_tells_what_it_lacked_itself() {
    Runtime::builder().workers(1).max_stacks(1).build().unwrap().run(|| {
        let spawn = |turn: usize| match turn % 3 {
            0 => (task::Builder::new().stack_size(usize::MAX).spawn(|| ()), "address space"),
            _ => (fibra::spawn(|| ()), "max_stacks"),
        };
        let tasks: Vec<_> = (0..30).map(spawn).collect();
        for (task, lacking) in tasks {
            let error = task.join().unwrap_err();
            assert!(error.io_error().is_some_and(|error| error.to_string().contains(lacking)), "{error}");
        }
    });
}

#[test]
fn a_factory_that_panics_fails_the_start() {
    let factory = || -> std::io::Result<driver::Parts> { panic!("on purpose") };
    assert!(Runtime::builder().workers(2).driver(factory).build().is_err());
    assert!(Runtime::builder().workers(2).driver(factory).run(|| ()).is_err());
}

#[test]
fn a_runtime_may_be_built_and_run_while_its_thread_unwinds() {
    struct RunsInDrop;
    impl Drop for RunsInDrop {
        fn drop(&mut self) {
            let sum = Runtime::builder().workers(2).run(|| {
                assert!(!std::thread::panicking());
                fibra::spawn(|| 41).join().unwrap() + 1
            });
            assert_eq!(sum.unwrap(), 42);
            assert!(std::thread::panicking());
        }
    }
    let unwound = catch_unwind(|| {
        let _runs = RunsInDrop;
        panic!("on purpose");
    });
    assert!(unwound.is_err() && !std::thread::panicking());
}

#[test]
fn an_overdrawn_budget_is_no_cancellation_point() {
    Runtime::builder().workers(1).build().unwrap().run(|| {
        let busy = fibra::spawn(|| {
            task::current().cancel();
            (0..1000).for_each(|_| fibra::wait::charge());
            true
        });
        assert!(busy.join().unwrap());
    });
}

/// The stack of a size for which the address space has no room now: the wait for it may help, as far as is known.
const TOO_BIG: usize = 1 << 50;

#[test]
fn a_task_that_waits_for_a_stack_is_ended_in_time_and_those_behind_it_start() {
    Runtime::builder().workers(1).build().unwrap().run(|| {
        let big = task::Builder::new().stack_size(TOO_BIG).spawn(|| ());
        fibra::yield_now();
        assert!(!big.is_finished());
        fibra::spawn_local(|| ()).join().unwrap();
        assert!(big.is_finished() && big.join().unwrap_err().is_not_started());
        fibra::spawn(|| ()).join().unwrap();
    });
}

#[test]
fn tasks_queued_behind_a_task_that_found_a_stack_wait_no_longer() {
    Runtime::builder().workers(1).max_stacks(2).build().unwrap().run(|| {
        let first = fibra::spawn_local(task::park);
        fibra::yield_now();
        let tasks: Vec<_> = (0..2).map(|_| fibra::spawn_local(task::park)).collect();
        fibra::yield_now();
        first.task().unpark();
        first.join().unwrap();
        let ends = |task: &fibra::JoinHandle<()>| task.is_finished();
        while !tasks.iter().any(ends) {
            fibra::sleep(Duration::from_millis(5));
        }
        let (ended, parked): (Vec<_>, Vec<_>) = tasks.into_iter().partition(ends);
        assert!(ended.into_iter().all(|task| task.join().unwrap_err().is_not_started()));
        for task in parked {
            task.task().unpark();
            task.join().unwrap();
        }
    });
}
