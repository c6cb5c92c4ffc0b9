//! rustls over our sockets: between tasks of one runtime, and against the example `tls_echo` as a process of its own. Each with
//! one worker and with two.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::common::client::payload;
use crate::common::tls::{
    Client, PIECE, Sides, begin, end, exchange, records, with_server, write_until_stuck,
};
use crate::common::{HANG, MOST, STUCK, on};
use fibra::net::TcpStream;
use fibra::sync::{ManualResetEvent, Mutex};
use rustls::ClientConnection;

#[test]
fn payloads_of_every_length_come_back() {
    with_server(|echo| {
        for bytes in [0, 1, 2, 16_383, 16_384, 16_385, 65_536, 1 << 20, MOST] {
            exchange(echo.connect(), &payload(bytes));
        }
    });
}

#[test]
fn many_clients_are_served_at_once() {
    with_server(|echo| {
        fibra::scope(|scope| {
            for number in 0..100 {
                scope.spawn(move || exchange(echo.connect(), &payload(number * 1000)));
            }
        });
    });
}

/// One session in two directions at once. It is locked while it computes, and never while a socket is waited for.
struct Duplex {
    session: Mutex<ClientConnection>,
    stream: TcpStream,
}

impl Duplex {
    fn new(mut client: Client) -> Duplex {
        client.flush().expect("a handshake");
        let (session, stream) = client.into_parts();
        Duplex { session: Mutex::new(session), stream }
    }

    /// For one task, which is the only one that writes to the socket.
    fn send(&self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            self.write(|session| session.writer().write_all(piece));
        }
        self.write(|session| {
            session.send_close_notify();
            Ok(())
        });
    }

    fn write(&self, what: impl FnOnce(&mut ClientConnection) -> io::Result<()>) {
        let records = {
            let mut session = self.session.lock();
            what(&mut session).expect("taken");
            records(&mut session)
        };
        (&self.stream).write_all(&records).expect("sent");
    }

    /// For one task, which is the only one that reads from the socket. Zero bytes are the end.
    fn receive(&self, buffer: &mut [u8]) -> usize {
        let mut records = [0; 4096];
        loop {
            match self.session.lock().reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done.expect("an end that is told"),
            }
            let count = (&self.stream).read(&mut records).expect("echoed");
            let (mut session, mut rest) = (self.session.lock(), &records[..count]);
            // Once more if there is nothing left, for that is how the session learns of an end.
            loop {
                session.read_tls(&mut rest).expect("taken");
                session.process_new_packets().expect("records that are in order");
                if rest.is_empty() {
                    break;
                }
            }
        }
    }
}

#[test]
fn both_directions_of_a_session_are_used_at_once() {
    with_server(|echo| {
        let (duplex, sent) = (Duplex::new(echo.connect()), payload(MOST));
        fibra::scope(|scope| {
            scope.spawn(|| duplex.send(&sent));
            let (mut buffer, mut rest) = (vec![0; 64 * 1024], &*sent);
            while let count @ 1.. = duplex.receive(&mut buffer) {
                let (expected, after) = rest.split_at(count);
                assert!(buffer[..count] == *expected, "other bytes came back");
                rest = after;
            }
            assert!(rest.is_empty(), "{} bytes did not come back", rest.len());
        });
    });
}

#[test]
fn a_client_that_sends_without_reading_is_held_back_and_loses_nothing() {
    with_server(|echo| {
        let (mut client, bytes) = (echo.connect(), payload(MOST));
        let sent = write_until_stuck(&mut client, &bytes);
        let mut back = vec![0; sent];
        // What the session has not sent yet goes out while it reads, which tries to write first.
        client.sock.set_write_timeout(Some(Duration::from_millis(1))).expect("a time-out");
        client.read_exact(&mut back).expect("echoed");
        assert!(back == bytes[..sent], "other bytes came back");
        client.sock.set_write_timeout(Some(HANG)).expect("a time-out");
        exchange(client, &bytes[..PIECE * 2]);
    });
}

#[test]
fn two_tasks_of_one_runtime_talk_in_pieces_beyond_all_buffers() {
    for workers in [1, 2] {
        on(workers, || {
            let (sides, bytes) = (Sides::new("localhost"), payload(MOST));
            fibra::scope(|scope| {
                scope.spawn(|| {
                    let (mut served, mut request) = (sides.accept(), Vec::new());
                    served.read_to_end(&mut request).expect("all of it");
                    assert!(request == bytes, "{} bytes came, or others", request.len());
                    served.write_all(&bytes).expect("sent");
                    served.conn.send_close_notify();
                    served.flush().expect("told");
                });
                let (mut client, mut answer) = (sides.connect(), Vec::new());
                client.write_all(&bytes).expect("sent");
                end(&mut client).expect("told");
                client.read_to_end(&mut answer).expect("all of it");
                assert!(answer == bytes, "{} bytes came back, or others", answer.len());
            });
        });
    }
}

