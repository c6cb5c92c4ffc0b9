//! Clients and servers of websockets, as tasks.

use fibra::net::TcpStream;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Bytes, Error, Message, WebSocket};

use super::client::{connect_task, payload};
use super::example::example;
use super::server::Server;
use super::{MOST, on};

pub(crate) type Socket = WebSocket<TcpStream>;

/// The example `websocket_echo`, running.
pub(crate) struct WebsocketEcho(pub(crate) Server);

impl WebsocketEcho {
    /// With so many workers.
    pub(crate) fn start(workers: usize) -> WebsocketEcho {
        WebsocketEcho(Server::launch(example("websocket_echo").env("FIBRA_WORKERS", workers.to_string())))
    }

    /// With patience of so many milliseconds for a slow client.
    pub(crate) fn with_patience(millis: u64) -> WebsocketEcho {
        WebsocketEcho(Server::with_patience("websocket_echo", millis))
    }

    pub(crate) fn connect(&self) -> Socket {
        upgrade(connect_task(self.0.address()))
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
    let (socket, _) = tungstenite::client::client_with_config("ws://localhost/", stream, Some(config()))
        .unwrap_or_else(|error| panic!("no websocket: {error}"));
    socket
}

/// A second handle of a connection, for the other direction: frames that come and frames that go have nothing in common.
pub(crate) fn second(socket: &Socket) -> Socket {
    let stream = socket.get_ref().try_clone().expect("a second handle");
    WebSocket::from_raw_socket(stream, Role::Client, Some(config()))
}

/// Sends a message, gets it back, and ends in order.
pub(crate) fn exchange(mut socket: Socket, bytes: Bytes) {
    socket.send(Message::Binary(bytes.clone())).expect("sent");
    receives(&mut socket, &bytes);
    ends(socket);
}

/// Reads a message, which must be these bytes.
pub(crate) fn receives(socket: &mut Socket, bytes: &[u8]) {
    match socket.read().expect("echoed") {
        Message::Binary(back) => {
            assert!(back == *bytes, "{} bytes of {} came, or others", back.len(), bytes.len())
        }
        other => panic!("{other:?} instead of {} bytes", bytes.len()),
    }
}

/// Closes, and sees the server do so too, for the same reason.
pub(crate) fn ends(mut socket: Socket) {
    let frame = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
    socket.close(Some(frame.clone())).expect("told");
    assert_eq!(socket.read().expect("an answer"), Message::Close(Some(frame)));
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)), "the connection is open still");
}
