//! Promises of what is said when a task panics. Standard error and the panic hook are the process's, so each test has a
//! process of its own.

use std::panic;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::{self as fibra, Runtime, TaskPanic, task, task_local};

const WORKERS: [usize; 3] = [1, 2, 4];

task_local! {
    static REQUEST: u64 = task::try_current().map_or(0, |task| task.id());
}

fn in_a_child(test: &str, body: fn()) -> Option<(Output, String)> {
    if is_child() {
        body();
        return None;
    }
    let _guard = hang_guard();
    let output = rerun(test);
    let text = errors(&output);
    Some((output, text))
}

fn unlucky() {
    let task = task::Builder::new().name("unlucky").spawn(|| panic!("thirteen"));
    assert!(task.join().unwrap_err().is_panic());
}

#[test]
fn the_default_says_name_id_and_message_once() {
    let body = || {
        for workers in WORKERS {
            runtime(workers).run(unlucky);
        }
    };
    let Some((output, text)) = in_a_child("task_panic::the_default_says_name_id_and_message_once", body)
    else {
        return;
    };
    assert!(output.status.success(), "{text}");
    for word in ["task 'unlucky' (id ", "thirteen", "task_panic.rs:"] {
        assert_eq!(text.matches(word).count(), WORKERS.len(), "{word}: {text}");
    }
}

#[test]
fn a_hook_replaces_line_and_message() {
    let body = || {
        for workers in WORKERS {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&seen);
            let hook = move |panic: &TaskPanic<'_>| {
                // Waits block the thread in here.
                fibra::sleep(Duration::from_micros(100));
                let own = REQUEST.with(|request| *request);
                let line = panic.location().unwrap().line();
                assert_eq!(panic.payload().downcast_ref::<&str>().copied(), panic.message());
                log.lock().unwrap().push((
                    panic.task().clone(),
                    own,
                    panic.message().map(str::to_owned),
                    line,
                ));
            };
            let runtime = Runtime::builder().workers(workers).on_task_panic(hook).build().unwrap();
            let here = line!() + 1;
            let body = || panic!("thirteen");
            let task = runtime.run(|| {
                let task = fibra::spawn(move || {
                    REQUEST.with(|_| fibra::yield_now());
                    body()
                });
                let handle = task.task().clone();
                assert!(task.join().unwrap_err().is_panic());
                handle
            });
            let (seen_task, own, message, line) = seen.lock().unwrap().pop().unwrap();
            assert_eq!((own, seen_task), (task.id(), task));
            assert_eq!((message.as_deref(), line), (Some("thirteen"), here));
            let pooled = runtime.spawn_blocking(|| panic!("on the pool"));
            assert!(pooled.join().unwrap_err().is_panic());
            assert_eq!(seen.lock().unwrap().pop().unwrap().2.as_deref(), Some("on the pool"));
        }
    };
    let Some((output, text)) = in_a_child("task_panic::a_hook_replaces_line_and_message", body) else {
        return;
    };
    assert!(output.status.success() && text.is_empty(), "{text}");
}

#[test]
fn a_hook_is_for_the_tasks_of_its_own_runtime() {
    let body = || {
        let hook = |panic: &TaskPanic<'_>| eprintln!("mine: {}", panic.task());
        let hooked = Runtime::builder().workers(2).on_task_panic(hook).build().unwrap();
        let bare = Runtime::builder().workers(2).build().unwrap();
        hooked.run(unlucky);
        bare.run(unlucky);
        assert!(std::thread::spawn(|| panic!("plain")).join().is_err());
    };
    let Some((output, text)) = in_a_child("task_panic::a_hook_is_for_the_tasks_of_its_own_runtime", body)
    else {
        return;
    };
    assert!(output.status.success(), "{text}");
    for word in ["mine: task 'unlucky'", "fibra: task 'unlucky'", "thirteen", "plain"] {
        assert_eq!(text.matches(word).count(), 1, "{word}: {text}");
    }
}