/// A read that its deadline ends has taken nothing, wherever in a record it was.
#[test]
fn reads_that_end_at_deadlines_lose_no_byte() {
    for workers in [1, 2] {
        on(workers, || {
            let (sides, bytes) = (Sides::new("localhost"), payload(100_000));
            let is_late = ManualResetEvent::new(false);
            fibra::scope(|scope| {
                scope.spawn(|| {
                    let mut served = sides.accept();
                    served.flush().expect("a handshake");
                    let mut wire = Vec::new();
                    for piece in bytes.chunks(PIECE) {
                        served.conn.writer().write_all(piece).expect("taken");
                        wire.extend(records(&mut served.conn));
                    }
                    let (wire, last) = wire.split_at(wire.len() - 1);
                    for torn in wire.chunks(1009) {
                        served.sock.write_all(torn).expect("sent");
                        fibra::sleep(Duration::from_millis(2));
                    }
                    // Should the client have been held up all the time.
                    is_late.wait();
                    served.sock.write_all(last).expect("sent");
                });
                let (mut client, mut back) = (sides.connect(), vec![0; bytes.len()]);
                let mut filled = 0;
                while filled < back.len() {
                    match fibra::timeout(Duration::from_millis(1), || client.read(&mut back[filled..])) {
                        Ok(count) => filled += count.expect("more of it"),
                        Err(_) => is_late.set(),
                    }
                }
                assert!(back == bytes, "other bytes came");
            });
        });
    }
}

/// What must be possible still.
fn serve(sides: &Sides) {
    fibra::scope(|scope| {
        scope.spawn(|| {
            let mut served = sides.accept();
            let mut text = Vec::new();
            served.read_to_end(&mut text).expect("a request");
            served.write_all(&text).expect("sent");
            served.conn.send_close_notify();
            served.flush().expect("told");
        });
        let mut client = sides.connect();
        client.write_all(b"hello").expect("sent");
        end(&mut client).expect("told");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an answer");
        assert_eq!(answer, b"hello");
    });
}

#[test]
fn a_handshake_that_is_cancelled_lets_go_of_its_connection() {
    for workers in [1, 2] {
        on(workers, || {
            let sides = Arc::new(Sides::new("localhost"));
            let serving = {
                let sides = Arc::clone(&sides);
                fibra::spawn(move || {
                    let mut served = sides.accept();
                    served.conn.complete_io(&mut served.sock)
                })
            };
            let mut client = sides.connect();
            begin(&mut client);
            serving.cancel();
            assert!(serving.join().is_err_and(|error| error.is_cancelled()));
            let end = client.conn.complete_io(&mut client.sock).and_then(|_| client.read(&mut [0]));
            assert!(end.is_err(), "the server is there still");

            let asking = {
                let sides = Arc::clone(&sides);
                fibra::spawn(move || sides.connect().flush())
            };
            let mut served = sides.accept();
            // The client has said hello, and waits for the answer.
            served.sock.peek(&mut [0]).expect("a hello");
            asking.cancel();
            assert!(asking.join().is_err_and(|error| error.is_cancelled()));
            let end = served.conn.complete_io(&mut served.sock);
            assert!(end.is_err(), "the client is there still");
            serve(&sides);
        });
    }
}

#[test]
fn a_handshake_ends_at_a_deadline_around_it_and_at_a_timeout_of_its_socket() {
    for workers in [1, 2] {
        on(workers, || {
            let sides = Sides::new("localhost");
            let (mut client, mut served) = (sides.connect(), sides.accept());
            assert!(fibra::timeout(STUCK, || served.conn.complete_io(&mut served.sock)).is_err());
            served.sock.set_read_timeout(Some(STUCK)).expect("a time-out");
            let error = served.conn.complete_io(&mut served.sock).expect_err("no hello was sent");
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            // Neither has done any harm.
            served.sock.set_read_timeout(Some(HANG)).expect("a time-out");
            fibra::scope(|scope| {
                scope.spawn(|| served.write_all(b"hello").expect("sent"));
                client.read_exact(&mut [0; 5]).expect("a session");
            });
        });
    }
}
