//! A process that may have no descriptors: alone in its binary, because the limit is the process's.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::time::Duration;

use common::in_tasks;

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

#[test]
fn tasks_of_a_process_that_may_have_no_descriptors_sleep_all_the_same() {
    in_tasks(|| {
        let before = limit();
        set_limit(libc::rlimit { rlim_cur: 0, ..before });
        fibra_runtime::sleep(Duration::from_micros(300));
        set_limit(before);
    });
}
