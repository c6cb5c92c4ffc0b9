//! A proxy that does harm: it carries what clients and a server say to each other, but not as they would like it. It is
//! written with fibra itself, and each kind of harm is a type.

use std::io::{self, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fibra::CancelToken;
use fibra::net::{TcpListener, TcpStream};
use fibra::structured::Either;
use fibra::sync::Barrier;

/// The largest piece that is carried at once.
const PIECE: usize = 64 << 10;

/// A client that says nothing for so long is taken to wait for an answer.
const QUIET: Duration = Duration::from_millis(50);

/// A running proxy; ends, with what it carries, when dropped.
pub(crate) struct Proxy {
    address: String,
    stop: CancelToken,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy before a server that does this harm to each connection.
    pub(crate) fn before(server: &str, fault: impl Fault) -> Proxy {
        let (tell, told) = channel();
        let (server, stop) = (server.to_owned(), CancelToken::new());
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let runtime = fibra::Runtime::builder().workers(1).build().expect("a runtime");
            runtime.run(|| {
                let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
                tell.send(listener.local_addr().expect("its address").to_string()).expect("the client waits");
                serve(&listener, &server, &fault, &stopped);
            });
        });
        let address = told.recv().expect("the proxy's address");
        Proxy { address, stop, thread: Some(thread) }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the proxy panicked");
    }
}

fn serve(listener: &TcpListener, server: &str, fault: &impl Fault, stop: &CancelToken) {
    fibra::scope(|scope| {
        _ = stop.scope(|| {
            for client in listener.incoming() {
                let client = client.expect("a client");
                scope.spawn(move || stop.scope(|| connection(client, server, fault)));
            }
        });
    });
}

/// Carries one connection until both directions have ended, or one of them ends both.
fn connection(client: TcpStream, server: &str, fault: &impl Fault) {
    let server = TcpStream::connect(server).expect("the server listens");
    _ = [&client, &server].map(|stream| stream.set_nodelay(true).expect("no delay"));
    let ended = Barrier::new(2);
    let carry = |direction, from, to| {
        // That an end breaks off is an end.
        let end = fault.carry(&Way { direction, from, to }).unwrap_or(End::Cut);
        if let End::Orderly = end {
            ended.wait();
        }
        end
    };
    let (Either::Left(end) | Either::Right(end)) = fibra::race(
        || carry(Direction::Requests, &client, &server),
        || carry(Direction::Answers, &server, &client),
    );
    if let End::Reset = end {
        _ = [&client, &server]
            .map(|stream| stream.set_linger(Some(Duration::ZERO)).expect("a linger of zero"));
    }
}

/// Which way it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Requests,
    Answers,
}

/// How a direction ends.
pub(crate) enum End {
    /// Its target knows, and the other direction goes on.
    Orderly,
    /// Both connections are closed.
    Cut,
    /// Both connections are reset.
    Reset,
}

/// One direction of one connection.
pub(crate) struct Way<'a> {
    direction: Direction,
    from: &'a TcpStream,
    to: &'a TcpStream,
}

impl Way<'_> {
    /// Hands on what comes as `each` does it, in pieces of at most so many bytes, until its source ends.
    fn pieces(&self, most: usize, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let (mut from, mut piece) = (self.from, vec![0; most]);
        while let count @ 1.. = from.read(&mut piece)? {
            each(&piece[..count])?;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut to = self.to;
        to.write_all(bytes)
    }

    /// Tells its target that it has ended.
    fn end(&self) -> io::Result<End> {
        self.to.shutdown(Shutdown::Write)?;
        Ok(End::Orderly)
    }

    /// Carries all of it as a good proxy does.
    fn carry(&self) -> io::Result<End> {
        self.pieces(PIECE, |piece| self.write(piece))?;
        self.end()
    }

    /// Carries so many bytes and no more; `false` if there were not so many.
    fn carry_some(&self, bytes: usize) -> io::Result<bool> {
        let (mut from, mut to) = (self.from.take(bytes as u64), self.to);
        Ok(fibra::io::copy(&mut from, &mut to)? == bytes as u64)
    }
}

