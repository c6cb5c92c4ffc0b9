//! The system's own limit of mappings, reached for real: in a process of its own, since it is the process's.

#[path = "common/hang.rs"]
mod hang;
#[path = "common/rest.rs"]
mod rest;

use std::io::ErrorKind;

use fibra_runtime::{Runtime, StackGuards, task};
use hang::hang_guard;
use rest::until_others_sleep;

/// Where the limit is higher than this, it is not reached here.
const MOST: usize = 100_000;

#[test]
fn tasks_beyond_the_systems_limit_of_mappings_end_un_run_and_the_rest_goes_on() {
    let _guard = hang_guard();
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("the limit of mappings");
    let most: usize = most.trim().parse().expect("a number of mappings");
    if most > MOST {
        return println!(
            "SKIPPED: vm.max_map_count is {most}, and each two mappings are a task with a page of memory"
        );
    }
    let runtime = Runtime::builder().workers(2).stack_guards(StackGuards::Protect).build().unwrap();
    runtime.run(|| {
        let tasks: Vec<_> = (0..most / 2 + 1000)
            .map(|_| task::Builder::new().stack_size(32 * 1024).spawn(task::park))
            .collect();
        // Those that found a stack are parked; the others end after a while.
        until_others_sleep();
        let (lacking, parked): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| task.is_finished());
        println!("{} parked, {} without a stack", parked.len(), lacking.len());
        assert!(parked.len() > most / 4, "few have found a stack");
        assert!(!lacking.is_empty(), "there were mappings for all");
        for task in lacking {
            let error = task.join().unwrap_err();
            let cause = error.io_error().expect("the system's error");
            assert_eq!(cause.kind(), ErrorKind::OutOfMemory);
            assert!(cause.to_string().contains("vm.max_map_count"), "{cause}");
        }
        parked.iter().for_each(|task| task.task().unpark());
        assert!(parked.into_iter().all(|task| task.join().is_ok()));
        let after = task::Builder::new().stack_size(32 * 1024).spawn(|| 42);
        assert_eq!(after.join().unwrap(), 42);
    });
}
