//! An echo server as an event loop over mio with a state machine for each connection: what `echo_server` saves you.
//!
//! Run `cargo run --release --example echo_callbacks -- 127.0.0.1:7777` (that address is the default), then `nc
//! 127.0.0.1 7777` in another terminal: each line that you type comes back. A request costs one read and one write.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::{env, time::Duration};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let listener = TcpListener::bind(address.parse().map_err(io::Error::other)?)?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    Server { listener, poll: Poll::new()?, connections: Vec::new() }.run()
}

struct Server {
    listener: TcpListener,
    poll: Poll,
    /// By descriptor, which is the token as well.
    connections: Vec<Option<Connection>>,
}

impl Server {
    fn run(mut self) -> io::Result<()> {
        self.poll.registry().register(&mut self.listener, LISTENER, Interest::READABLE)?;
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 64 * 1024];
        let mut pause = None;
        loop {
            match self.poll.poll(&mut events, pause) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            let mut knocked = pause.take().is_some();
            for event in &events {
                match event.token() {
                    LISTENER => knocked = true,
                    Token(fd) => self.step(fd, event, &mut buffer),
                }
            }
            if knocked && let Err(error) = self.accept_all() {
                // Out of descriptors, most likely. No edge will tell when one is free: look again soon.
                eprintln!("accept: {error}");
                pause = Some(Duration::from_millis(10));
            }
        }
    }

    fn accept_all(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn admit(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let fd = stream.as_raw_fd() as usize;
        // For both directions at once: the descriptor never has to be registered anew.
        self.poll.registry().register(&mut stream, Token(fd), Interest::READABLE | Interest::WRITABLE)?;
        if fd >= self.connections.len() {
            self.connections.resize_with(fd + 1, || None);
        }
        self.connections[fd] =
            Some(Connection { stream, pending: Vec::new(), sent: 0, readable: false, hung_up: false });
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
    /// What the client did not take at once. Nothing more is read until `pending[sent..]` is gone.
    pending: Vec<u8>,
    sent: usize,
    /// An edge has come that no read has used up.
    readable: bool,
    /// The client will send no more: no edge will follow, so read to the end whatever a short read suggests.
    hung_up: bool,
}

impl Connection {
    /// Goes as far as it can without waiting; `false` at the end of the stream.
    fn step(&mut self, event: &Event, buffer: &mut [u8]) -> io::Result<bool> {
        self.hung_up |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || self.hung_up;
        self.sent += send(&mut self.stream, &self.pending[self.sent..])?;
        if self.sent == self.pending.len() {
            (self.pending, self.sent) = (Vec::new(), 0);
        }
        while self.readable && self.pending.is_empty() {
            match self.stream.read(buffer) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    // A short read has emptied the socket; what comes later makes a new edge.
                    self.readable = n == buffer.len() || self.hung_up;
                    let sent = send(&mut self.stream, &buffer[..n])?;
                    self.pending.extend_from_slice(&buffer[sent..n]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Writes until everything is out or the socket is full; answers how much went.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
