//! Input that is malformed or odd: an error, an answer or an end, never a panic or a hang; and then it serves again.

#[path = "../../examples/resp_server/parse.rs"]
mod parse;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::{self, JoinHandle};

use crate::common::client::rest;
use crate::common::corpus::{File, Mutator, files};
use crate::common::server::Server;
use crate::common::{http, resp};
use parse::{ARGUMENTS, BULK, Input, LINE, Malformed};

/// How long the servers wait for the rest of a request, in milliseconds: where that is looked at, and where it is not.
const SHORT: u64 = 2000;
const LONG: u64 = 30_000;
/// How many random changes are made, in the process and over connections.
const MUTANTS: usize = 40_000;
const SENT_MUTANTS: usize = 2_000;

/// What a client of websockets begins with.
#[cfg(feature = "websocket-examples")]
const UPGRADE: &[u8] = include_bytes!("../corpus/upgrade/odd_as_it_should_be");

/// What the parser makes of some input.
#[derive(PartialEq, Eq, Debug)]
struct Parsed {
    requests: Vec<Vec<Vec<u8>>>,
    end: End,
}

#[derive(PartialEq, Eq, Debug)]
enum End {
    Complete,
    Begun,
    Refused(Malformed),
}

impl End {
    /// How the names of such files begin.
    fn name(&self) -> &str {
        match self {
            End::Complete => "odd_",
            End::Begun => "unfinished_",
            End::Refused(_) => "bad_",
        }
    }
}

/// Parses what comes in pieces, each as long as it is told.
fn parsed(mut bytes: &[u8], mut piece: impl FnMut() -> usize) -> Parsed {
    let mut input = Input::new();
    let mut requests = Vec::new();
    let end = loop {
        match input.next() {
            Err(malformed) => break End::Refused(malformed),
            Ok(Some(request)) => {
                assert!((1..=ARGUMENTS).contains(&request.len()), "{} arguments", request.len());
                let arguments = (0..request.len()).map(|number| request.argument(number).to_vec());
                requests.push(arguments.collect::<Vec<_>>());
            }
            Ok(None) => {
                let room = input.room();
                let count = piece().max(1).min(room.len()).min(bytes.len());
                room[..count].copy_from_slice(&bytes[..count]);
                input.add(count);
                bytes = &bytes[count..];
                match (count, input.is_begun()) {
                    (0, true) => break End::Begun,
                    (0, false) => break End::Complete,
                    _ => {}
                }
            }
        }
    };
    assert!(requests.iter().flatten().all(|argument| argument.len() <= BULK.max(LINE)));
    Parsed { requests, end }
}

fn parsed_at_once(bytes: &[u8]) -> Parsed {
    parsed(bytes, || usize::MAX)
}

#[test]
fn requests_of_resp_are_the_same_however_they_are_split() {
    for (name, bytes) in files("resp", "") {
        let whole = parsed_at_once(&bytes);
        assert!(name.starts_with(whole.end.name()), "{name}: {:?}", whole.end);
        assert_eq!(parsed(&bytes, || 1), whole, "{name}, byte by byte");
        // At each byte, of a long file at some hundred.
        for split in (0..bytes.len()).step_by(1 + bytes.len() / 500) {
            let mut pieces = [split].into_iter();
            assert_eq!(
                parsed(&bytes, || pieces.next().unwrap_or(usize::MAX)),
                whole,
                "{name}, split at {split}"
            );
        }
    }
}

#[test]
fn requests_of_resp_that_are_packed_come_out_as_they_were() {
    let mut mutator = Mutator::new("resp");
    for _ in 0..500 {
        let requests: Vec<Vec<Vec<u8>>> = (0..mutator.below(5))
            .map(|_| (0..1 + mutator.below(5)).map(|_| mutator.mutant()).collect())
            .collect();
        let packed: Vec<u8> = requests.iter().flat_map(|request| resp::pack(request)).collect();
        assert_eq!(parsed(&packed, || mutator.below(3000)), Parsed { requests, end: End::Complete });
    }
}

#[test]
fn the_parser_of_resp_survives_what_is_changed_at_random() {
    let mut mutator = Mutator::new("resp");
    for _ in 0..MUTANTS {
        let bytes = mutator.mutant();
        let whole = parsed_at_once(&bytes);
        let most = 1 + mutator.below(bytes.len() + 10);
        let split = parsed(&bytes, || mutator.below(most));
        assert_eq!(split, whole, "{}", bytes.escape_ascii());
    }
}

