//! tungstenite over our sockets: between tasks of one runtime, and against the example `websocket_echo` as a process of its
//! own. Each with one worker and with two.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::common::client::{connect_task, payload};
use crate::common::websocket::{
    Socket, config, ends, exchange, receives, second, upgrade, with_server, would_block, write_until_stuck,
};
use crate::common::{HANG, MOST, STUCK, on};
use fibra::net::{TcpListener, TcpStream};
use fibra::sync::{ManualResetEvent, Semaphore};
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::{Bytes, Error, Message, WebSocket, accept_with_config};

#[test]
fn messages_of_every_length_come_back() {
    with_server(|echo| {
        for bytes in [0, 1, 125, 126, 127, 16_383, 16_384, 16_385, 65_535, 65_536, 1 << 20, MOST] {
            exchange(echo.connect(), payload(bytes).into());
        }
    });
}

#[test]
fn many_messages_of_one_connection_come_back_in_order() {
    with_server(|echo| {
        let mut socket = echo.connect();
        for number in 0..1000 {
            socket.send(Message::Binary(payload(number).into())).expect("sent");
        }
        (0..1000).for_each(|number| receives(&mut socket, &payload(number)));
        ends(socket);
    });
}

#[test]
fn many_clients_are_served_at_once() {
    with_server(|echo| {
        fibra::scope(|scope| {
            for number in 0..100 {
                scope.spawn(move || exchange(echo.connect(), payload(number * 1000).into()));
            }
        });
    });
}

#[test]
fn a_text_comes_back_as_a_text() {
    with_server(|echo| {
        let mut socket = echo.connect();
        for text in ["", "hello", "größe, 大きさ, 🦀", &"🦀".repeat(100_000)] {
            socket.send(Message::text(text)).expect("sent");
            assert_eq!(socket.read().expect("echoed"), Message::text(text));
        }
        ends(socket);
    });
}

/// Also where a letter is torn apart, and with a ping in between.
#[test]
fn fragments_come_back_as_one_message() {
    with_server(|echo| {
        let mut socket = echo.connect();
        let text = "größe, 大きさ, 🦀";
        let pieces = text.len();
        for (place, byte) in text.bytes().enumerate() {
            let kind = if place == 0 { Data::Text } else { Data::Continue };
            let frame = Frame::message(vec![byte], OpCode::Data(kind), place + 1 == pieces);
            socket.send(Message::Frame(frame)).expect("sent");
            let ping = Bytes::from(vec![byte]);
            socket.send(Message::Ping(ping.clone())).expect("sent");
            if place + 1 < pieces {
                assert_eq!(socket.read().expect("an answer"), Message::Pong(ping));
            }
        }
        assert_eq!(socket.read().expect("echoed"), Message::text(text));
        assert!(matches!(socket.read(), Ok(Message::Pong(_))));
        // An unrequested pong.
        socket.send(Message::Pong(Bytes::new())).expect("sent");
        ends(socket);
    });
}

#[test]
fn both_directions_of_a_connection_are_used_at_once() {
    const MESSAGES: usize = 64;
    with_server(|echo| {
        let (mut reader, bytes) = (echo.connect(), Bytes::from(payload(MOST / MESSAGES)));
        let mut writer = second(&reader);
        fibra::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..MESSAGES {
                    writer.send(Message::Binary(bytes.clone())).expect("sent");
                }
                writer.close(None).expect("told");
            });
            (0..MESSAGES).for_each(|_| receives(&mut reader, &bytes));
            assert_eq!(reader.read().expect("an end"), Message::Close(None));
        });
    });
}

#[test]
fn a_client_that_sends_without_reading_is_held_back_and_loses_nothing() {
    with_server(|echo| {
        let (mut socket, bytes) = (echo.connect(), Bytes::from(payload(1 << 20)));
        let sent = write_until_stuck(&mut socket, &bytes);
        // What is half sent goes on while the echo is read.
        let timeout =
            |socket: &Socket, time| socket.get_ref().set_write_timeout(Some(time)).expect("a time-out");
        timeout(&socket, Duration::from_millis(1));
        for _ in 1..sent {
            would_block(socket.flush());
            receives(&mut socket, &bytes);
        }
        timeout(&socket, HANG);
        socket.flush().expect("sent");
        receives(&mut socket, &bytes);
        exchange(socket, bytes);
    });
}

/// A listener of tasks in this runtime.
struct Listener(TcpListener);