/// A harm that a proxy does.
pub(crate) trait Fault: Send + Sync + 'static {
    /// Whether connections end by a reset.
    const RESETS: bool = false;

    /// Carries one direction of one connection to its end.
    fn carry(&self, way: &Way<'_>) -> io::Result<End>;
}

/// Holds up each piece, in both directions.
#[derive(Clone, Copy)]
pub(crate) struct Delays(pub(crate) Duration);

impl Fault for Delays {
    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        way.pieces(PIECE, |piece| {
            fibra::sleep(self.0);
            way.write(piece)
        })?;
        way.end()
    }
}

/// Carries so many bytes in a direction, then closes both connections.
#[derive(Clone, Copy)]
pub(crate) struct Cuts(pub(crate) Direction, pub(crate) usize);

impl Fault for Cuts {
    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        break_off(way, self.0, self.1, End::Cut)
    }
}

/// Carries so many bytes in a direction, then resets both connections.
#[derive(Clone, Copy)]
pub(crate) struct Resets(pub(crate) Direction, pub(crate) usize);

impl Fault for Resets {
    const RESETS: bool = true;

    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        break_off(way, self.0, self.1, End::Reset)
    }
}

fn break_off(way: &Way<'_>, direction: Direction, after: usize, end: End) -> io::Result<End> {
    match way.direction == direction {
        true if way.carry_some(after)? => Ok(end),
        true => way.end(),
        false => way.carry(),
    }
}

/// Sends each byte by itself after so many, in both directions.
#[derive(Clone, Copy)]
pub(crate) struct Slices(pub(crate) usize);

impl Fault for Slices {
    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        way.carry_some(self.0)?;
        way.pieces(PIECE, |piece| {
            piece.chunks(1).try_for_each(|byte| {
                way.write(byte)?;
                // Time for the other side to see it alone.
                fibra::sleep(Duration::from_micros(50));
                Ok(())
            })
        })?;
        way.end()
    }
}

/// Keeps requests until there are so many bytes of them, and sends these in one piece. A client that waits for an answer
/// first gets less sent.
#[derive(Clone, Copy)]
pub(crate) struct Glues(pub(crate) usize);

impl Fault for Glues {
    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        if way.direction == Direction::Answers {
            return way.carry();
        }
        let (mut from, mut piece, mut kept) = (way.from, vec![0; PIECE], Vec::new());
        loop {
            let read = match kept.is_empty() {
                true => Ok(from.read(&mut piece)),
                false => fibra::timeout(QUIET, || from.read(&mut piece)),
            };
            match read {
                Ok(Ok(0)) => break,
                Ok(count) => kept.extend_from_slice(&piece[..count?]),
                Err(_) => way.write(&mem::take(&mut kept))?,
            }
            while kept.len() >= self.0 {
                way.write(&kept[..self.0])?;
                kept.drain(..self.0);
            }
        }
        way.write(&kept)?;
        way.end()
    }
}

/// Carries so many bytes each time, with a pause after them, in both directions.
#[derive(Clone, Copy)]
pub(crate) struct Throttles(pub(crate) usize, pub(crate) Duration);

impl Fault for Throttles {
    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        way.pieces(self.0, |piece| {
            way.write(piece)?;
            fibra::sleep(self.1);
            Ok(())
        })?;
        way.end()
    }
}

/// Carries the requests, and so many bytes of the answers; then reads no more of these, for ever.
#[derive(Clone, Copy)]
pub(crate) struct StopsReading(pub(crate) usize);

impl Fault for StopsReading {
    fn carry(&self, way: &Way<'_>) -> io::Result<End> {
        match way.direction {
            Direction::Requests => way.carry(),
            Direction::Answers if way.carry_some(self.0)? => loop {
                fibra::task::park();
            },
            Direction::Answers => way.end(),
        }
    }
}
