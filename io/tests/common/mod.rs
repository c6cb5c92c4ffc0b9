//! What the tests share: each promise is kept in plain threads, in the tasks of one worker, and in the tasks of two and of
//! four, by the same code.

#[path = "../../../runtime/tests/common/beside.rs"]
pub(crate) mod sides;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fibra_io::net::{TcpListener, TcpStream};
use fibra_runtime::{JoinHandle, Runtime, spawn_blocking, wait};
use sides::guarded;
#[allow(unused_imports, clippy::allow_attributes, reason = "only tests in virtual time use it")]
pub(crate) use sides::hang::hang_guard;

/// What has not come after this long does not come.
const LONG: Duration = Duration::from_secs(60);

/// Makes a runtime with sockets.
pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().driver(fibra_io::driver()).workers(workers).build().unwrap()
}

/// Runs `promise` in a plain thread, and in a task of one worker, of two, and of four.
pub(crate) fn everywhere(promise: impl Fn() + Send + Sync) {
    guarded(&promise);
    in_tasks(promise);
}

/// Runs `promise` everywhere at once: it waits for so long that the four of them do not disturb each other.
pub(crate) fn everywhere_at_once(promise: impl Fn() + Send + Sync) {
    guarded(|| {
        thread::scope(|threads| {
            threads.spawn(&promise);
            for workers in [1, 2, 4] {
                let promise = &promise;
                threads.spawn(move || runtime(workers).run(promise));
            }
        });
    });
}

/// Runs `promise` in a task of one worker, of two, and of four.
pub(crate) fn in_tasks(promise: impl Fn() + Send + Sync) {
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(&promise));
    }
}

/// A runtime whose pool has one thread, and that one is taken until the returned sender is dropped.
pub(crate) fn with_full_pool(test: impl Fn(Sender<()>, JoinHandle<()>) + Send + Sync) {
    guarded(|| {
        let builder = Runtime::builder().driver(fibra_io::driver()).workers(1).max_blocking_threads(1);
        builder.build().unwrap().run(|| {
            let (free, freed) = channel::<()>();
            let (taken, begun) = channel();
            let taker = spawn_blocking(move || {
                taken.send(()).unwrap();
                _ = freed.recv();
            });
            begun.recv().unwrap();
            test(free, taker);
        });
    });
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
        assert!(start.elapsed() < LONG, "it does not come");
        nap(1);
    }
}

/// Waits until there is no listener. A child that another test starts at this moment has all that
/// is open, until it is the program that it is to be.
pub(crate) fn until_refused(address: SocketAddr) {
    until(|| TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused));
}

/// A listener on a free port.
pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Makes a listener over IPv6, if the machine has it.
pub(crate) fn listener6() -> Option<(TcpListener, SocketAddr)> {
    let listener = unless_ipv6_lacks(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr().unwrap();
    Some((listener, address))
}

/// Gives what was made for IPv6, or says, also where the output of tests is kept from the reader, that the machine has none.
pub(crate) fn unless_ipv6_lacks<T>(made: io::Result<T>) -> Option<T> {
    static SAID: Once = Once::new();
    made.inspect_err(|error| {
        let lacks = [libc::EADDRNOTAVAIL, libc::EAFNOSUPPORT].map(Some);
        assert!(lacks.contains(&error.raw_os_error()), "{error}");
        SAID.call_once(|| _ = writeln!(io::stderr(), "SKIPPED what needs IPv6: {error}"));
    })
    .ok()
}

/// Turns an option on that no library has a name for.
#[cfg(target_os = "linux")]
pub(crate) fn set_option(socket: &impl AsFd, level: libc::c_int, name: libc::c_int) {
    let on: libc::c_int = 1;
    let len = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the value is a number of ours, of the size that is told.
    let result = unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, std::ptr::from_ref(&on).cast(), len)
    };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// How many descriptors this process has open.
#[cfg(target_os = "linux")]
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Two ends of one connection: the client's, the server's.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listener();
    let client = TcpStream::connect(address).unwrap();
    (client, listener.accept().unwrap().0)
}

/// All that comes until the end.
pub(crate) fn read_all(mut stream: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

/// The kind of an error that must have come.
pub(crate) fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> ErrorKind {
    result.expect_err("an error is due").kind()
}

/// Bytes in which a loss, a repetition or an exchange shows: a round of 251, to which no buffer's size is a multiple.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let round: Vec<u8> = (0..251_u16).map(|i| (i * 31 % 251) as u8).collect();
    let mut bytes = round.repeat(len / round.len() + 1);
    bytes.truncate(len);
    bytes
}
