//! Dumps before an abort. The tests abort a process, so each runs again in a child.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::env;
use std::fs;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, abort};
use std::thread;
use std::time::{Duration, Instant};

use fibra_runtime::{Builder, Handle, Runtime, task};

mod common;

use common::{deep, until_asleep};

const ROLE: &str = "FIBRA_TEST_ROLE";

/// Runs the test again in a child with that role. Returns what it has written to standard error.
fn aborts(test: &str, role: &str) -> String {
    let mut child = Command::new(env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env(ROLE, role).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{errors}");
    errors
}

/// Runs `end` in a task beside a sleeper, in a runtime with a dump on abort.
fn run(end: impl FnOnce() + Send + 'static) {
    fibra_insight::install();
    let builder: Builder = Runtime::builder().workers(2).dump_on_abort(true);
    let runtime = builder.build().unwrap();
    let sleeper = task::Builder::new().name("sleeper").spawn_on(&runtime.handle(), task::park);
    until_asleep(sleeper.task());
    let last = task::Builder::new().name("last").spawn_on(&runtime.handle(), move || {
        let mut end = Some(end);
        deep(3, &mut || end.take().expect("it is called once")());
    });
    _ = last.join();
    unreachable!("the process aborts");
}

#[test]
fn an_abort_prints_a_dump_first() {
    const TEST: &str = "an_abort_prints_a_dump_first";
    match env::var(ROLE).as_deref() {
        Ok("abort") => run(|| abort()),
        // SAFETY: no precondition.
        Ok("raise") => run(|| _ = unsafe { libc::raise(libc::SIGABRT) }),
        Ok("report") => run(|| fibra_runtime::wait::take_back(|| panic!("it cannot be taken"))),
        Ok("thread") => run(|| _ = thread::spawn(|| abort()).join()),
        _ => {}
    }
    for role in ["abort", "raise", "report", "thread"] {
        let errors = aborts(TEST, role);
        assert_eq!(errors.matches("fibra: process ").count(), 1, "{role}: {errors}");
        assert!(errors.contains("1 running, 0 ready, 1 suspended"), "{role}: {errors}");
        let sleeper = errors.lines().skip_while(|line| !line.starts_with("task 'sleeper'")).nth(1);
        assert!(sleeper.is_some_and(|line| line.contains("    at ")), "{role}: {errors}");
        if role != "thread" {
            assert!(errors.matches("common::deep").count() >= 4, "{role}: {errors}");
        }
    }
}

#[test]
fn a_dump_at_an_overflow_shows_the_calls_that_fill_the_stack() {
    const TEST: &str = "a_dump_at_an_overflow_shows_the_calls_that_fill_the_stack";
    #[expect(unconditional_recursion, reason = "the overflow is what is tested")]
    #[inline(never)]
    fn recurse(depth: u64) -> u64 {
        let frame = black_box([depth; 16]);
        recurse(depth + 1) + black_box(frame)[3]
    }
    if env::var_os(ROLE).is_some() {
        run(|| _ = black_box(recurse(0)));
    }
    let errors = aborts(TEST, "overflow");
    assert_eq!(errors.matches("fibra: process ").count(), 1, "{errors}");
    let stack: Vec<_> = errors.lines().skip_while(|line| !line.starts_with("task 'last'")).skip(1).collect();
    let end = stack.iter().position(|line| !line.starts_with("    at ")).unwrap_or(stack.len());
    let stack = &stack[..end];
    // The fault may have hit what the function calls.
    let begin = stack.iter().position(|line| line.contains("recurse")).unwrap_or(end);
    let is_recursion = |line: &&&str| line.contains("recurse") || line.contains(" more times");
    let recursion = begin + stack[begin..].iter().take_while(is_recursion).count();
    // On aarch64 the walk may end at a fault in the first instructions of a function.
    if cfg!(target_arch = "aarch64") {
        return;
    }
    assert!(begin < 3 && (begin + 2..20).contains(&recursion), "{errors}");
    assert!(stack[..recursion].iter().any(|line| line.contains(" more times")), "{errors}");
    // The calls before the recursion follow.
    assert!(stack[recursion..].iter().any(|line| line.contains("common::deep")), "{errors}");
    let is_handlers = |line: &&str| line.contains("stack::overflow") || line.ends_with("at …");
    assert!(!stack.iter().any(is_handlers), "{errors}");
}

#[test]
fn the_thread_that_dumps_leaves_the_signal_to_others() {
    let runtime = Runtime::builder().workers(1).dump_on_abort(true).build().unwrap();
    let is_blocked = || {
        fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path()).any(|thread| {
            // The system cuts names.
            let name = fs::read_to_string(thread.join("comm")).unwrap_or_default();
            let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
            let blocked = blocked.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
            name.starts_with("fibra-abort-dum")
                && blocked.is_some_and(|set| set & (1 << (libc::SIGABRT - 1)) != 0)
        })
    };
    // It has yet to start.
    let begin = Instant::now();
    while !is_blocked() {
        assert!(begin.elapsed() < Duration::from_secs(30));
        thread::yield_now();
    }
    drop(runtime);
}

