//! What clients do to a server of TLS by accident, by design, or by dying, done to `tls_echo` as a process of its own.
//! Whatever it was: it serves again, and holds no descriptor more than before.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::common::client::{ends, payload, rest, sees_an_end};
use crate::common::fuzz::Random;
use crate::common::tls::{
    Client, TlsEcho, begin, certify, exchange, records, with_server, write_until_stuck,
};
use crate::common::{MOST, until};
use fibra::net::Shutdown;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

/// The number with which a record of TLS begins that holds an alert.
const ALERT: u8 = 21;

/// How long the server waits for slow clients where there are some, in milliseconds.
const SHORT: u64 = 300;

/// How long it waits at its end where some do not go, in milliseconds: for so long the end of one that has gone may take.
const GRACE: &str = "2000";

#[test]
fn a_client_that_leaves_at_any_moment_harms_no_other() {
    let deeds: [fn(&TlsEcho) -> Client; 6] = [
        |echo| echo.connect(),
        |echo| {
            let mut client = echo.connect();
            client.sock.write_all(&hello()[..100]).expect("sent");
            client
        },
        |echo| {
            let mut client = echo.connect();
            begin(&mut client);
            client
        },
        |echo| {
            let mut client = echo.connect();
            client.flush().expect("a handshake");
            client
        },
        |echo| {
            let mut client = echo.connect();
            let records = sealed(&mut client, &payload(10_000));
            client.sock.write_all(&records[..5000]).expect("sent");
            client
        },
        |echo| {
            let mut client = echo.connect();
            client.write_all(&payload(100_000)).expect("sent");
            client
        },
    ];
    with_server(|echo| {
        for _ in 0..10 {
            for deed in deeds {
                drop(deed(echo));
                deed(echo).sock.set_linger(Some(Duration::ZERO)).expect("a linger of zero");
            }
        }
        write_until_stuck(&mut echo.connect(), &payload(MOST));
    });
}

/// What goes over the wire for these bytes, once there is a session.
fn sealed(client: &mut Client, bytes: &[u8]) -> Vec<u8> {
    client.flush().expect("a handshake");
    client.conn.writer().write_all(bytes).expect("taken");
    records(&mut client.conn)
}

/// What a client says first.
fn hello() -> Vec<u8> {
    let (certificate, _) = certify("localhost");
    let name = ServerName::try_from("localhost").expect("a name");
    records(&mut ClientConnection::new(certificate.trusted(), name).expect("a session"))
}

