//! `fibra-top` at a program that serves an endpoint, and where there is none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::{env, process, thread};

use fibra_insight::{Endpoint, Serving, serve};
use fibra_runtime::task::{self, TaskState};
use fibra_runtime::{Builder, JoinHandle, Runtime};
use fibra_sync::Mutex;

const TOKEN: &str = "correct-horse-battery";

fn fibra_top(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fibra-top"));
    command.args(["--once", "--interval", "0.1"]).args(arguments).output().expect("it runs")
}

/// Returns what it has printed.
fn printed(arguments: &[&str]) -> String {
    let output = fibra_top(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the line with which it ends.
fn error(arguments: &[&str]) -> String {
    let output = fibra_top(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    error
}

/// A runtime in which a parked task holds a lock that two others wait for.
fn program() -> (Runtime, Vec<JoinHandle<()>>) {
    let builder: Builder = Runtime::builder().workers(2);
    let runtime = builder.build().unwrap();
    let mutex = Arc::new(Mutex::new(()));
    let take = |name: &str, hold: fn()| {
        let mutex = Arc::clone(&mutex);
        let taker = task::Builder::new().name(name).spawn_on(&runtime.handle(), move || {
            let _guard = mutex.lock();
            hold();
        });
        while taker.task().state() != TaskState::Suspended {
            thread::yield_now();
        }
        taker
    };
    let tasks = vec![take("holder", task::park), take("waiter", || ()), take("waiter", || ())];
    (runtime, tasks)
}

fn end(tasks: Vec<JoinHandle<()>>) {
    tasks[0].task().unpark();
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

fn path(name: &str) -> PathBuf {
    env::temp_dir().join(format!("fibra-top-{name}-{}", process::id()))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn loopback(runtime: &Runtime) -> (Serving, String) {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let serving = serve(Endpoint::loopback(&runtime.handle(), any_port, TOKEN)).unwrap();
    let address = serving.local_addr().unwrap().to_string();
    (serving, address)
}

#[test]
fn one_view_has_the_workers_the_waits_the_locks_and_the_tasks() {
    let (runtime, tasks) = program();
    let path = path("view");
    let serving = serve(Endpoint::unix(&runtime.handle(), &path)).unwrap();
    let view = printed(&["--unix", text(&path), "--sort", "age"]);
    assert!(view.starts_with(&format!("process {}, up ", process::id())), "{view}");
    assert!(view.contains("3 tasks, 0 running, 0 ready, 3 suspended, 0 blocking, 0 unstarted"), "{view}");
    assert!(view.lines().any(|line| line.starts_with("2        mutex")), "{view}");
    let holder = tasks[0].task().id();
    let lock = view.lines().find(|line| line.contains("mutex at 0x")).expect("a line with the lock");
    assert!(lock.contains(&format!("{holder} holder")), "{view}");
    let waiters = view.lines().filter(|line| line.contains("waiter") && line.contains("suspended"));
    assert_eq!(waiters.filter(|line| line.ends_with(&format!("mutex of {holder}"))).count(), 2, "{view}");
    assert!(view.contains("AGE*"), "{view}");
    let filtered = printed(&["--unix", text(&path), "--filter", "hold"]);
    assert_eq!(filtered.lines().filter(|line| line.contains(" suspended ")).count(), 1, "{filtered}");
    end(tasks);
    drop(serving);
}

#[test]
fn a_token_is_sent_to_a_loopback_endpoint_and_a_wrong_one_is_an_error() {
    let (runtime, tasks) = program();
    let (_serving, address) = loopback(&runtime);
    let view = printed(&["--tcp", &address, "--token", TOKEN]);
    assert!(view.contains("3 suspended"), "{view}");
    let error = error(&["--tcp", &address, "--token", "something-else-of-it"]);
    let expected = format!("fibra-top: {address} refuses: 401 Unauthorized: the token is missing or wrong");
    assert!(error.starts_with(&expected), "{error}");
    end(tasks);
}

#[test]
fn an_endpoint_that_is_gone_is_an_error() {
    let path = path("gone");
    let error = error(&["--unix", text(&path)]);
    assert!(error.starts_with(&format!("fibra-top: no endpoint answers at {}: ", path.display())), "{error}");
}

#[test]
fn an_address_that_is_no_loopback_one_is_an_error() {
    let error = error(&["--tcp", "192.0.2.1:6060", "--token", TOKEN]);
    assert!(error.starts_with("fibra-top: 192.0.2.1:6060 is no loopback address"), "{error}");
}

#[test]
fn a_server_that_speaks_nonsense_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers = ["SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<htm>"];
    let server = thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().unwrap();
            _ = client.read(&mut [0; 4096]);
            client.write_all(answer.as_bytes()).unwrap();
        }
    });
    let arguments = ["--tcp", &address, "--token", TOKEN];
    let expected = format!("fibra-top: {address} does not answer as an endpoint of fibra does\n");
    assert_eq!(error(&arguments), expected);
    assert_eq!(error(&arguments), "fibra-top: the answer to /metrics has no number in \"<htm>\"\n");
    server.join().unwrap();
}
