//! What the endpoint promises to its clients, and to the program that makes one.

mod common;

use std::fs::{self, Permissions};
use std::hint;
use std::io::{ErrorKind, Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::until_asleep;
use fibra_insight::{Endpoint, FlightRecorder, Serving, serve};
use fibra_runtime::{self as fibra, Runtime};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

const TOKEN: &str = "a-token-of-the-tests";

/// A runtime with an endpoint at a socket of its own.
struct Served {
    path: PathBuf,
    serving: Serving,
    runtime: Runtime,
}

impl Served {
    fn new(name: &str) -> Self {
        let runtime = Runtime::builder().workers(2).build().expect("a runtime");
        let path = socket_path(name);
        let serving = serve(Endpoint::unix(&runtime.handle(), &path)).expect("an endpoint");
        Served { path, serving, runtime }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).expect("a connection")
    }

    /// Returns the status, and the body.
    fn get(&self, target: &str) -> (u16, Vec<u8>) {
        exchange(self.connect(), &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    fn text(&self, target: &str) -> String {
        let (status, body) = self.get(target);
        let text = String::from_utf8(body).expect("text");
        assert_eq!(status, 200, "{target}: {text}");
        text
    }
}

fn socket_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fibra-{}-{name}", process::id()))
}

/// Sends a request, and returns the status and the body.
fn exchange(mut client: impl Read + Write, request: &str) -> (u16, Vec<u8>) {
    client.write_all(request.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(head.contains("\r\nConnection: close"), "{head}");
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest[..3].parse().ok()).expect("a status");
    (status, answer[end + 4..].to_vec())
}

/// Sets a flag at the end, also of a test that fails.
struct SetAtEnd(Arc<AtomicBool>);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_endpoint_answers_while_every_worker_computes() {
    let served = Served::new("computes");
    let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(3)));
    let tasks: Vec<_> = (0..2)
        .map(|worker| {
            let (stop, begun) = (Arc::clone(&stop), Arc::clone(&begun));
            served.runtime.handle().spawn_on_worker(worker, move || {
                begun.wait();
                while !stop.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            })
        })
        .collect();
    let stop = SetAtEnd(stop);
    begun.wait();
    let full = served.text("/tasks?debug=2");
    assert!(full.contains("2 tasks, 2 running"), "{full}");
    let grouped = served.text("/tasks");
    assert!(grouped.contains(" running: task "), "{grouped}");
    assert!(served.text("/tasks?debug=1").contains(" running: task "));
    assert!(served.text("/tasks?format=json").starts_with("{\"threadDump\": "));
    assert_eq!(served.text("/graph"), "digraph waits {\n}\n");
    let metrics = served.text("/metrics");
    assert!(metrics.contains("\nfibra_tasks{state=\"running\"} 2\n"), "{metrics}");
    let folded = served.text("/profile?seconds=1&format=folded&state=running");
    assert!(
        folded.lines().any(|line| line.contains("tests/endpoint.rs") && line.contains(";[running] ")),
        "{folded}"
    );
    let (status, pprof) = served.get("/profile?seconds=1");
    assert_eq!((status, pprof[0]), (200, 0x0a));
    let (status, trace) = served.get("/trace?seconds=1");
    assert_eq!((status, trace[0]), (200, 0x0a));
    assert!(served.text("/").contains("/tasks?debug=2"));
    drop(stop);
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

#[test]
fn a_socket_has_mode_0600() {
    let served = Served::new("mode");
    let file = fs::metadata(&served.path).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_user_who_gets_at_the_socket_is_refused() {
    let served = Served::new("user");
    // The test has to be root to be another user.
    fs::set_permissions(&served.path, Permissions::from_mode(0o666)).unwrap();
    let mut curl = Command::new("curl");
    curl.args(["-s", "-w", "%{http_code}", "http://localhost/tasks", "--unix-socket"]).arg(&served.path);
    let Ok(output) = curl.uid(65534).gid(65534).output() else {
        eprintln!("skipped: it needs curl, and root");
        return;
    };
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output, "the endpoint is for the user of the process, and for root\n403");
}

