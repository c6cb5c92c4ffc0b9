//! Tests that pass, and functions that run.

use std::env;
use std::future::Future;
use std::io::{self, Read};
use std::mem;
use std::panic;
use std::pin::pin;
use std::process::{Command, ExitCode, Termination};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};
use fibra::{Handle, JoinError, TaskGroup, task};

use super::rerun;

#[fibra::test]
fn a_body_is_a_task_of_its_name_on_one_worker() {
    assert_eq!(task::current().name(), Some("a_body_is_a_task_of_its_name_on_one_worker"));
    assert_eq!(Handle::current().workers(), 1);
    fibra::sleep(Duration::from_millis(1));
}

#[fibra::test(workers = 3, timeout = "2m")]
fn a_test_has_as_many_workers_as_it_says() {
    assert_eq!(Handle::current().workers(), 3);
}

#[fibra::test(start_paused = true, timeout = "30s")]
fn a_paused_test_sleeps_an_hour_in_no_time() {
    let begin = fibra::time::now();
    drop(fibra::spawn(|| fibra::sleep(Duration::from_millis(900))));
    fibra::sleep(Duration::from_secs(3600));
    assert!(fibra::time::now() - begin >= Duration::from_secs(3600));
}

#[fibra::test]
fn a_body_may_return_a_result() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    assert!(listener.local_addr()?.port() > 0);
    Ok(())
}

#[fibra::test]
fn a_body_may_return_an_exit_code() -> ExitCode {
    ExitCode::SUCCESS
}

#[fibra::test]
fn a_body_may_return_what_it_does_not_name() -> impl Termination {
    Ok::<(), io::Error>(())
}

#[fibra::test]
#[should_panic(expected = "the message of the body")]
fn an_expected_panic_passes() {
    fibra::yield_now();
    panic!("the message of the body");
}

#[fibra::test]
#[ignore = "kept from running"]
fn ignored() {
    assert_eq!(task::current().name(), Some("ignored"));
}

#[test]
fn an_ignored_test_is_ignored() {
    let test = "attributes::passing::ignored";
    assert!(String::from_utf8(rerun(test).stdout).unwrap().contains("1 passed"));
    let output = Command::new(env::current_exe().unwrap()).args([test, "--exact"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("ignored, kept from running"));
}

#[fibra::test]
#[cfg(any())]
fn a_test_that_is_configured_out() {
    compile_error!("it is there");
}

macro_rules! passes_on {
    ($(#[$meta:meta])* $visibility:vis $name:ident, $workers:expr, $timeout:literal, $returned:ty, $body:block) => {
        #[fibra::test(workers = $workers, timeout = $timeout)]
        $(#[$meta])*
        $visibility fn $name() -> $returned $body
    };
}

passes_on!(
    /// Is documented.
    pub(super) parts_may_come_from_a_macro, 2, "30s", Result<(), JoinError>, {
        assert_eq!(Handle::current().workers(), 2);
        fibra::spawn(|| ()).join()
    }
);

macro_rules! panics {
    ($(#[$meta:meta])* $name:ident $body:block) => {
        #[fibra::test]
        $(#[$meta])*
        fn $name() $body
    };
}

panics!(
    #[should_panic = "expected here, too"]
    an_expectation_may_come_from_a_macro {
        panic!("expected here, too");
    }
);

#[fibra::test]
fn an_observed_panic_is_no_failure() {
    let unlucky = || fibra::spawn(|| panic!("seen"));
    assert!(unlucky().join().unwrap_err().is_panic());
    _ = unlucky().join();
    let on_pool = fibra::spawn_blocking(|| panic!("seen"));
    assert!(on_pool.join().is_err());
    let polled = unlucky();
    fibra::yield_now();
    let poll = pin!(polled).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(poll, Poll::Ready(Err(_))));
    let group = TaskGroup::new();
    group.spawn(|| panic!("seen"));
    assert!(group.join_next().unwrap().is_err());
    // Unclaimed, but told by the scope.
    let scope = || fibra::scope(|scope| drop(scope.spawn(|| panic!("seen"))));
    assert!(panic::catch_unwind(scope).is_err());
    assert!(panic::catch_unwind(|| fibra::join(|| (), || panic!("seen"))).is_err());
}

#[fibra::test]
fn a_caught_panic_is_no_failure() {
    drop(fibra::spawn(|| assert!(panic::catch_unwind(|| panic!("caught")).is_err())));
}

#[fibra::test]
fn an_error_that_is_kept_for_a_while_is_observed() {
    let kept = Mutex::new(None);
    *kept.lock().unwrap() = fibra::spawn(|| panic!("seen")).join().err();
    fibra::yield_now();
    assert!(kept.into_inner().unwrap().unwrap().is_panic());
}

#[test]
fn a_test_that_passes_prints_nothing() {
    let output = rerun("attributes::passing::an_observed_panic_is_no_failure");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(!String::from_utf8(output.stdout).unwrap().contains("seen"));
}

#[fibra::test(workers = 2)]
fn tasks_that_end_by_themselves_are_no_leak() {
    let (mut reader, writer) = io::pipe().unwrap();
    drop(fibra::spawn(|| (0..100).for_each(|_| fibra::yield_now())));
    drop(fibra::spawn(|| fibra::sleep(Duration::from_millis(100))));
    drop(fibra::spawn_blocking(|| thread::sleep(Duration::from_millis(100))));
    drop(fibra::spawn_blocking(move || reader.read(&mut [0])));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    drop(fibra::spawn(move || client.read(&mut [0])));
    let server = listener.accept().unwrap();
    fibra::yield_now();
    drop((server, writer));
}

#[fibra::test]
fn a_cancelled_task_is_no_failure() {
    let task = fibra::spawn(task::park);
    task.cancel();
    drop(task);
    mem::forget(fibra::spawn(|| ()));
}

#[fibra::test]
fn a_task_of_the_library_itself_is_no_leak() {
    drop(task::spawn_internal(&Handle::current(), task::park));
    fibra::yield_now();
}

#[fibra::test]
fn r#match() {
    assert_eq!(task::current().name(), Some("match"));
}

#[fibra::main]
fn named() -> Result<usize, io::Error> {
    Ok(fibra::spawn_local(|| task::current().name().map_or(0, str::len)).join()?)
}

#[fibra::main(workers = 2)]
fn workers() -> usize {
    Handle::current().workers()
}

#[fibra::main(workers = 1, start_paused = true)]
fn an_hour() {
    let begin = fibra::time::now();
    fibra::sleep(Duration::from_secs(3600));
    assert!(fibra::time::now() - begin >= Duration::from_secs(3600));
}

#[fibra::main(workers = 1)]
fn never() -> ! {
    panic!("never returns")
}

/// Documented, and of an opaque type.
#[fibra::main()]
#[must_use]
pub(crate) fn opaque() -> impl Iterator<Item = u32> {
    fibra::parallel_map(0..3, |n| n).into_iter()
}

#[test]
fn main_runs_a_function_as_the_first_task() {
    assert_eq!((named().unwrap(), workers(), opaque().sum::<u32>()), (0, 2, 3));
    an_hour();
    let panic = panic::catch_unwind(|| never()).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"never returns"));
}
