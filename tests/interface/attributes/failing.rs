//! Tests that fail, each in a child alone. Elsewhere they are ignored.

use std::io;
use std::mem;
use std::panic;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fibra::{JoinHandle, TaskGroup, task};

use super::rerun;

/// Checks that a test fails in a child, which says all of this, through the capture of its harness alone.
#[track_caller]
fn check_fails(test: &str, words: &[&str]) -> String {
    let output = rerun(&format!("attributes::failing::{test}"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("1 failed") && output.stderr.is_empty(), "{text}{:?}", output.stderr);
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
    text
}

fn unlucky() -> JoinHandle<()> {
    task::Builder::new().name("unlucky").spawn(|| panic!("out of luck"))
}

#[fibra::test]
#[ignore = "fails"]
fn dropped_before() {
    drop(unlucky());
}

#[fibra::test]
#[ignore = "fails"]
fn dropped_after() {
    let task = unlucky();
    fibra::yield_now();
    assert!(task.is_finished());
}

#[fibra::test(workers = 2)]
#[ignore = "fails"]
fn forgotten() {
    mem::forget(unlucky());
}

#[fibra::test]
#[ignore = "fails"]
fn kept() {
    static HANDLE: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);
    *HANDLE.lock().unwrap() = Some(unlucky());
}

#[fibra::test]
#[ignore = "fails"]
fn in_a_group() {
    let group = TaskGroup::new();
    group.spawn_as(task::Builder::new().name("unlucky"), || panic!("out of luck"));
    fibra::yield_now();
}

#[fibra::test]
#[ignore = "fails"]
fn on_the_pool() {
    drop(task::Builder::new().name("unlucky").spawn_blocking(|| panic!("out of luck")));
}

#[test]
fn a_panic_that_no_join_observes_fails_the_test() {
    for test in ["dropped_before", "dropped_after", "forgotten", "kept", "in_a_group", "on_the_pool"] {
        let text = check_fails(test, &["failing.rs:", "task 'unlucky' (id ", " panicked: out of luck"]);
        assert!(text.contains(&format!("the test '{test}' fails")), "{text}");
    }
}

#[fibra::test]
#[ignore = "fails"]
fn resumed() {
    drop(fibra::spawn(|| panic::resume_unwind(Box::new("raised again"))));
}

#[fibra::test]
#[ignore = "fails"]
fn at_the_end() {
    struct Unlucky;
    impl Drop for Unlucky {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic!("in the closure");
            }
        }
    }
    let unlucky = Unlucky;
    let task = fibra::spawn(move || drop(unlucky));
    task.cancel();
}

#[test]
fn panics_without_a_message_and_of_destructors_fail_the_test() {
    check_fails("resumed", &["a panic was observed by no join: task (id ", "failing.rs:", "raised again"]);
    check_fails("at_the_end", &["failing.rs:", "in the closure"]);
}

#[fibra::test]
#[ignore = "fails"]
fn fails_itself() {
    drop(unlucky());
    drop(fibra::spawn(task::park));
    fibra::yield_now();
    panic!("of the body");
}

#[fibra::test]
#[ignore = "fails"]
fn returns_an_error() -> io::Result<()> {
    Err(io::Error::other("no luck"))
}

#[fibra::test]
#[ignore = "fails"]
fn never_returns() -> ! {
    panic!("in place of a return");
}

#[fibra::test]
#[ignore = "fails"]
#[should_panic]
fn panics_beside_another() {
    drop(unlucky());
    fibra::yield_now();
    panic!("expected");
}

#[test]
fn a_body_that_fails_fails_the_test() {
    let text = check_fails("fails_itself", &["task 'fails_itself' (id ", "of the body", "out of luck"]);
    assert!(!text.contains("waits for park"), "what a panic has left is no leak: {text}");
    check_fails("returns_an_error", &["no luck"]);
    check_fails("never_returns", &["in place of a return"]);
    check_fails("panics_beside_another", &["out of luck", "did not panic as expected"]);
}

