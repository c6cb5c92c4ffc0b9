//! Dumps where a filter of system calls refuses the copy of memory. A filter stays, so each test runs again in a child.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::env;
use std::ffi::c_long;
use std::process::Command;

use fibra_runtime::task::{self, TaskState};
use fibra_runtime::{Builder, Runtime};

mod common;

use common::{deep, deep_calls};

const ROLE: &str = "FIBRA_TEST_ROLE";

/// Runs the test again in a child, unless this is one.
fn in_a_child(test: &str, body: fn()) {
    if env::var_os(ROLE).is_some() {
        return body();
    }
    let mut child = Command::new(env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env(ROLE, "child").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("running 1 test"));
}

/// Has the kernel refuse that system call from now on, to this thread and to those that it starts.
fn refuse(call: c_long) {
    let (load, jump, end) =
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_RET);
    let step = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut steps = [
        step(load, 0, 0),
        step(jump | libc::BPF_K, 1, call as u32),
        step(end, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(end, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: integers go in, and a program that the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

/// Parks a task three calls deep, on a runtime without `process_vm_readv`.
fn with_a_sleeper(check: impl FnOnce(&Runtime)) {
    refuse(libc::SYS_process_vm_readv);
    fibra_insight::install();
    let builder: Builder = Runtime::builder().workers(1);
    let runtime = builder.build().unwrap();
    let sleep = || _ = deep(3, &mut task::park);
    let sleeper = task::Builder::new().name("sleeper").spawn_on(&runtime.handle(), sleep);
    while sleeper.task().state() != TaskState::Suspended {
        std::thread::yield_now();
    }
    check(&runtime);
}

#[test]
fn a_dump_reads_memory_by_its_file_where_the_call_is_refused() {
    in_a_child("a_dump_reads_memory_by_its_file_where_the_call_is_refused", || {
        with_a_sleeper(|runtime| {
            let dump = runtime.handle().dump();
            let [sleeper] = dump.tasks() else { panic!("one task: {dump}") };
            assert_eq!(sleeper.waits_for().unwrap().kind, "park", "{dump}");
            assert_eq!(deep_calls(&sleeper.backtrace().unwrap()), 4, "{dump}");
        });
    });
}

#[test]
fn a_dump_says_what_cannot_be_read_where_the_file_is_refused_too() {
    in_a_child("a_dump_says_what_cannot_be_read_where_the_file_is_refused_too", || {
        with_a_sleeper(|runtime| {
            let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the limit is valid. No further descriptor can be had from now on.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
            let dump = runtime.handle().dump();
            let [sleeper] = dump.tasks() else { panic!("one task: {dump}") };
            assert_eq!((sleeper.state(), sleeper.waits_for()), (TaskState::Suspended, None), "{dump}");
            assert!(dump.to_string().contains("suspended, "), "{dump}");
            assert!(dump.to_string().contains(", waiting for what cannot be read"), "{dump}");
            assert!(dump.to_json().contains(r#""taskState": "suspended""#), "{}", dump.to_json());
        });
    });
}
