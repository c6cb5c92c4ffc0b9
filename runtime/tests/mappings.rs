//! The system's own limit of mappings, reached for real: in a process of its own, since it is the process's.

use std::io::ErrorKind;

use fibra_runtime::{self as fibra, Guards, Runtime, task};

#[test]
fn tasks_beyond_the_systems_limit_of_mappings_end_un_run_and_the_rest_goes_on() {
    let runtime = Runtime::builder().workers(2).stack_guards(Guards::Protect).build().unwrap();
    runtime.run(|| {
        let tasks: Vec<_> =
            (0..34_000).map(|_| task::Builder::new().stack_size(32 * 1024).spawn(task::park)).collect();
        let (lacking, parked): (Vec<_>, Vec<_>) = {
            // Those that found a stack are parked; the others end within the patience of a second.
            fibra::sleep(std::time::Duration::from_secs(4));
            tasks.into_iter().partition(|task| task.is_finished())
        };
        println!("{} parked, {} without a stack", parked.len(), lacking.len());
        assert!(parked.len() > 10_000);
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
