//! An echo server as an event loop over mio, with a state machine for each connection: the work that
//! `echo_server` saves.
//!
//! Run `cargo run --release --example echo_callbacks -- 127.0.0.1:7777` (the default address), then `nc
//! 127.0.0.1 7777` in another terminal: each line that you type comes back. A request costs one read and one
//! write.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::{env, time::Duration};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    Server { listener: TcpListener::from_std(listener), poll: Poll::new()?, connections: Vec::new() }.run()
}

struct Server {
    listener: TcpListener,
    poll: Poll,
    /// By descriptor, which is also the token.
    connections: Vec<Option<Connection>>,
}

impl Server {
    fn run(mut self) -> io::Result<()> {
        self.poll.registry().register(&mut self.listener, LISTENER, Interest::READABLE)?;
        let (mut events, mut buffer) = (Events::with_capacity(1024), vec![0; 64 * 1024]);
        let mut pause = None;
        loop {
            attempt(|| self.poll.poll(&mut events, pause))?;
            let mut knocked = pause.take().is_some();
            for event in &events {
                match event.token() {
                    LISTENER => knocked = true,
                    Token(fd) => self.step(fd, event, &mut buffer),
                }
            }
            if knocked && let Err(error) = self.accept_all() {
                // Most likely no descriptor is left. No event reports a free one, so try again soon.
                eprintln!("accept: {error}");
                pause = Some(Duration::from_millis(10));
            }
        }
    }

    fn accept_all(&mut self) -> io::Result<()> {
        while let Some((mut stream, _)) = attempt(|| self.listener.accept())? {
            stream.set_nodelay(true)?;
            let fd = stream.as_raw_fd() as usize;
            // For both directions, so that the descriptor is registered once.
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(fd), both)?;
            self.connections.resize_with(self.connections.len().max(fd + 1), || None);
            self.connections[fd] =
                Some(Connection { stream, pending: vec![], readable: false, hung_up: false });
        }
        Ok(())
    }

    fn step(&mut self, fd: usize, event: &Event, buffer: &mut [u8]) {
        let Some(connection) = &mut self.connections[fd] else { return };
        match connection.step(event, buffer) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {}
            Err(error) => eprintln!("connection: {error}"),
        }
        self.connections[fd] = None;
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes that the client has not taken yet. Nothing more is read until they are sent.
    pending: Vec<u8>,
    /// Set by an event, cleared when a read finds nothing.
    readable: bool,
    /// The client sends no more. No event follows, so read to the end even after a short read.
    hung_up: bool,
}

impl Connection {
    /// Reads and writes until a call would wait. Returns `false` at the end of the stream.
    fn step(&mut self, event: &Event, buffer: &mut [u8]) -> io::Result<bool> {
        self.hung_up |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || self.hung_up;
        let sent = send(&mut self.stream, &self.pending)?;
        self.pending.drain(..sent);
        while self.readable && self.pending.is_empty() {
            match attempt(|| self.stream.read(buffer))? {
                None => self.readable = false,
                Some(0) => return Ok(false),
                Some(n) => {
                    // A short read has emptied the socket. Later bytes raise a new event.
                    self.readable = n == buffer.len() || self.hung_up;
                    let sent = send(&mut self.stream, &buffer[..n])?;
                    self.pending.extend_from_slice(&buffer[sent..n]);
                }
            }
        }
        Ok(true)
    }
}

/// Writes until all bytes are sent or the socket is full. Returns how many were sent.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len()
        && let Some(n) = attempt(|| stream.write(&bytes[sent..]))?
    {
        sent += n;
    }
    Ok(sent)
}

/// Repeats a call that a signal interrupted. Returns `None` if the call would wait.
fn attempt<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            done => return done.map(Some),
        }
    }
}