#[test]
fn an_abort_that_holds_up_the_dump_waits_no_longer_than_it_says() {
    const TEST: &str = "an_abort_that_holds_up_the_dump_waits_no_longer_than_it_says";
    if env::var_os(ROLE).is_some() {
        run(|| {
            let _held = black_box(std::io::stderr().lock());
            abort();
        });
    }
    let begin = Instant::now();
    let errors = aborts(TEST, "holds");
    assert!(!errors.contains("fibra: process "), "{errors}");
    assert!(begin.elapsed() > Duration::from_secs(9));
}

#[test]
fn a_task_that_goes_on_after_the_signal_is_shown_where_it_is() {
    const TEST: &str = "a_task_that_goes_on_after_the_signal_is_shown_where_it_is";
    extern "C" fn handler(_: libc::c_int) {}
    #[inline(never)]
    fn onward(runtime: &Handle) {
        // By another thread, since a dump has no stack of its caller.
        let runtime = runtime.clone();
        thread::spawn(move || eprintln!("later: {}", runtime.dump())).join().expect("a dump");
        black_box(());
    }
    if env::var_os(ROLE).is_some() {
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGABRT, handler as *const () as usize) };
        run(|| {
            // SAFETY: no precondition.
            _ = unsafe { libc::raise(libc::SIGABRT) };
            onward(&Handle::current());
            abort();
        });
    }
    let errors = aborts(TEST, "goes on");
    let (first, later) = errors.split_once("later: ").unwrap_or_else(|| panic!("{errors}"));
    assert!(first.contains("fibra: process ") && !first.contains("onward"), "{errors}");
    assert!(later.contains("onward"), "{errors}");
}

#[test]
fn the_dump_before_an_abort_leaves_errno_as_it_was() {
    const TEST: &str = "the_dump_before_an_abort_leaves_errno_as_it_was";
    if env::var_os(ROLE).is_some() {
        extern "C" fn handler(_: libc::c_int) {}
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGABRT, handler as *const () as usize) };
        run(|| {
            // SAFETY: the place is this thread's, and `raise` has no precondition.
            let errno = unsafe {
                *libc::__errno_location() = 77;
                libc::raise(libc::SIGABRT);
                *libc::__errno_location()
            };
            eprintln!("errno {errno}");
            abort();
        });
    }
    let errors = aborts(TEST, "errno");
    assert!(errors.contains("errno 77"), "{errors}");
}

#[test]
fn two_threads_that_abort_wait_for_one_dump() {
    const TEST: &str = "two_threads_that_abort_wait_for_one_dump";
    if env::var_os(ROLE).is_some() {
        // SAFETY: no handler is set.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        run(|| {
            // The dump waits for it.
            let held = std::io::stderr().lock();
            let aborting = [(); 2].map(|()| {
                let aborting = thread::spawn(|| abort());
                thread::sleep(Duration::from_millis(300));
                aborting
            });
            drop(held);
            aborting.into_iter().for_each(|thread| _ = thread.join());
        });
    }
    let errors = aborts(TEST, "two");
    assert_eq!(errors.matches("fibra: process ").count(), 1, "{errors}");
}

#[test]
fn a_handler_of_the_program_runs_after_the_dump() {
    const TEST: &str = "a_handler_of_the_program_runs_after_the_dump";
    extern "C" fn handler(_: libc::c_int) {
        // SAFETY: a valid range of bytes.
        unsafe { libc::write(2, b"handled\n".as_ptr().cast(), 8) };
    }
    if env::var_os(ROLE).is_some() {
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler calls `write` only.
        unsafe { libc::signal(libc::SIGABRT, handler as *const () as usize) };
        run(|| abort());
    }
    let errors = aborts(TEST, "handles");
    let at = |text: &str| errors.find(text).unwrap_or_else(|| panic!("no {text:?} in {errors}"));
    assert!(at("fibra: process ") < at("handled\n"), "{errors}");
}
