//! A hundred thousand connections leave nothing behind: no descriptor, no task, no stack, no memory. Alone in its binary, because
//! what is counted is the process's.
#![cfg(target_os = "linux")]

mod common;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{NOISE, descriptors, resident, until};
use fibra::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use fibra::sync::ManualResetEvent;

/// How many connections are made before the memory is measured: most of what grows to some size has grown to it.
const WARMING: usize = 10_000;

/// How many are made after that.
const CONNECTIONS: usize = 100_000;

/// How many clients there are at once over TCP, and as many over Unix sockets.
const CLIENTS: usize = 8;

/// How many connections wait to be accepted when their clients go.
const LATE: usize = 50;

/// How many tasks and how many stacks there may be at once.
const MOST: usize = 500;

/// How many more tasks can be alive at once, each of them with a stack: all but this one, if nothing is left of others.
fn room() -> usize {
    let (gate, inside) = (Arc::new(ManualResetEvent::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut waiting = Vec::new();
    loop {
        let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
        let task = fibra::spawn(move || {
            // Relaxed: a number, which tells nothing else.
            inside.fetch_add(1, Ordering::Relaxed);
            gate.wait();
        });
        // One too many is over before it begins.
        if task.is_finished() {
            break;
        }
        waiting.push(task);
    }
    until(|| match inside.load(Ordering::Relaxed) {
        all if all == waiting.len() => Ok(()),
        some => Err(format!("{some} of {} tasks have a stack", waiting.len())),
    });
    gate.set();
    let count = waiting.len();
    waiting.into_iter().for_each(|task| task.join().expect("it ran"));
    count
}

/// What both kinds of streams can do.
trait Stream: Read + Write + Sized + Send + 'static {
    fn shut(&self) -> io::Result<()>;
    /// Closes it with a reset, where there is such a thing.
    fn reset(self);
}

impl Stream for TcpStream {
    fn shut(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn reset(self) {
        self.set_linger(Some(Duration::ZERO)).expect("a linger of zero");
    }
}

impl Stream for UnixStream {
    fn shut(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn reset(self) {}
}

/// Echoes until the client's end, be it a good or a bad one.
fn handle(mut stream: impl Stream) {
    let mut buffer = [0; 16];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
}

fn asks(stream: &mut impl Stream) {
    stream.write_all(b"request").expect("sent");
    stream.read_exact(&mut [0; 7]).expect("answered");
}

/// One connection, which ends in one of many ways.
fn visit(mut stream: impl Stream, number: usize) {
    match number % 5 {
        0 => asks(&mut stream),
        1 => {
            asks(&mut stream);
            stream.reset();
        }
        2 => {
            asks(&mut stream);
            stream.shut().expect("half-closed");
            assert_eq!(stream.read(&mut [0]).expect("the other half's end"), 0);
        }
        // Goes without the answer, which may be a reset.
        3 => stream.write_all(b"request").expect("sent"),
        _ => stream.reset(),
    }
}

/// A listener, by what is done with it.
struct Net<S> {
    connect: Box<dyn Fn() -> io::Result<S> + Send + Sync>,
    accept: Box<dyn Fn() -> io::Result<S> + Send + Sync>,
}

fn tcp() -> Net<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    Net {
        connect: Box::new(move || TcpStream::connect(address)),
        accept: Box::new(move || Ok(listener.accept()?.0)),
    }
}

fn unix() -> Net<UnixStream> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only the number counts.
    let name = format!("fibra {} {}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let address = SocketAddr::from_abstract_name(name).expect("an address");
    let listener = UnixListener::bind_addr(&address).expect("a listener");
    Net {
        connect: Box::new(move || UnixStream::connect_addr(&address)),
        accept: Box::new(move || Ok(listener.accept()?.0)),
    }
}

/// A task for each connection, as a server has it.
fn serve<S: Stream>(net: &Net<S>) {
    loop {
        let stream = (net.accept)().expect("a connection");
        fibra::spawn(|| handle(stream));
    }
}

/// Clients that are gone before they are accepted, some of them after a request.
fn visit_late<S: Stream>(net: &Net<S>) {
    let streams: Vec<S> = (0..LATE).map(|_| (net.connect)().expect("a place in the queue")).collect();
    streams.into_iter().enumerate().for_each(|(number, stream)| visit(stream, 3 + number % 2));
    (0..LATE).for_each(|_| handle((net.accept)().expect("a connection, though it has ended")));
}

/// Servers, and clients that come so many times in all.
fn come_and_go<S: Stream>(net: impl Fn() -> Net<S>, connections: usize) {
    let (served, late) = (net(), net());
    let each = connections.div_ceil(CLIENTS + 1);
    let clients = || {
        fibra::scope(|scope| {
            for client in 0..CLIENTS {
                let served = &served;
                let visits =
                    move || (0..each).for_each(|i| visit((served.connect)().expect("served"), client + i));
                scope.spawn(visits);
            }
            scope.spawn(|| (0..each.div_ceil(LATE)).for_each(|_| visit_late(&late)));
        });
    };
    fibra::race(|| serve(&served), clients);
}

fn rounds(connections: usize) {
    fibra::scope(|scope| {
        scope.spawn(|| come_and_go(tcp, connections / 2));
        scope.spawn(|| come_and_go(unix, connections / 2));
    });
}

/// Waits until as many tasks can be alive as there may be, beside this one.
fn nothing_is_left() {
    until(|| match room() {
        all if all == MOST - 1 => Ok(()),
        some => Err(format!("room for {some} tasks with stacks, not for {}", MOST - 1)),
    });
}

#[test]
fn connections_leave_nothing_behind() {
    let runtime = fibra::Runtime::builder().workers(2).max_tasks(MOST).max_stacks(MOST).build();
    runtime.expect("a runtime").run(|| {
        // What the runtime needs for itself, it has after some of them.
        rounds(WARMING);
        nothing_is_left();
        let (open, memory) = (descriptors("self"), resident("self"));
        rounds(CONNECTIONS);
        nothing_is_left();
        assert_eq!(descriptors("self"), open, "descriptors have leaked");
        println!("resident: {memory} KiB, then {}", resident("self"));
        until(|| match resident("self") {
            now if now < memory + NOISE => Ok(()),
            now => Err(format!("from {memory} KiB the memory came to {now}")),
        });
    });
}
