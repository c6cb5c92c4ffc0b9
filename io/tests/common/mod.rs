//! What the tests of the sockets share: each promise is kept in plain threads, in the tasks of one worker, and in the
//! tasks of two, by the same code.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use fibra_io::net::{TcpListener, TcpStream};
use fibra_runtime::{JoinHandle, Runtime, wait};

/// A test that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(60);

/// Makes a runtime with sockets.
pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().driver(fibra_io::driver()).workers(workers).build().unwrap()
}

/// Runs `promise` in a plain thread, in a task of one worker, and in a task of two.
pub(crate) fn everywhere(promise: impl Fn() + Send + Sync) {
    guarded(&promise);
    in_tasks(promise);
}

/// Runs `promise` in a task of one worker, and in a task of two.
pub(crate) fn in_tasks(promise: impl Fn() + Send + Sync) {
    for workers in [1, 2] {
        guarded(|| runtime(workers).run(&promise));
    }
}

/// Ends the process, and says so, if `f` does not end.
pub(crate) fn guarded(f: impl FnOnce()) {
    let (done, ended) = channel::<()>();
    let name = thread::current().name().unwrap_or("main").to_owned();
    let guard = thread::spawn(move || {
        if ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name} hangs");
            std::process::abort();
        }
    });
    f();
    drop(done);
    guard.join().unwrap();
}

/// Something that runs beside the test: a task if the test is one, else a thread.
pub(crate) enum Side<T> {
    Task(JoinHandle<T>),
    Thread(thread::JoinHandle<T>),
}

/// Starts one.
pub(crate) fn beside<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Side<T> {
    match wait::in_task() {
        true => Side::Task(fibra_runtime::spawn(f)),
        false => Side::Thread(thread::spawn(f)),
    }
}

impl<T> Side<T> {
    pub(crate) fn join(self) -> T {
        match self {
            Side::Task(task) => task.join().expect("the task beside the test panicked"),
            Side::Thread(thread) => thread.join().expect("the thread beside the test panicked"),
        }
    }
}

/// Sleeps: the task or the thread.
pub(crate) fn nap(millis: u64) {
    let time = Duration::from_millis(millis);
    match wait::in_task() {
        true => fibra_runtime::sleep(time),
        false => thread::sleep(time),
    }
}

/// Waits for something that no primitive announces.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < HANG, "it does not come");
        nap(1);
    }
}

/// A listener on a free port.
pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The same over IPv6, if the machine has it.
pub(crate) fn listener6() -> Option<(TcpListener, SocketAddr)> {
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(listener) => {
            let address = listener.local_addr().unwrap();
            Some((listener, address))
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported), "{error}");
            None
        }
    }
}

/// Two ends of one connection: the client's, the server's.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listener();
    let client = TcpStream::connect(address).unwrap();
    (client, listener.accept().unwrap().0)
}

/// The kind of an error that must have come.
pub(crate) fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> ErrorKind {
    result.expect_err("an error is due").kind()
}
