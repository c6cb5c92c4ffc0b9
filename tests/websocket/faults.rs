//! What clients do to a server of websockets by accident, by design, or by dying, done to `websocket_echo` as a process of its
//! own. Whatever it was: it serves again, and holds no descriptor more than before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::common::client::{ends, payload, reset, rest, sees_an_end, write_until_stuck};
use crate::common::fuzz::Random;
use crate::common::websocket::{WebsocketEcho, exchange};
use crate::common::{MOST, http, until};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message};

/// What a client asks first.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The first bytes of frames that are the last of their message.
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
/// To be taken from these: there is more to come.
const FINAL: u8 = 0x80;

/// How long the server waits for slow clients where there are some, in milliseconds.
const SHORT: u64 = 300;

/// How long it waits at its end where some do not go, in milliseconds: for so long the end of one that has gone may take.
const GRACE: &str = "2000";

/// A connection that frames can be sent on, right or wrong.
fn upgraded(echo: &WebsocketEcho) -> TcpStream {
    let mut stream = echo.0.connect();
    stream.write_all(REQUEST).expect("sent");
    let head = http::head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    stream
}

/// A frame of a client's, behind a mask that changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&header(first, payload.len() as u64), payload].concat()
}

/// The header of one, which may be followed by less.
fn header(first: u8, length: u64) -> Vec<u8> {
    let mut header = vec![first];
    match length {
        0..126 => header.push(0x80 | length as u8),
        126..65_536 => {
            header.push(0x80 | 126);
            header.extend((length as u16).to_be_bytes());
        }
        _ => {
            header.push(0x80 | 127);
            header.extend(length.to_be_bytes());
        }
    }
    header.extend([0; 4]);
    header
}

/// The last word of a server, and its reason.
fn close(code: u16, reason: &str) -> Vec<u8> {
    [&[CLOSE, 2 + reason.len() as u8], &code.to_be_bytes()[..], reason.as_bytes()].concat()
}

#[test]
fn frames_against_the_rules_end_the_connection_with_a_word_of_it() {
    let unmasked = [&[BINARY, 5][..], b"hello"].concat();
    let cases: [(&str, Vec<u8>, u16); 19] = [
        ("a kind of message that there is not", frame(0x83, b"hello"), 1002),
        ("a kind of control that there is not", frame(0x8b, b"hello"), 1002),
        ("a reserved bit", frame(BINARY | 0x40, b"hello"), 1002),
        ("the second of them", frame(BINARY | 0x20, b"hello"), 1002),
        ("the third of them", frame(BINARY | 0x10, b"hello"), 1002),
        ("a frame without a mask", unmasked, 1002),
        ("a long ping", frame(PING, &[0; 126]), 1002),
        ("a long close", frame(CLOSE, &[0x03, 0xe8].repeat(63)), 1002),
        ("a ping in fragments", frame(PING - FINAL, b"hello"), 1002),
        ("the middle of nothing", frame(0, b"hello"), 1002),
        ("the end of nothing", frame(FINAL, b"hello"), 1002),
        ("a message within another", [frame(TEXT - FINAL, b"a"), frame(BINARY, b"b")].concat(), 1002),
        ("a close of one byte", frame(CLOSE, b"x"), 1002),
        ("a text that is none", frame(TEXT, b"\xff\xfe"), 1007),
        ("a text that ends within a letter", frame(TEXT, "ß".as_bytes()[..1].into()), 1007),
        ("such a text in fragments", [frame(TEXT - FINAL, b"\xf0\x9f"), frame(FINAL, b"x")].concat(), 1007),
        ("a close for a reason that is no text", frame(CLOSE, b"\x03\xe8\xff"), 1007),
        ("one byte too many", header(BINARY, MOST as u64 + 1), 1009),
        ("a length without bounds", header(BINARY, u64::MAX), 1009),
    ];
    for workers in [1, 2] {
        WebsocketEcho::start(workers).recovers(|echo| {
            for (what, bytes, code) in &cases {
                assert_eq!(sees_an_end(upgraded(echo), bytes), close(*code, ""), "{what}");
                // What comes after it does not matter.
                let more = [bytes, &payload(100_000)[..]].concat();
                assert_eq!(sees_an_end(upgraded(echo), &more), close(*code, ""), "{what}, and more");
            }
        });
    }
}

#[test]
fn lengths_at_the_edges_of_numbers_end_the_connection_as_too_long() {
    WebsocketEcho::start(1).recovers(|echo| {
        for length in [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 13] {
            for first in [BINARY, TEXT, PING, CLOSE, TEXT - FINAL] {
                assert_eq!(sees_an_end(upgraded(echo), &header(first, length)), close(1009, ""), "{length}");
            }
        }
    });
}

