//! A process that may have no descriptors: alone in its binary, because the limit is the process's.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::error::Error;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::in_tasks;
use fibra_runtime::Runtime;

/// Has the test that asks run alone.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable and outlives the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit
}

fn set_limit(limit: libc::rlimit) {
    // SAFETY: the limit is a valid structure that outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

fn without_descriptors<T>(f: impl FnOnce() -> T) -> T {
    let before = limit();
    set_limit(libc::rlimit { rlim_cur: 0, ..before });
    let value = f();
    set_limit(before);
    value
}

#[test]
fn tasks_of_a_process_that_may_have_no_descriptors_sleep_all_the_same() {
    let _alone = alone();
    in_tasks(|| without_descriptors(|| fibra_runtime::sleep(Duration::from_micros(300))));
}

#[test]
fn a_runtime_that_finds_no_descriptors_names_the_limit_and_can_be_built_later() {
    let _alone = alone();
    for workers in [1, 2] {
        let builder = || Runtime::builder().driver(fibra_io::driver()).workers(workers);
        let refusals: [io::Error; 2] = without_descriptors(|| {
            [builder().build().map(drop).unwrap_err(), builder().run(|| ()).unwrap_err()]
        });
        for error in refusals {
            let text = error.to_string();
            assert!(text.contains("a reactor") && text.contains("RLIMIT_NOFILE"), "{text}");
            let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).unwrap();
            assert_eq!(cause.raw_os_error(), Some(libc::EMFILE));
            assert_eq!(error.kind(), cause.kind());
        }
        assert_eq!(builder().run(|| 42).unwrap(), 42);
    }
}
