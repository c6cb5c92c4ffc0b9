//! What a process that gets no threads is told: in a process of its own, in which no stack of a thread fits into the address space.
#![cfg(target_os = "linux")]

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::rerun::{child, errors, is_child};
use fibra_runtime::{self as fibra, Runtime};

/// More than the address space has.
const STACK: &str = "140737488355328";

/// Runs `check` where no thread can be started.
fn without_threads(name: &str, check: fn()) {
    if is_child() {
        return check();
    }
    let output = child(name).env("RUST_MIN_STACK", STACK).output().expect("the test binary runs again");
    assert!(output.status.success(), "{}", errors(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it ran");
}

/// Sees that the error says what lacks what, and has what the system said.
fn names_the_limit(error: &io::Error, what: &str) {
    let text = error.to_string();
    for part in [what, "no thread left", "RLIMIT_NPROC", "kernel.threads-max", "pids.max"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    assert_eq!(cause.and_then(io::Error::raw_os_error), Some(libc::EAGAIN));
}

#[test]
fn a_worker_that_finds_no_thread_names_the_limit() {
    without_threads("no_threads::a_worker_that_finds_no_thread_names_the_limit", || {
        let refused = Runtime::builder().workers(2).build().map(drop).unwrap_err();
        names_the_limit(&refused, "a worker cannot start");
        let refused = Runtime::builder().workers(2).run(|| ()).unwrap_err();
        names_the_limit(&refused, "a worker cannot start");
    });
}

#[test]
fn a_watch_that_finds_no_thread_names_the_limit() {
    without_threads("no_threads::a_watch_that_finds_no_thread_names_the_limit", || {
        let builder = Runtime::builder().workers(1).stall_limit(Duration::from_secs(3600));
        names_the_limit(&builder.run(|| ()).unwrap_err(), "the watch");
    });
}

#[test]
fn a_pool_that_finds_no_thread_names_the_limit_and_nothing_else_breaks() {
    without_threads(
        "no_threads::a_pool_that_finds_no_thread_names_the_limit_and_nothing_else_breaks",
        || {
            let sum = Runtime::builder().workers(1).run(|| {
                for _ in 0..3 {
                    let refused = fibra::spawn_blocking(|| ()).join().unwrap_err();
                    let error = refused.io_error().expect("the system's error");
                    names_the_limit(error, "a thread of the blocking pool cannot start");
                }
                fibra::spawn(|| 40).join().unwrap() + fibra::unblock(|| 2)
            });
            assert_eq!(sum.unwrap(), 42);
        },
    );
}