#[test]
fn a_message_of_fragments_too_long_together_ends_the_connection() {
    WebsocketEcho::start(1).recovers(|echo| {
        let mut fragments = frame(BINARY - FINAL, &payload(MOST / 2));
        fragments.extend(frame(0, &payload(MOST / 2)));
        fragments.extend(frame(FINAL, b"x"));
        assert_eq!(sees_an_end(upgraded(echo), &fragments), close(1009, ""));
    });
}

#[test]
fn a_close_with_a_forbidden_code_is_answered_with_a_protocol_error() {
    WebsocketEcho::start(1).recovers(|echo| {
        for code in [0_u16, 999, 1004, 1005, 1006, 1015, 65_535] {
            let answer = sees_an_end(upgraded(echo), &frame(CLOSE, &code.to_be_bytes()));
            assert_eq!(answer, close(1002, "Protocol violation"), "{code}");
        }
    });
}

#[test]
fn a_request_for_no_websocket_is_refused() {
    let request = str::from_utf8(REQUEST).expect("text");
    let without = |what: &str| {
        assert!(request.contains(what));
        request.replacen(what, "", 1).into_bytes()
    };
    let with = |what: &str, other: &str| {
        assert!(request.contains(what));
        request.replacen(what, other, 1).into_bytes()
    };
    let cases = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        payload(1000),
        vec![0; 100_000],
        without("Upgrade: websocket\r\n"),
        without("Connection: Upgrade\r\n"),
        without("Sec-WebSocket-Version: 13\r\n"),
        without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
        with("GET", "POST"),
        with("HTTP/1.1", "HTTP/1.0"),
        with("HTTP/1.1", "HTTP/2.0"),
        with("websocket", "h2c"),
        with(": 13", ": 12"),
        with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZQ=="),
        with("dGhlIHNhbXBsZSBub25jZQ==", "====================ZQ=="),
        with("Host: x\r\n", &"x: y\r\n".repeat(200)),
        with("Host: x\r\n", &format!("x: {}\r\n", "y".repeat(100_000))),
        with("Host: x", "\0\u{1}\u{7f}: x"),
        with("\r\n\r\n", "\r\n\r\nhello"),
    ];
    for workers in [1, 2] {
        WebsocketEcho::start(workers).recovers(|echo| {
            for bytes in &cases {
                let answer = sees_an_end(echo.0.connect(), bytes);
                let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
                assert!(
                    answer.starts_with(b"HTTP/1.1 400 "),
                    "{begin}: {}",
                    String::from_utf8_lossy(&answer)
                );
            }
        });
    }
}

#[test]
fn a_request_or_a_frame_that_breaks_off_anywhere_ends_its_connection() {
    let frames = [frame(TEXT - FINAL, b"he"), frame(PING, b"p"), frame(FINAL, &[b'l'; 200])].concat();
    for workers in [1, 2] {
        WebsocketEcho::start(workers).recovers(|echo| {
            for length in 0..REQUEST.len() {
                let answer = sees_an_end(echo.0.connect(), &REQUEST[..length]);
                assert!(answer.starts_with(b"HTTP/1.1 400 "), "the answer to {length} bytes of a request");
            }
            for length in 0..frames.len() {
                let answer = sees_an_end(upgraded(echo), &frames[..length]);
                assert!(!answer.contains(&TEXT), "an echo of {length} bytes of a message");
            }
        });
    }
}

#[test]
fn garbled_requests_and_frames_end_their_connections() {
    let mut random = Random::new();
    let frames = [
        frame(BINARY, &payload(50)),
        frame(TEXT - FINAL, "größe".as_bytes()),
        frame(PING, b"ping"),
        frame(FINAL, "大きさ".as_bytes()),
        header(BINARY, 300),
        payload(300),
        frame(CLOSE, b"\x03\xe8bye"),
    ]
    .concat();
    WebsocketEcho::start(2).recovers(|echo| {
        for _ in 0..500 {
            let mut request = REQUEST.to_vec();
            random.garble(&mut request, b"\r\n :\0\xff/9");
            sees_an_end(echo.0.connect(), &request);
            let mut garbled = frames.clone();
            random.garble(&mut garbled, &[0, 1, 0x7e, 0x7f, 0x80, 0x82, 0x88, 0xff]);
            sees_an_end(upgraded(echo), &garbled);
        }
    });
}