impl Listener {
    fn new() -> Listener {
        Listener(TcpListener::bind("127.0.0.1:0").expect("a listener"))
    }

    /// A connection of which neither side has said anything.
    fn pair(&self) -> (TcpStream, TcpStream) {
        let address = self.0.local_addr().expect("an address").to_string();
        let client = connect_task(&address);
        let (server, _) = self.0.accept().expect("a client");
        (client, server)
    }

    /// A websocket, seen from the client and from the server.
    fn sockets(&self) -> (Socket, Socket) {
        let (client, server) = self.pair();
        fibra::scope(|scope| {
            let server = scope.spawn(|| accept(server).expect("a websocket"));
            (upgrade(client), server.join().expect("a websocket"))
        })
    }
}

fn accept<S: Read + Write>(stream: S) -> Result<WebSocket<S>, String> {
    accept_with_config(stream, Some(config())).map_err(|error| error.to_string())
}

/// A stream that tells of each read when it begins.
struct Watched(TcpStream, Arc<Semaphore>);

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.add_permits(1);
        self.0.read(buffer)
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn two_tasks_of_one_runtime_talk_in_messages_beyond_all_buffers() {
    for workers in [1, 2] {
        on(workers, || {
            let (bytes, (client, mut server)) = (Bytes::from(payload(MOST)), Listener::new().sockets());
            let echo = Message::Binary(bytes.clone());
            fibra::scope(|scope| {
                scope.spawn(move || {
                    receives(&mut server, &echo.clone().into_data());
                    server.send(echo).expect("sent");
                    while server.read().is_ok() {}
                });
                exchange(client, bytes);
            });
        });
    }
}

/// A time-out of the socket's is an error that `read` can be called again after, wherever in a frame it was. Not so the end
/// that a deadline makes: tungstenite is not prepared to be unwound while it reads.
#[test]
fn reads_that_end_at_timeouts_of_the_socket_lose_no_byte() {
    for workers in [1, 2] {
        on(workers, || {
            let (mut client, server) = Listener::new().sockets();
            let (bytes, is_late) = (payload(100_000), ManualResetEvent::new(false));
            fibra::scope(|scope| {
                scope.spawn(|| {
                    let header = [&[0x82, 127][..], &(bytes.len() as u64).to_be_bytes()].concat();
                    let (most, last) = bytes.split_at(bytes.len() - 1);
                    for torn in header.chunks(1).chain(most.chunks(1009)) {
                        server.get_ref().write_all(torn).expect("sent");
                        fibra::sleep(Duration::from_millis(2));
                    }
                    // Should the client have been held up all the time.
                    is_late.wait();
                    server.get_ref().write_all(last).expect("sent");
                });
                client.get_ref().set_read_timeout(Some(Duration::from_millis(1))).expect("a time-out");
                let message = loop {
                    match client.read() {
                        Ok(message) => break message,
                        Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => is_late.set(),
                        Err(error) => panic!("{error}"),
                    }
                };
                assert!(message.into_data() == bytes, "other bytes came");
            });
        });
    }
}

#[test]
fn an_upgrade_that_is_cancelled_lets_go_of_its_connection() {
    for workers in [1, 2] {
        on(workers, || {
            let listener = Arc::new(Listener::new());
            let (mut client, server) = listener.pair();
            client.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
            let reads = Arc::new(Semaphore::new(0));
            let watched = Watched(server, Arc::clone(&reads));
            let serving = fibra::spawn(move || accept(watched).err());
            // The second read begins, for half a request is none.
            reads.acquire_many(2).unwrap().forget();
            serving.cancel();
            assert!(serving.join().is_err_and(|error| error.is_cancelled()));
            gone(&mut client);

            let (client, mut server) = listener.pair();
            let asking = fibra::spawn(move || drop(upgrade(client)));
            // The client has asked, and waits for the answer.
            server.peek(&mut [0]).expect("a request");
            asking.cancel();
            assert!(asking.join().is_err_and(|error| error.is_cancelled()));
            gone(&mut server);
            listener.sockets();
        });
    }
}

/// Sees the end of the connection, orderly or not.
fn gone(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(HANG)).expect("a time-out");
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn an_upgrade_ends_at_a_deadline_around_it() {
    for workers in [1, 2] {
        on(workers, || {
            let listener = Listener::new();
            let (mut client, server) = listener.pair();
            assert!(fibra::timeout(STUCK, || accept(server).err()).is_err());
            gone(&mut client);
            listener.sockets();
        });
    }
}