/// A server among the examples, and what it speaks.
struct Speaker {
    server: Server,
    /// Reads what it says until it ends.
    complaints: JoinHandle<String>,
    /// Makes a connection on which it may be said.
    connect: fn(&Server) -> TcpStream,
    serves: fn(&Server),
    /// Whether a text ends with a refusal.
    refuses: fn(&str) -> bool,
    /// Whether a text is one of answers, or none.
    answers: fn(&str) -> bool,
}

impl Speaker {
    fn of_resp(patience: u64) -> Speaker {
        let (server, complaints) = Speaker::start("resp_server", patience);
        Speaker {
            server,
            complaints,
            connect: Server::connect,
            serves: |server| assert_eq!(resp::ask(&mut server.connect(), &["PING"]), b"+PONG\r\n"),
            refuses: |text| text.lines().last().is_some_and(|line| line.starts_with("-ERR Protocol error: ")),
            answers: |text| text.is_empty() || text.starts_with(['+', '-', ':', '$', '*']),
        }
    }

    fn of_http(patience: u64) -> Speaker {
        let (server, complaints) = Speaker::start("http_server", patience);
        Speaker {
            server,
            complaints,
            connect: Server::connect,
            serves: |server| {
                let mut stream = server.connect();
                stream.write_all(b"GET /plaintext HTTP/1.1\r\n\r\n").expect("sent");
                assert_eq!(http::answer(&mut stream).0, 200);
            },
            refuses: |text| {
                let last = text.rsplit("HTTP/1.1 ").next().and_then(|rest| rest.get(..3)?.parse().ok());
                // Not for being slow.
                last.is_some_and(|status: u16| (400..600).contains(&status) && status != 408)
            },
            answers: |text| text.is_empty() || text.starts_with("HTTP/1.1 "),
        }
    }

    #[cfg(feature = "websocket-examples")]
    fn of_upgrades(patience: u64) -> Speaker {
        let (server, complaints) = Speaker::start("websocket_echo", patience);
        Speaker {
            server,
            complaints,
            connect: Server::connect,
            serves: |server| {
                let mut stream = upgraded(server);
                // A message of two bytes behind a mask that changes nothing.
                stream.write_all(&[0x82, 0x82, 0, 0, 0, 0, 1, 2]).expect("sent");
                let mut echoed = [0; 4];
                stream.read_exact(&mut echoed).expect("echoed");
                assert_eq!(echoed, [0x82, 2, 1, 2]);
            },
            refuses: |text| text.starts_with("HTTP/1.1 400 "),
            answers: |text| text.is_empty() || text.starts_with("HTTP/1.1 "),
        }
    }

    /// Of what is said once the connection is a websocket.
    #[cfg(feature = "websocket-examples")]
    fn of_websockets(patience: u64) -> Speaker {
        Speaker {
            connect: upgraded,
            // By a close whose code is 1002, 1007 or 1009: no text has the second byte of these.
            refuses: |text| text.contains("\u{3}\u{fffd}"),
            answers: |_| true,
            ..Speaker::of_upgrades(patience)
        }
    }

    fn start(name: &str, patience: u64) -> (Server, JoinHandle<String>) {
        let (server, mut stderr) = Server::with_errors(name, patience);
        let complaints = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).expect("text");
            text
        });
        (server, complaints)
    }

    /// A connection on which so much was sent, if it was not closed before.
    fn sent(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = (self.connect)(&self.server);
        _ = stream.write_all(bytes);
        stream
    }

    /// Sends what is to be refused, and sees that it is, and that the server ends the connection.
    fn refuses(&self, (name, bytes): &File) {
        let text = told(self.sent(bytes));
        assert!((self.refuses)(&text), "{name} is not refused: {text:?}");
        (self.serves)(&self.server);
    }

    /// Sends what is no request as a whole, and no more, and sees the server end the connections.
    fn ends_unfinished_connections(&self, files: Vec<File>) {
        let streams: Vec<(String, TcpStream)> =
            files.into_iter().map(|(name, bytes)| (name, self.sent(&bytes))).collect();
        (self.serves)(&self.server);
        for (name, stream) in streams {
            let text = told(stream);
            assert!((self.answers)(&text), "{name}: {text:?}");
        }
        (self.serves)(&self.server);
    }

    /// Sends anything, and the end of it, and sees some answers and the server's end.
    fn survives(&self, (name, bytes): &File) {
        let stream = self.sent(bytes);
        // Unless the server was quicker.
        _ = stream.shutdown(Shutdown::Write);
        let text = told(stream);
        assert!((self.answers)(&text), "{name}: {text:?}");
    }

    fn survives_mutants(&self, kind: &str) {
        let mut mutator = Mutator::new(kind);
        for _ in 0..SENT_MUTANTS {
            let bytes = mutator.mutant();
            self.survives(&(bytes.escape_ascii().to_string(), bytes));
        }
        (self.serves)(&self.server);
    }

    /// Ends it; a task of it that has panicked has said so.
    fn has_not_panicked(self) {
        drop(self.server);
        assert_eq!(self.complaints.join().expect("no panic here either"), "");
    }
}