#[test]
fn loopback_wants_a_token_and_checks_host() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    for ip in ["127.0.0.1", "::1"] {
        let any_port = SocketAddr::new(ip.parse().unwrap(), 0);
        let serving = match serve(Endpoint::loopback(&runtime.handle(), any_port, TOKEN)) {
            Err(error) if ip == "::1" && error.kind() == ErrorKind::AddrNotAvailable => continue,
            serving => serving.unwrap(),
        };
        let address = serving.local_addr().unwrap();
        let ask = |host: &str, more: &str| {
            let request = format!("GET /tasks HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
            let (status, body) = exchange(TcpStream::connect(address).unwrap(), &request);
            (status, String::from_utf8(body).unwrap())
        };
        let (own, right) = (address.to_string(), format!("Authorization: Bearer {TOKEN}\r\n"));
        assert_eq!(ask(&own, &right).0, 200);
        assert_eq!(ask("localhost", &right).0, 200);
        for wrong in [
            "",
            "Authorization: Bearer a-token-of-the-test\r\n",
            "Authorization: Basic a-token-of-the-tests\r\n",
        ] {
            let (status, body) = ask(&own, wrong);
            assert_eq!(status, 401, "{wrong}");
            assert!(body.contains("the token is missing or wrong"), "{body}");
        }
        assert_eq!(
            ask(&own, &format!("authorization: bEARER  {TOKEN}\r\n")).0,
            200,
            "the scheme has no case"
        );
        let twice = format!("Host: example.com\r\n{right}");
        assert_eq!(ask(&own, &twice), (400, "the request has more than one Host\n".to_owned()));
        let (status, body) = ask(&format!("example.com:{}", address.port()), &right);
        assert_eq!(status, 403);
        assert!(body.contains("\"example.com:"), "{body}");
        let request = format!("GET / HTTP/1.0\r\n{right}\r\n");
        assert_eq!(exchange(TcpStream::connect(address).unwrap(), &request).0, 403);
    }
}

/// Returns what is wrong with an endpoint.
fn error(endpoint: Endpoint) -> (ErrorKind, String) {
    let error = serve(endpoint).expect_err("an error");
    (error.kind(), error.to_string())
}

#[test]
fn an_endpoint_in_use_is_a_clear_error() {
    let served = Served::new("in-use");
    let handle = served.runtime.handle();
    let (kind, text) = error(Endpoint::unix(&handle, &served.path));
    assert_eq!(kind, ErrorKind::AddrInUse);
    assert!(text.ends_with("is in use: another endpoint or process listens on it"), "{text}");
    assert_eq!(served.get("/").0, 200, "the first one goes on");

    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let first = serve(Endpoint::loopback(&handle, any_port, TOKEN)).unwrap();
    let address = first.local_addr().unwrap();
    let (kind, text) = error(Endpoint::loopback(&handle, address, TOKEN));
    assert_eq!(kind, ErrorKind::AddrInUse);
    assert!(text.contains(&address.to_string()), "{text}");

    let file = socket_path("file");
    fs::write(&file, "precious").unwrap();
    let (kind, text) = error(Endpoint::unix(&handle, &file));
    assert_eq!(kind, ErrorKind::AddrInUse);
    assert!(text.ends_with("exists, and is no socket"), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    fs::remove_file(&file).unwrap();
}

#[test]
fn a_socket_that_a_process_has_left_is_replaced() {
    let path = socket_path("stale");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let served = Served { serving: serve(Endpoint::unix(&runtime.handle(), &path)).unwrap(), path, runtime };
    assert_eq!(served.get("/").0, 200);
}

#[test]
fn one_of_many_gets_the_socket_that_a_process_has_left() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let path = socket_path("race");
    for _ in 0..20 {
        drop(UnixListener::bind(&path).unwrap());
        let start = Barrier::new(4);
        let attempt = || {
            start.wait();
            serve(Endpoint::unix(&runtime.handle(), &path))
        };
        let made = thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(attempt));
            threads.map(|thread| thread.join().unwrap())
        });
        let (served, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
        assert_eq!(served.len(), 1);
        for error in refused.into_iter().map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        }
        let client = UnixStream::connect(&path).expect("the file is that of the one");
        assert_eq!(exchange(client, "GET / HTTP/1.1\r\n\r\n").0, 200);
        drop(served);
        assert!(!path.exists() && !socket_path("race.lock").exists(), "its files go with it");
    }
}

