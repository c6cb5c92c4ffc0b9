//! Each wait for a socket is notified and ended at the same moment, by a cancel, by a scope around it, or by its own
//! timeout: no byte and no connection is lost, and neither memory nor descriptors leak.

#[path = "../../runtime/tests/common/at_once/mod.rs"]
mod at_once;
#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use at_once::Row;
use common::sides::guarded;
use common::{listener, pair};
use fibra_io::net::{TcpListener, TcpStream};
use socket2::SockRef;

fn play<T: Send + Sync + 'static, H: 'static>(row: Row<T, H>) {
    let _alone = at_once::alone();
    guarded(|| at_once::play(row, |builder| builder.driver(fibra_io::driver())));
}

/// What is left until then; a socket takes no timeout of zero.
fn rest(until: Instant) -> Option<Duration> {
    Some(until.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1)))
}

/// True if the call did its work, false if its time ran out.
fn is_done<T>(result: io::Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            false
        }
    }
}

/// The first is read from, the second is written to.
type Pair = (TcpStream, TcpStream);

/// By the company of a victim: the timeout of a socket is for all its users.
fn read_in_the_end(pair: &Pair, _until: Option<Instant>) -> bool {
    while !is_done((&pair.0).read(&mut [0])) {}
    true
}

fn is_empty(stream: &TcpStream) {
    stream.set_nonblocking(true).unwrap();
    assert!(!is_done((&*stream).read(&mut [0; 8])), "nothing is there");
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(None).unwrap();
}

#[test]
fn a_byte_that_is_read() {
    let row = Row::new(
        pair,
        |(reader, _), until| {
            reader.set_read_timeout(until.and_then(rest)).unwrap();
            is_done((&*reader).read(&mut [0]))
        },
        |(_, writer), ()| (&*writer).write_all(&[7]).unwrap(),
        |(reader, _), left| {
            reader.set_read_timeout(None).unwrap();
            (&*reader).read_exact(&mut vec![0; left]).unwrap();
            is_empty(reader);
        },
    );
    play(Row { company: Some(read_in_the_end), lasts: 40, rounds: 500, ..row });
}

#[test]
fn a_byte_that_is_peeked_at() {
    let row = Row::new(
        pair,
        |(reader, _), until| {
            reader.set_read_timeout(until.and_then(rest)).unwrap();
            is_done(reader.peek(&mut [0]))
        },
        |(_, writer), ()| (&*writer).write_all(&[7]).unwrap(),
        |(reader, _), _| {
            reader.set_read_timeout(None).unwrap();
            (&*reader).read_exact(&mut [0]).unwrap();
            is_empty(reader);
        },
    );
    play(Row {
        company: Some(|(reader, _): &Pair, _| {
            while !is_done(reader.peek(&mut [0])) {}
            true
        }),
        lasts: 40,
        rounds: 500,
        ..row.serving_all()
    });
}

#[test]
fn the_end_of_a_stream() {
    let row = Row::new(
        pair,
        |(reader, _), until| {
            reader.set_read_timeout(until.and_then(rest)).unwrap();
            is_done((&*reader).read(&mut [0]))
        },
        |(_, writer), ()| writer.shutdown(net::Shutdown::Write).unwrap(),
        |(reader, _), _| {
            reader.set_read_timeout(None).unwrap();
            assert_eq!((&*reader).read(&mut [0]).unwrap(), 0, "it stays ended");
            reset(reader);
        },
    );
    play(Row { both_win: false, rounds: 150, ..row.once_for_all().alone() });
}

/// A writer with a full buffer. What it does is that of any stream; this kind has a small buffer
/// and no clocks.
struct Full {
    writer: TcpStream,
    reader: UnixStream,
    sent: AtomicUsize,
    received: AtomicUsize,
}

impl Full {
    fn new() -> Self {
        let (writer, reader) = UnixStream::pair().unwrap();
        SockRef::from(&writer).set_send_buffer_size(1).unwrap();
        reader.set_nonblocking(true).unwrap();
        let writer = TcpStream::from(OwnedFd::from(writer));
        let full = Full { writer, reader, sent: AtomicUsize::new(0), received: AtomicUsize::new(0) };
        full.fill();
        full
    }

    fn write(&self) -> bool {
        is_done((&self.writer).write(&[7; 100]).map(|count| self.sent.fetch_add(count, Ordering::SeqCst)))
    }

    fn fill(&self) {
        self.writer.set_nonblocking(true).unwrap();
        while self.write() {}
        self.writer.set_nonblocking(false).unwrap();
    }

    fn drain(&self) {
        let mut buf = [0; 1000];
        while let Ok(count) = (&self.reader).read(&mut buf) {
            self.received.fetch_add(count, Ordering::SeqCst);
        }
    }
}

#[test]
fn room_for_a_write() {
    let row = Row::new(
        Full::new,
        |full, until| {
            full.writer.set_write_timeout(until.and_then(rest)).unwrap();
            full.write()
        },
        |full, ()| full.drain(),
        |full, _| {
            full.drain();
            let [sent, received] = [&full.sent, &full.received].map(|count| count.load(Ordering::SeqCst));
            assert_eq!(sent, received, "a write that was ended has written nothing");
            full.fill();
        },
    );
    play(Row {
        company: Some(|full: &Full, _| {
            while !full.write() {}
            true
        }),
        lasts: 40,
        rounds: 500,
        ..row.serving_all()
    });
}

/// Closed at once, so that the address is free again.
fn reset(stream: &TcpStream) {
    stream.set_linger(Some(Duration::ZERO)).unwrap();
}

/// A listener, and its clients.
struct Server {
    listener: TcpListener,
    address: SocketAddr,
    clients: Mutex<Vec<net::TcpStream>>,
}

impl Server {
    fn new() -> Self {
        let (listener, address) = listener();
        Server { listener, address, clients: Mutex::default() }
    }

    fn connect(&self) {
        match net::TcpStream::connect(self.address) {
            Ok(client) => self.clients.lock().unwrap().push(client),
            // Accepted, and reset, before it learned of that.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }

    fn accept(&self) -> bool {
        is_done(self.listener.accept().map(|(stream, _)| reset(&stream)))
    }
}

#[test]
fn a_connection_that_is_accepted() {
    let row = Row::new(
        Server::new,
        |server, _| server.accept(),
        |server, ()| server.connect(),
        |server, left| {
            assert!((0..left).all(|_| server.accept()));
            server.listener.set_nonblocking(true).unwrap();
            assert!(!server.accept(), "no client is there");
            server.listener.set_nonblocking(false).unwrap();
            server.clients.lock().unwrap().clear();
        },
    );
    play(Row { is_timed: false, lasts: 40, rounds: 800, ..row });
}

/// A listener that lets clients connect.
fn host() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn the_establishment_of_a_connection() {
    let row = Row::new(
        host,
        |(_, address), until| {
            let result = match until.and_then(rest) {
                None => TcpStream::connect(address),
                Some(time) => TcpStream::connect_timeout(address, time),
            };
            match result {
                Ok(stream) => {
                    reset(&stream);
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
                    false
                }
            }
        },
        |_, ()| (),
        |(listener, _), _| while listener.accept().is_ok() {},
    );
    play(Row { both_win: false, lasts: 40, rounds: 400, ..row.serving_all().alone() });
}