#[fibra::test]
#[ignore = "fails"]
fn leaks() {
    let named = |name: &str| task::Builder::new().name(name);
    // It ends with the sleeper.
    let (alive, ended) = mpsc::channel::<()>();
    let sleeper = named("sleeper").spawn(move || {
        let _alive = alive;
        task::park()
    });
    mem::forget(named("joiner").spawn(|| sleeper.join()));
    drop(named("spinner").spawn(|| {
        loop {
            fibra::yield_now();
        }
    }));
    drop(named("blocked").spawn_blocking(move || ended.recv()));
}

#[test]
fn leaked_tasks_fail_the_test_with_their_waits() {
    let text = check_fails("leaks", &["its body has returned, and a second later these tasks are left:"]);
    let line =
        |task: &str| text.lines().find(|line| line.starts_with(&format!("  task '{task}' (id "))).unwrap();
    assert!(line("sleeper").ends_with("waits for park"), "{text}");
    assert!(line("joiner").contains("waits for join of task 'sleeper'"), "{text}");
    assert!(line("spinner").ends_with("computes, or is ready to"), "{text}");
    assert!(line("blocked").ends_with("runs on the blocking pool"), "{text}");
    assert!(!text.contains("task 'leaks'"), "{text}");
}

#[fibra::test(timeout = "1s")]
#[ignore = "fails"]
fn late() {
    let sleeper = task::Builder::new().name("sleeper").spawn(task::park);
    _ = sleeper.join();
}

#[fibra::test(timeout = "1s")]
#[ignore = "fails"]
#[should_panic]
fn late_to_panic() {
    task::park();
}

#[fibra::test(timeout = "1s")]
#[ignore = "fails"]
fn panics_late() {
    assert!(panic::catch_unwind(task::park).is_err());
    panic!("after the cancel");
}

#[fibra::test(start_paused = true)]
#[ignore = "fails"]
fn sleeps_for_ever() {
    let sleeper = task::Builder::new().name("sleeper").spawn(task::park);
    _ = sleeper.join();
}

#[fibra::test]
#[ignore = "fails"]
fn cancelled() {
    task::current().cancel();
    task::park();
}

#[test]
fn a_test_that_is_late_fails_with_all_waits() {
    let late = "it has not ended within 1s, so it is cancelled; its tasks are:";
    let asleep = "all tasks sleep, and no timer, descriptor or call on the blocking pool is to wake one";
    check_fails(
        "late",
        &[late, "task 'late' (id ", "waits for join of task 'sleeper'", "waits for park", asleep],
    );
    check_fails("late_to_panic", &[late, "did not panic as expected"]);
    check_fails("panics_late", &[late, "after the cancel"]);
    let sleeps = "all tasks sleep, and nothing is left to wake one:";
    check_fails("sleeps_for_ever", &[sleeps, "join of task 'sleeper'", "waits for park"]);
    check_fails("cancelled", &["task 'cancelled' (id ", "was cancelled"]);
}

#[fibra::test(timeout = "1s")]
#[ignore = "fails"]
fn never_ends() {
    task::shield(task::park);
}

#[fibra::test]
#[ignore = "fails"]
fn leaves_what_never_ends() {
    drop(task::Builder::new().name("stuck").spawn(|| task::shield(task::park)));
}

#[test]
fn a_test_that_does_not_end_ends_the_process_with_all_waits() {
    let check = |test, words: &[&str]| {
        let begin = Instant::now();
        let output = rerun(&format!("attributes::failing::{test}"));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(101), "{text}");
        assert!(begin.elapsed() >= Duration::from_secs(5), "{text}");
        for word in words {
            assert!(text.contains(word), "'{word}' is not in: {text}");
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            check(
                "never_ends",
                &[
                    "within 1s, so it is cancelled",
                    "5s later its tasks are:",
                    "'never_ends' (id ",
                    "for park",
                ],
            );
        });
        scope.spawn(|| {
            check(
                "leaves_what_never_ends",
                &["these tasks are left:", "5s later its tasks are:", "'stuck' (id ", "for park"],
            );
        });
    });
}
