//! What children and awaited descriptors leave behind: nothing. Alone in its binary, because what is counted is the
//! process's.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::sides::guarded;
use common::{descriptors, runtime, until};
use fibra_io::Pollable;
use fibra_io::process::{Command, Stdio};
use fibra_runtime::{CancelToken, timeout};

const ROUNDS: usize = 60;

/// How many processes have this one as their parent, running or ended.
fn children() -> usize {
    let me = std::process::id().to_string();
    let is_child = |stat: String| {
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.to_owned());
        fields.is_some_and(|fields| fields.split(' ').nth(1) == Some(&me))
    };
    let stats = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("stat"));
    stats.filter_map(|path| fs::read_to_string(path).ok()).filter(|stat| is_child(stat.clone())).count()
}

fn reapers() -> usize {
    let names = fs::read_dir("/proc/self/task").unwrap().flatten().map(|entry| entry.path().join("comm"));
    names
        .filter_map(|path| fs::read_to_string(path).ok())
        .filter(|name| name.trim() == "fibra-reaper")
        .count()
}

/// Children of all kinds, and of all ends.
fn children_come_and_go(round: usize) {
    let mut command = Command::new("sh");
    if round.is_multiple_of(3) {
        command.without_pidfd();
    }
    command.args(["-c", "read line; echo $line; echo $line >&2"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());

    let mut answers = command.spawn().unwrap();
    answers.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    let output = answers.wait_with_output().unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"hello\n"[..], &b"hello\n"[..]));

    let mut late = command.spawn().unwrap();
    let stdin = late.stdin.take();
    assert!(late.wait_timeout(Duration::from_micros(100)).unwrap().is_none());
    drop(stdin);
    let mut text = String::new();
    late.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "\n");
    drop(late);

    // These are not waited for.
    drop(command.spawn().unwrap());
    drop(command.kill_on_drop(true).spawn().unwrap());
    assert!(Command::new("/no/such/program").stdin(Stdio::piped()).spawn().is_err());
}

fn descriptors_are_awaited() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let first = Pollable::new(&ours).unwrap();
    let second = Pollable::new(&ours).unwrap();
    assert!(!first.wait_readable_timeout(Duration::from_micros(100)).unwrap());
    second.into_inner();
    assert!(Pollable::new(fs::File::open("/").unwrap()).is_err());
}

fn waits_are_cancelled() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _stdin = child.stdin.take();
    assert!(timeout(Duration::from_micros(100), || child.wait()).is_err());
    let token = CancelToken::new();
    token.cancel();
    assert!(token.scope(move || child.wait_with_output()).is_err());
}

/// Runs `f` while the process may open no descriptor.
fn without_descriptors<T>(f: impl FnOnce() -> T) -> T {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable and outlives the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    // Those that are open stay so, the one of number 3 among them: the caller has one.
    let none = libc::rlimit { rlim_cur: 4, ..limit };
    // SAFETY: the structure is valid and outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
    let value = f();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    value
}

/// What needs a descriptor says that there is none, and is as before when there are some again.
fn descriptors_run_out() {
    // In this order: the thread has its name once it has waited for a child.
    until(|| children() == 0);
    until(|| reapers() == 0);
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut command = Command::new("sleep");
    command.arg("100").kill_on_drop(true);
    let child = command.spawn().unwrap();
    let refused = without_descriptors(|| {
        // A thread waits for it, which needs none.
        drop(child);
        [command.stdin(Stdio::piped()).spawn().map(drop), Pollable::new(&ours).map(drop)]
    });
    for refusal in refused {
        assert_eq!(refusal.unwrap_err().raw_os_error(), Some(libc::EMFILE));
    }
    until(|| children() == 0);
    Pollable::new(&ours).unwrap();
}

/// One test, so that nothing else opens descriptors and starts children beside it.
#[test]
fn nothing_is_left_of_children_and_of_what_was_awaited() {
    guarded(|| {
        let before = descriptors();
        descriptors_run_out();
        for round in 0..ROUNDS {
            children_come_and_go(round);
            descriptors_are_awaited();
        }
        for workers in [1, 2, 4] {
            runtime(workers).run(|| {
                for round in 0..ROUNDS {
                    children_come_and_go(round);
                    descriptors_are_awaited();
                    waits_are_cancelled();
                }
                descriptors_run_out();
            });
        }
        until(|| children() == 0);
        until(|| reapers() == 0);
        until(|| descriptors() == before);
    });
}