#[test]
fn a_socket_whose_queue_is_full_is_in_use() {
    let path = socket_path("full");
    let socket = || net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None);
    let (listener, address) = (socket().unwrap(), SocketAddrUnix::new(&path).unwrap());
    net::bind(&listener, &address).unwrap();
    net::listen(&listener, 0).unwrap();
    let connect = |client: &OwnedFd| net::connect(client, &address);
    let clients: Vec<_> =
        iter::repeat_with(|| socket().unwrap()).take_while(|client| connect(client).is_ok()).collect();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (kind, text) = error(Endpoint::unix(&runtime.handle(), &path));
    assert_eq!(kind, ErrorKind::AddrInUse, "{text}");
    assert!(!clients.is_empty() && path.exists());
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_wrong_place_is_a_clear_error() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let unix = |path: &Path| error(Endpoint::unix(&runtime.handle(), path));
    let loopback = |address: &str, token| {
        error(Endpoint::loopback(&runtime.handle(), address.parse::<SocketAddr>().unwrap(), token))
    };
    for ((kind, text), expected, words) in [
        (unix(Path::new("")), ErrorKind::InvalidInput, "is empty"),
        (unix(Path::new("/tmp/\0")), ErrorKind::InvalidInput, "cannot be made"),
        (unix(Path::new("/no/such/directory")), ErrorKind::NotFound, "its directory does not exist"),
        (unix(Path::new("/dev/null/socket")), ErrorKind::NotADirectory, "is no directory"),
        (unix(&socket_path(&"x".repeat(120))), ErrorKind::InvalidFilename, "at most 108 bytes"),
        (loopback("0.0.0.0:0", TOKEN), ErrorKind::InvalidInput, "0.0.0.0:0 is no loopback address"),
        (loopback("[::ffff:127.0.0.1]:0", TOKEN), ErrorKind::InvalidInput, "is no loopback address"),
        (loopback("127.0.0.1:0", "short"), ErrorKind::InvalidInput, "at least 16 bytes"),
        (loopback("127.0.0.1:0", "a token with\r\nline breaks"), ErrorKind::InvalidInput, "without spaces"),
    ] {
        assert_eq!(kind, expected, "{text}");
        assert!(text.contains(words), "{text}");
    }
    // No user can make files there, root included.
    let (kind, text) = unix(Path::new("/sys/socket"));
    assert!(text.ends_with("there is no permission to make a file there"), "{kind}: {text}");
}

#[test]
fn a_long_head_is_refused() {
    let served = Served::new("long");
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(50_000));
    let (status, body) = exchange(served.connect(), &request);
    assert_eq!(status, 431);
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "the head of a request has at most 8192 bytes and 64 fields\n"
    );
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let served = Served::new("nonsense");
    for (target, expected, words) in [
        ("/nothing", 404, "there is no \"/nothing\", only\n/tasks"),
        ("/tasks/", 404, "there is no"),
        ("/tasks?debug=3", 400, "debug is \"3\", and may be 1, 2"),
        ("/tasks?debug", 400, "debug is \"\""),
        ("/tasks?format=xml", 400, "may be text, json"),
        ("/tasks?colour=red", 400, "/tasks has no parameter \"colour\", but these: [\"debug\", \"format\"]"),
        ("/graph?x=1", 400, "/graph has no parameter \"x\", but these: []"),
        ("/metrics?x=1", 400, "no parameter"),
        ("/profile?seconds=0", 400, "seconds is \"0\", and may be a number from 1 to 600"),
        ("/profile?seconds=-1", 400, "a number"),
        ("/profile?seconds=1e9", 400, "a number"),
        ("/trace?seconds=x", 400, "from 1 to 600"),
        ("/profile?rate=100000", 400, "from 1 to 1000"),
        ("/profile?state=asleep", 400, "may be all, running, ready, suspended, blocking"),
        ("/profile?format=svg", 400, "may be pprof, folded"),
        ("http://elsewhere/", 400, "no path"),
    ] {
        let (status, body) = served.get(target);
        let body = String::from_utf8(body).unwrap();
        assert_eq!(status, expected, "{target}: {body}");
        assert!(body.contains(words), "{target}: {body}");
    }
    for (request, expected) in [("DELETE /tasks HTTP/1.1\r\n\r\n", 405), ("\0\0\0\r\n\r\n", 400)] {
        assert_eq!(exchange(served.connect(), request).0, expected, "{request}");
    }
    let (status, body) = exchange(served.connect(), "HEAD /tasks HTTP/1.1\r\n\r\n");
    assert_eq!((status, body.len()), (200, 0));
}