#[test]
fn a_cancellation_is_no_panic() {
    let body = || {
        let hook = |panic: &TaskPanic<'_>| eprintln!("{panic:?}");
        Runtime::builder().workers(2).on_task_panic(hook).build().unwrap().run(|| {
            let task = fibra::spawn(|| fibra::sleep(Duration::MAX));
            fibra::sleep(Duration::from_millis(1));
            task.cancel();
            assert!(task.join().unwrap_err().is_cancelled());
        });
    };
    let Some((output, text)) = in_a_child("task_panic::a_cancellation_is_no_panic", body) else { return };
    assert!(output.status.success() && text.is_empty(), "{text}");
}

#[test]
fn a_hook_that_panics_ends_the_process_with_a_message() {
    let body = || {
        let hook = |_: &TaskPanic<'_>| panic!("the hook's own");
        Runtime::builder().workers(2).on_task_panic(hook).build().unwrap().run(unlucky);
        println!("went on");
    };
    let name = "task_panic::a_hook_that_panics_ends_the_process_with_a_message";
    let Some((output, text)) = in_a_child(name, body) else { return };
    assert!(!output.status.success() && text.contains("the hook's own"), "{text}");
}

#[test]
fn a_hook_that_unwinds_without_a_message_ends_the_process_with_one() {
    let body = || {
        let hook = |_: &TaskPanic<'_>| panic::resume_unwind(Box::new(()));
        Runtime::builder().workers(2).on_task_panic(hook).build().unwrap().run(unlucky);
        println!("went on");
    };
    let name = "task_panic::a_hook_that_unwinds_without_a_message_ends_the_process_with_one";
    let Some((output, text)) = in_a_child(name, body) else { return };
    assert!(!output.status.success() && text.contains("the hook for panics of tasks has panicked"), "{text}");
}

#[test]
fn the_first_runtime_may_be_built_in_a_panic_hook() {
    let body = || {
        panic::set_hook(Box::new(|info| {
            if info.payload_as_str() != Some("on a thread") {
                return;
            }
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let sum = runtime.run(|| fibra::spawn(|| 41).join().unwrap() + 1);
            eprintln!("computed in the hook: {sum}");
            // No task waits for this hook to end.
            assert!(runtime.spawn(|| panic!("in the hook")).join().unwrap_err().is_panic());
        }));
        assert!(thread::spawn(|| panic!("on a thread")).join().is_err());
        runtime(1).run(unlucky);
    };
    let Some((output, text)) = in_a_child("task_panic::the_first_runtime_may_be_built_in_a_panic_hook", body)
    else {
        return;
    };
    assert!(output.status.success() && text.contains("computed in the hook: 42"), "{text}");
    assert!(text.contains("task 'unlucky' (id "), "{text}");
}

#[test]
fn a_runtime_built_in_a_destructor_leaves_the_hook_to_the_next_one() {
    struct BuildsInDrop;
    impl Drop for BuildsInDrop {
        fn drop(&mut self) {
            runtime(1).run(|| ());
        }
    }
    let body = || {
        let unwound = panic::catch_unwind(|| {
            let _builds = BuildsInDrop;
            panic!("on purpose");
        });
        assert!(unwound.is_err());
        runtime(1).run(unlucky);
    };
    let name = "task_panic::a_runtime_built_in_a_destructor_leaves_the_hook_to_the_next_one";
    let Some((output, text)) = in_a_child(name, body) else { return };
    assert!(output.status.success() && text.contains("task 'unlucky' (id "), "{text}");
}

#[test]
fn a_panic_of_a_closure_of_a_join_is_told_once() {
    let body = || {
        for workers in WORKERS {
            let told = Arc::new(Mutex::new(0));
            let count = Arc::clone(&told);
            let hook = move |_: &TaskPanic<'_>| *count.lock().unwrap() += 1;
            Runtime::builder().workers(workers).on_task_panic(hook).build().unwrap().run(|| {
                // Run in place, and as a task while its owner waits.
                for wait in [Duration::ZERO, Duration::from_millis(2)] {
                    let first = || (wait > Duration::ZERO).then(|| fibra::sleep(wait));
                    let join = || fibra::join(first, || -> () { panic!("thirteen") });
                    assert!(panic::catch_unwind(panic::AssertUnwindSafe(join)).is_err());
                }
            });
            assert_eq!(*told.lock().unwrap(), 2);
        }
    };
    let test = "task_panic::a_panic_of_a_closure_of_a_join_is_told_once";
    let Some((output, text)) = in_a_child(test, body) else { return };
    assert!(output.status.success(), "{text}");
}