#[test]
fn a_client_that_leaves_at_any_moment_harms_no_other() {
    let deeds: [fn(&WebsocketEcho) -> TcpStream; 6] = [
        |echo| echo.0.connect(),
        |echo| {
            let mut stream = echo.0.connect();
            stream.write_all(&REQUEST[..50]).expect("sent");
            stream
        },
        |echo| upgraded(echo),
        |echo| {
            let mut stream = upgraded(echo);
            stream.write_all(&header(BINARY, MOST as u64)).expect("sent");
            stream.write_all(&payload(100_000)).expect("sent");
            stream
        },
        |echo| {
            let mut stream = upgraded(echo);
            stream.write_all(&frame(BINARY, &payload(1 << 20))).expect("sent");
            stream
        },
        |echo| {
            let mut stream = upgraded(echo);
            stream.write_all(&frame(CLOSE, b"\x03\xe8")).expect("sent");
            stream
        },
    ];
    for workers in [1, 2] {
        WebsocketEcho::start(workers).recovers(|echo| {
            for _ in 0..10 {
                for deed in deeds {
                    drop(deed(echo));
                    reset(deed(echo));
                }
            }
            let mut stuck = upgraded(echo);
            write_until_stuck(&mut stuck, &frame(BINARY, &payload(1 << 20)).repeat(64));
        });
    }
}

/// Connections that say nothing, and such as say the half of a request.
fn slow(echo: &WebsocketEcho) -> Vec<TcpStream> {
    let begins = [&[][..], &REQUEST[..50]].into_iter().cycle().take(200);
    let streams = begins.map(|begin| {
        let mut stream = echo.0.connect();
        // Unless it was cut off already.
        _ = stream.write_all(begin);
        stream
    });
    streams.collect()
}

#[test]
fn others_are_served_while_some_are_silent_or_slow_in_the_upgrade() {
    for workers in [1, 2] {
        WebsocketEcho::start(workers).recovers(|echo| {
            let _slow = slow(echo);
            echo.serves();
        });
    }
}

#[test]
fn a_slow_upgrade_is_cut_off() {
    recovers_in_time(|echo| {
        slow(echo).into_iter().for_each(|stream| assert!(rest(stream).is_empty(), "an answer to nothing"));
        // Bytes that come in time one by one do not buy more time for the whole. So few are no attack in tungstenite's eyes.
        let (mut drip, mut sent) = (echo.0.connect(), 0);
        for byte in REQUEST.chunks(1) {
            if drip.write_all(byte).is_err() {
                break;
            }
            sent += 1;
            thread::sleep(Duration::from_millis(30));
        }
        assert!(sent < REQUEST.len(), "a request may take for ever");
    });
}

/// Does `harm` to a server of little patience. And then it serves again.
fn recovers_in_time(harm: impl FnOnce(&WebsocketEcho)) {
    let echo = WebsocketEcho::with_patience(SHORT);
    echo.0.recovers(|| drop(echo.connect_in_time()), || harm(&echo));
}

#[test]
fn a_client_that_does_not_read_the_close_is_cut_off() {
    recovers_in_time(|echo| {
        let socket = echo.connect_in_time();
        let mut stream = socket.get_ref();
        stream.write_all(&frame(BINARY | 0x40, b"hello")).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an end");
        assert_eq!(answer, close(1002, ""));
        // The server waits for this end now, and not for ever.
        until(|| match stream.write_all(b"x") {
            Ok(()) => Err("it still takes what comes".to_owned()),
            Err(_) => Ok(()),
        });
    });
}

#[test]
fn a_websocket_has_time_once_it_is_one() {
    let echo = WebsocketEcho::with_patience(SHORT);
    let socket = echo.connect_in_time();
    thread::sleep(2 * Duration::from_millis(SHORT));
    exchange(socket, payload(1000).into());
}

#[test]
fn websocket_echo_says_goodbye_and_ends() {
    let echo = WebsocketEcho::start(2);
    let mut idle = echo.connect();
    let mut busy = upgraded(&echo);
    busy.write_all(&header(BINARY, 1000)).expect("sent");
    echo.0.interrupt();
    let goodbye = CloseFrame { code: CloseCode::Away, reason: "".into() };
    assert_eq!(idle.read().expect("a last word"), Message::Close(Some(goodbye)));
    assert!(matches!(idle.read(), Err(Error::ConnectionClosed)));
    drop(idle);
    assert_eq!(sees_an_end(busy, &payload(1000)), close(1001, ""));
    assert_eq!(echo.0.ends(), "0 connections were cut off\n");
}

#[test]
fn websocket_echo_cuts_off_connections_that_do_not_end_in_time() {
    let echo = WebsocketEcho::with_grace(2, GRACE);
    let (mut silent, mut deaf) = (echo.0.connect(), upgraded(&echo));
    echo.serves();
    echo.0.interrupt();
    let mut answer = Vec::new();
    deaf.read_to_end(&mut answer).expect("an end");
    assert_eq!(answer, close(1001, ""));
    ends(&mut silent);
    assert_eq!(echo.0.ends(), "2 connections were cut off\n");
}
