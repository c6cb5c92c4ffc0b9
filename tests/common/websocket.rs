//! Clients and servers of websockets, as tasks.

use std::io::{self, ErrorKind};

use fibra::net::TcpStream;
use tungstenite::error::ProtocolError;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use super::client::{connect_task, payload, try_connect_task};
use super::example::example;
use super::line::Sessions;
use super::server::Server;
use super::{HANG, MOST, PATIENCE, STUCK, on, until};

pub(crate) type Socket = WebSocket<TcpStream>;

/// The example `websocket_echo`, running.
pub(crate) struct WebsocketEcho(pub(crate) Server);

impl WebsocketEcho {
    /// With so many workers, and with more patience than any client needs.
    pub(crate) fn start(workers: usize) -> WebsocketEcho {
        WebsocketEcho::with_grace(workers, PATIENCE)
    }

    /// Starts it as `start` does; connected clients have so many milliseconds at its end.
    pub(crate) fn with_grace(workers: usize, grace: &str) -> WebsocketEcho {
        let mut program = example("websocket_echo");
        program.env("FIBRA_WORKERS", workers.to_string()).env("PATIENCE_MS", PATIENCE).env("GRACE_MS", grace);
        WebsocketEcho(Server::launch(&mut program))
    }

    /// With patience of so many milliseconds for a slow client.
    pub(crate) fn with_patience(millis: u64) -> WebsocketEcho {
        WebsocketEcho(Server::with_patience("websocket_echo", millis))
    }

    pub(crate) fn connect(&self) -> Socket {
        upgrade(connect_task(self.0.address()))
    }

    /// A websocket that the server has taken. Where it has little patience, a busy machine may hold up an upgrade for longer;
    /// a client that is cut off for that comes again.
    pub(crate) fn connect_in_time(&self) -> Socket {
        let try_connect = || {
            let mut socket = try_upgrade(connect_task(self.0.address()))?;
            socket.send(Message::Binary(Bytes::new()))?;
            try_receive(&mut socket, b"")?;
            Ok(socket)
        };
        until(|| try_connect().map_err(|error: Error| format!("no websocket: {error}")))
    }

    /// Does `harm`. The server must serve afterwards, and have closed everything.
    pub(crate) fn recovers(&self, harm: impl FnOnce(&WebsocketEcho)) {
        self.0.recovers(|| self.serves(), || harm(self));
    }

    /// What it must still do after whatever was done to it. In a task or a thread.
    pub(crate) fn serves(&self) {
        exchange(self.connect(), payload(1000).into());
    }
}

impl Sessions for WebsocketEcho {
    // tungstenite takes requests of more than 64 small pieces for an attack.
    const WHOLE: usize = 100;
    type Client = Socket;

    fn start(workers: usize) -> WebsocketEcho {
        WebsocketEcho::start(workers)
    }

    fn server(&self) -> &Server {
        &self.0
    }

    fn serves(&self) {
        self.serves();
    }

    fn talk(&self, address: &str, bytes: usize) -> io::Result<()> {
        let socket = try_connect_task(address).map_err(Error::Io).and_then(try_upgrade);
        socket.and_then(|socket| try_exchange(socket, payload(bytes).into())).map_err(|error| match error {
            Error::Io(error) => error,
            Error::Protocol(
                ProtocolError::HandshakeIncomplete | ProtocolError::ResetWithoutClosingHandshake,
            ) => ErrorKind::UnexpectedEof.into(),
            error => io::Error::other(error),
        })
    }

    fn stick(&self, address: &str) -> Socket {
        let mut socket = upgrade(connect_task(address));
        write_until_stuck(&mut socket, &payload(1 << 20).into());
        socket
    }
}

/// Does `deed` as a task to a server: each of the two with one worker, then with two.
pub(crate) fn with_server(deed: impl Fn(&WebsocketEcho) + Sync) {
    for workers in [1, 2] {
        WebsocketEcho::start(workers).recovers(|echo| on(workers, || deed(echo)));
    }
}

/// Takes messages as long as they are sent here.
pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(MOST)).max_frame_size(Some(MOST)).write_buffer_size(0)
}

pub(crate) fn upgrade(stream: TcpStream) -> Socket {
    try_upgrade(stream).unwrap_or_else(|error| panic!("no websocket: {error}"))
}

/// The same, unless the connection ends before.
fn try_upgrade(stream: TcpStream) -> Result<Socket, Error> {
    match tungstenite::client::client_with_config("ws://localhost/", stream, Some(config())) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(error)) => Err(error),
        Err(HandshakeError::Interrupted(_)) => panic!("the time-out of the socket has passed"),
    }
}

/// A second handle of a connection, for the other direction: frames that come and frames that go have nothing in common.
pub(crate) fn second(socket: &Socket) -> Socket {
    let stream = socket.get_ref().try_clone().expect("a second handle");
    WebSocket::from_raw_socket(stream, Role::Client, Some(config()))
}

/// Sends a message, gets it back, and ends in order.
pub(crate) fn exchange(socket: Socket, bytes: Bytes) {
    try_exchange(socket, bytes).expect("all of it echoed, and an end in order");
}

/// The same, unless the connection ends before.
fn try_exchange(mut socket: Socket, bytes: Bytes) -> Result<(), Error> {
    socket.send(Message::Binary(bytes.clone()))?;
    try_receive(&mut socket, &bytes)?;
    try_end(socket)
}

/// Reads a message, which must be these bytes.
pub(crate) fn receives(socket: &mut Socket, bytes: &[u8]) {
    try_receive(socket, bytes).expect("echoed");
}

fn try_receive(socket: &mut Socket, bytes: &[u8]) -> Result<(), Error> {
    match socket.read()? {
        Message::Binary(back) => {
            assert!(back == *bytes, "{} bytes of {} came, or others", back.len(), bytes.len());
            Ok(())
        }
        other => panic!("{other:?} instead of {} bytes", bytes.len()),
    }
}

/// Closes, and sees the server do so too, for the same reason.
pub(crate) fn ends(socket: Socket) {
    try_end(socket).expect("an answer");
}

fn try_end(mut socket: Socket) -> Result<(), Error> {
    let frame = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
    socket.close(Some(frame.clone()))?;
    assert_eq!(socket.read()?, Message::Close(Some(frame)));
    match socket.read() {
        Err(Error::ConnectionClosed) => Ok(()),
        Err(error) => Err(error),
        Ok(message) => panic!("{message:?}, where the end was due"),
    }
}

/// Sends a message again and again until the server takes no more. Tells how many times, the one that is half sent among them.
pub(crate) fn write_until_stuck(socket: &mut Socket, bytes: &Bytes) -> usize {
    socket.get_ref().set_write_timeout(Some(STUCK)).expect("a time-out");
    let most = MOST / bytes.len();
    let stuck = (1..=most).find(|_| would_block(socket.send(Message::Binary(bytes.clone()))));
    socket.get_ref().set_write_timeout(Some(HANG)).expect("a time-out");
    stuck.unwrap_or_else(|| panic!("the server keeps {most} messages or more that are not read"))
}

/// Whether a time-out has ended a call.
pub(crate) fn would_block(done: Result<(), Error>) -> bool {
    match done {
        Ok(()) => false,
        Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => true,
        Err(error) => panic!("the server ends a connection that is merely slow: {error}"),
    }
}