/// A connection that is a websocket.
#[cfg(feature = "websocket-examples")]
fn upgraded(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    stream.write_all(UPGRADE).expect("sent");
    let head = http::head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    stream
}

/// What the server says to its end.
fn told(stream: TcpStream) -> String {
    String::from_utf8_lossy(&rest(stream)).into_owned()
}

#[test]
fn resp_server_refuses_what_is_malformed_and_then_it_serves_again() {
    let speaker = Speaker::of_resp(LONG);
    files("resp", "bad_").iter().for_each(|file| speaker.refuses(file));
    speaker.has_not_panicked();
}

#[test]
fn resp_server_answers_what_is_odd_and_then_it_serves_again() {
    let speaker = Speaker::of_resp(LONG);
    files("resp", "odd_").iter().for_each(|file| speaker.survives(file));
    (speaker.serves)(&speaker.server);
    speaker.has_not_panicked();
}

#[test]
fn resp_server_ends_what_is_unfinished_and_then_it_serves_again() {
    let speaker = Speaker::of_resp(SHORT);
    speaker.ends_unfinished_connections(files("resp", "unfinished_"));
    speaker.has_not_panicked();
}

#[test]
fn resp_server_survives_what_is_changed_at_random_and_then_it_serves_again() {
    let speaker = Speaker::of_resp(LONG);
    speaker.survives_mutants("resp");
    speaker.has_not_panicked();
}

#[test]
fn http_server_refuses_what_is_malformed_and_then_it_serves_again() {
    let speaker = Speaker::of_http(LONG);
    files("http", "bad_").iter().for_each(|file| speaker.refuses(file));
    speaker.has_not_panicked();
}

#[test]
fn http_server_answers_what_is_odd_and_then_it_serves_again() {
    let speaker = Speaker::of_http(LONG);
    files("http", "odd_").iter().for_each(|file| speaker.survives(file));
    (speaker.serves)(&speaker.server);
    speaker.has_not_panicked();
}

#[test]
fn http_server_ends_what_is_unfinished_and_then_it_serves_again() {
    let speaker = Speaker::of_http(SHORT);
    speaker.ends_unfinished_connections(files("http", "unfinished_"));
    speaker.has_not_panicked();
}

#[test]
fn http_server_survives_what_is_changed_at_random_and_then_it_serves_again() {
    let speaker = Speaker::of_http(LONG);
    speaker.survives_mutants("http");
    speaker.has_not_panicked();
}

#[cfg(feature = "websocket-examples")]
mod websocket {
    use super::*;

    #[test]
    fn websocket_echo_refuses_what_is_malformed_and_then_it_serves_again() {
        for (speaker, kind) in
            [(Speaker::of_upgrades(LONG), "upgrade"), (Speaker::of_websockets(LONG), "websocket")]
        {
            files(kind, "bad_").iter().for_each(|file| speaker.refuses(file));
            speaker.has_not_panicked();
        }
    }

    #[test]
    fn websocket_echo_answers_what_is_odd_and_then_it_serves_again() {
        for (speaker, kind) in
            [(Speaker::of_upgrades(LONG), "upgrade"), (Speaker::of_websockets(LONG), "websocket")]
        {
            files(kind, "odd_").iter().for_each(|file| speaker.survives(file));
            (speaker.serves)(&speaker.server);
            speaker.has_not_panicked();
        }
    }

    #[test]
    fn websocket_echo_ends_an_upgrade_that_is_unfinished_and_then_it_serves_again() {
        let speaker = Speaker::of_upgrades(SHORT);
        speaker.ends_unfinished_connections(files("upgrade", "unfinished_"));
        speaker.has_not_panicked();
    }

    #[test]
    fn websocket_echo_survives_what_is_changed_at_random_and_then_it_serves_again() {
        for (speaker, kind) in
            [(Speaker::of_upgrades(LONG), "upgrade"), (Speaker::of_websockets(LONG), "websocket")]
        {
            speaker.survives_mutants(kind);
            speaker.has_not_panicked();
        }
    }
}