#[test]
fn bytes_that_are_no_handshake_are_refused_at_once() {
    // No deadline that mends it is waited for.
    let echo = TlsEcho::with_patience(3_600_000);
    let hello = hello();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = hello.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let cases: [(&str, Vec<u8>); 11] = [
        ("a request of HTTP", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        ("bytes without a pattern", payload(1000)),
        ("zeros", vec![0; 1000]),
        ("a hello of SSL 2", b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10".repeat(10)),
        ("an unknown type of record", with(0, &[99])),
        ("a record that is too long", with(3, &[0xff, 0xff])),
        ("a message that is too long", with(6, &[0xff, 0xff, 0xff])),
        ("a message out of turn", with(5, &[20])),
        ("data before the handshake", with(0, &[23])),
        ("a session id that is too long", with(43, &[33])),
        (
            "an old version of TLS alone",
            b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x01"
                .iter()
                .copied()
                .chain([7; 32])
                .chain(*b"\x00\x00\x02\x00\x2f\x01\x00")
                .collect(),
        ),
    ];
    echo.recovers(|echo| {
        for (what, bytes) in &cases {
            let mut stream = echo.server.connect();
            stream.write_all(bytes).expect("sent");
            let answer = rest(stream);
            // rustls has no word for this one.
            let alert = (*what != "a message that is too long").then_some(ALERT);
            assert_eq!(answer.first().copied(), alert, "the answer to {what}");
        }
    });
}

#[test]
fn a_handshake_that_breaks_off_anywhere_ends_its_connection() {
    let hello = hello();
    for workers in [1, 2] {
        TlsEcho::start(workers).recovers(|echo| {
            for length in 0..hello.len() {
                let answer = sees_an_end(echo.server.connect(), &hello[..length]);
                assert!(answer.is_empty(), "an answer to {length} bytes of a hello");
            }
        });
    }
}

#[test]
fn a_garbled_handshake_ends_its_connection() {
    let (hello, mut random) = (hello(), Random::new());
    TlsEcho::start(2).recovers(|echo| {
        for _ in 0..500 {
            let mut garbled = hello.clone();
            random.garble(&mut garbled, &[0, 1, 3, 0x16, 0x17, 0x7f, 0x80, 0xff]);
            sees_an_end(echo.server.connect(), &garbled);
        }
    });
}

#[test]
fn a_record_that_was_tampered_with_ends_its_session() {
    let mut random = Random::new();
    TlsEcho::start(2).recovers(|echo| {
        for round in 0..100 {
            let mut client = echo.connect();
            let mut record = sealed(&mut client, &payload(1 + random.below(500)));
            let place = random.below(record.len());
            record[place] ^= 1 << random.below(8);
            client.sock.write_all(&record).expect("sent");
            client.sock.shutdown(Shutdown::Write).expect("half-closed");
            let end = client.read_to_end(&mut Vec::new());
            assert!(end.is_err(), "round {round}: an orderly end, byte {place} of {}", record.len());
        }
    });
}

/// Connections that say nothing, and such as say the half of what is due first.
fn slow(echo: &TlsEcho) -> Vec<TcpStream> {
    let hello = hello();
    let begins = [&[][..], &hello[..100]].into_iter().cycle().take(200);
    let streams = begins.map(|begin| {
        let mut stream = echo.server.connect();
        // Unless it was cut off already.
        _ = stream.write_all(begin);
        stream
    });
    streams.collect()
}

#[test]
fn others_are_served_while_some_are_silent_or_slow_in_the_handshake() {
    for workers in [1, 2] {
        TlsEcho::start(workers).recovers(|echo| {
            let _slow = slow(echo);
            echo.serves();
        });
    }
}

#[test]
fn a_slow_handshake_is_cut_off() {
    let echo = TlsEcho::with_patience(SHORT);
    echo.server.recovers(
        || drop(echo.connect_in_time()),
        || {
            slow(&echo)
                .into_iter()
                .for_each(|stream| assert!(rest(stream).is_empty(), "an answer to nothing"));
            // Bytes that come in time one by one do not buy more time for the whole.
            let (hello, mut drip, mut sent) = (hello(), echo.server.connect(), 0);
            for byte in hello.chunks(1) {
                if drip.write_all(byte).is_err() {
                    break;
                }
                sent += 1;
                thread::sleep(Duration::from_millis(30));
            }
            assert!(sent < hello.len(), "a handshake may take for ever");
        },
    );
}

#[test]
fn a_session_has_time_once_the_handshake_is_done() {
    let echo = TlsEcho::with_patience(SHORT);
    let client = echo.connect_in_time();
    thread::sleep(2 * Duration::from_millis(SHORT));
    exchange(client, &payload(1000));
}

#[test]
fn tls_echo_ends_when_all_have_gone() {
    let echo = TlsEcho::start(2);
    let mut late = echo.connect();
    late.flush().expect("a handshake");
    echo.server.interrupt();
    until(|| match echo.server.try_connect() {
        Some(_) => Err("it still takes connections".to_owned()),
        None => Ok(()),
    });
    exchange(late, &payload(10_000));
    assert_eq!(echo.server.ends(), "0 connections were cut off\n");
}

#[test]
fn tls_echo_cuts_off_connections_that_do_not_end_in_time() {
    let echo = TlsEcho::with_grace(2, GRACE);
    let (mut late, mut silent) = (echo.connect(), echo.server.connect());
    late.flush().expect("a handshake");
    echo.serves();
    echo.server.interrupt();
    let error = late.read(&mut [0]).expect_err("an end that the server has not told");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    ends(&mut silent);
    assert_eq!(echo.server.ends(), "2 connections were cut off\n");
}