#[test]
fn a_fifth_client_waits_or_is_refused() {
    let served = Served::new("fifth");
    let mut silent: Vec<_> = (0..4).map(|_| served.connect()).collect();
    let mut fifth = served.connect();
    fifth.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    fifth.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(fifth.read(&mut [0; 1]).expect_err("no answer yet").kind(), ErrorKind::WouldBlock);
    silent.pop();
    fifth.set_read_timeout(None).unwrap();
    assert_eq!(exchange(fifth, "").0, 200);
}

#[test]
fn a_client_that_sends_nothing_is_sent_away() {
    let served = Served::new("silent");
    let begin = Instant::now();
    let (status, body) = exchange(served.connect(), "GET / HT");
    assert_eq!((status, body.as_slice()), (408, b"the request took too long\n".as_slice()));
    assert!(begin.elapsed() >= Duration::from_secs(5));
}

#[test]
fn one_profile_at_a_time() {
    let served = Served::new("one");
    let mut answers = thread::scope(|scope| {
        let both = [0; 2].map(|_| scope.spawn(|| served.get("/profile?seconds=4")));
        both.map(|thread| thread.join().unwrap())
    });
    answers.sort();
    let [(first, _), (second, refusal)] = &answers;
    assert_eq!((*first, *second), (200, 503));
    assert_eq!(
        String::from_utf8_lossy(refusal),
        "another profile is being taken: ask again when it has ended\n"
    );
}

#[test]
fn a_client_that_leaves_ends_its_profile() {
    let served = Served::new("leaves");
    let mut client = served.connect();
    client.write_all(b"GET /profile?seconds=600 HTTP/1.1\r\n\r\n").unwrap();
    drop(client);
    let limit = Instant::now() + Duration::from_secs(60);
    while served.get("/profile?seconds=1").0 != 200 {
        assert!(Instant::now() < limit, "the profile goes on");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_trace_leaves_the_recorder_of_the_program_alone() {
    let served = Served::new("trace");
    let recorder = FlightRecorder::start(&served.runtime.handle()).unwrap();
    let (status, text) = served.get("/trace");
    let text = String::from_utf8_lossy(&text);
    assert!(status == 503 && text.ends_with("ask again when that has ended\n"), "{text}");
    drop(recorder);
    served.runtime.run(fibra::yield_now);
    let (status, trace) = served.get("/trace?seconds=1");
    assert_eq!((status, trace[0]), (200, 0x0a));
}

#[test]
fn a_dropped_endpoint_ends_profiles_and_makes_room() {
    let Served { path, serving, runtime } = Served::new("dropped");
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET /profile?seconds=600&rate=50 HTTP/1.1\r\n\r\n").unwrap();
    // So that it is read.
    thread::sleep(Duration::from_millis(200));
    drop(serving);
    assert!(!path.exists());
    let again = serve(Endpoint::unix(&runtime.handle(), &path)).unwrap();
    assert_eq!(exchange(client, "").0, 200);

    // A file that is not its own stays.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "another's").unwrap();
    drop(again);
    assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
    fs::remove_file(&path).unwrap();
}

#[test]
fn an_endpoint_outlives_its_runtime() {
    let Served { path, serving, runtime } = Served::new("outlives");
    let parked = runtime.spawn(fibra::task::park);
    until_asleep(parked.task());
    let served = Served { path, serving, runtime: Runtime::builder().workers(1).build().unwrap() };
    assert!(served.text("/tasks?debug=2").contains("1 suspended"));
    drop((parked, runtime));
    assert!(served.text("/tasks?debug=2").contains("0 tasks"));
    assert!(served.text("/metrics").contains("fibra_tasks_ended_total 1\n"));
}
