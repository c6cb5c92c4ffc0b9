//! What a bad line between them does to clients and servers: each example that serves is spoken to through a proxy that does
//! harm. A client that can still be answered is answered, others see the end, and then it serves again: a healthy client on
//! a new connection, and no descriptor more than before.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::common::client::{connect, leave, payload, try_connect, write_until_stuck};
use crate::common::example::example;
use crate::common::faulty::{
    Cuts, Delays, Direction, Fault, Glues, Proxy, Resets, Slices, StopsReading, Throttles,
};
use crate::common::http::{self, PLAINTEXT};
use crate::common::resp;
use crate::common::server::Server;
use crate::common::{MOST, PATIENCE, both, until};

/// How many clients suffer at once.
const CLIENTS: usize = 4;

/// How many requests are sent at once, none of them waiting for an answer, unless a test says otherwise.
const REQUESTS: usize = 20;

/// What is said to `resp_server`, and comes back.
const WORD: &str =
    "a word that is as long as that of the others, more or less, so that what is cut off is in its middle";

/// What a server speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Echo,
    Http,
    Resp,
    Chat,
    Proxy,
    #[cfg(feature = "compat-examples")]
    Hyper,
}

/// Those that need no features.
const KINDS: [Kind; 5] = [Kind::Echo, Kind::Http, Kind::Resp, Kind::Chat, Kind::Proxy];

impl Kind {
    /// The bytes of a client that wants so many answers.
    fn requests(self, count: usize) -> Vec<u8> {
        match self {
            Kind::Echo | Kind::Proxy => payload(count * 100),
            Kind::Http => PLAINTEXT.repeat(count),
            Kind::Resp => resp::pack(&["ECHO", WORD]).repeat(count),
            Kind::Chat => ["guest\n", &"a word to all\n".repeat(count - 1)].concat().into_bytes(),
            #[cfg(feature = "compat-examples")]
            Kind::Hyper => b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(count),
        }
    }

    /// Reads so many answers, and sees that they are the right ones.
    fn answers(self, stream: &mut impl Read, count: usize) {
        match self {
            Kind::Echo | Kind::Proxy => {
                let mut back = vec![0; count * 100];
                stream.read_exact(&mut back).expect("echoed");
                assert!(back == payload(count * 100), "other bytes came back");
            }
            // No guest hears its own words.
            Kind::Chat => {
                let mut welcome = String::new();
                BufReader::new(stream).read_line(&mut welcome).expect("a line");
                assert!(welcome.starts_with("* welcome, guest, you are one of "), "{welcome}");
            }
            Kind::Resp => (0..count).for_each(|_| {
                let echoed = resp::reply(stream);
                assert!(
                    echoed == format!("${}\r\n{WORD}\r\n", WORD.len()).as_bytes(),
                    "other bytes came back"
                );
            }),
            _ => (0..count).for_each(|_| http::plaintext(stream)),
        }
    }
}

/// A server that is done harm to, and the one behind it if it is a proxy.
struct Victim {
    kind: Kind,
    server: Server,
    behind: Option<Server>,
}

impl Victim {
    fn new(kind: Kind, workers: usize, patience: &str) -> Victim {
        let launch = |name, behind: Option<&Server>| {
            let mut program = example(name);
            program.env("FIBRA_WORKERS", workers.to_string()).env("PATIENCE_MS", patience);
            Server::launch(program.args(behind.map(Server::address)))
        };
        let behind = (kind == Kind::Proxy).then(|| launch("echo_server", None));
        let server = match kind {
            Kind::Echo => launch("echo_server", None),
            Kind::Http => launch("http_server", None),
            Kind::Resp => launch("resp_server", None),
            Kind::Chat => launch("chat", None),
            Kind::Proxy => launch("tcp_proxy", behind.as_ref()),
            #[cfg(feature = "compat-examples")]
            Kind::Hyper => launch("hyper_server", None),
        };
        Victim { kind, server, behind }
    }

    /// Serves a healthy client.
    fn serves(&self) {
        let mut stream = self.server.connect();
        self.asks(&mut stream, 3);
        leave(stream);
    }

    /// Sends so many requests at once, and reads the answers to them.
    fn asks(&self, stream: &mut TcpStream, count: usize) {
        stream.write_all(&self.kind.requests(count)).expect("sent");
        self.kind.answers(stream, count);
    }

    fn all(&self) -> impl Iterator<Item = &Server> {
        [&self.server].into_iter().chain(&self.behind)
    }
}

/// Does `harm` to a server with one worker and to one with two; and then it serves again.
fn harmed(kind: Kind, patience: &str, harm: impl Fn(&Victim) + Sync) {
    let each = |workers| {
        let victim = Victim::new(kind, workers, patience);
        victim.serves();
        let before: Vec<usize> = victim.all().map(Server::settled_descriptors).collect();
        harm(&victim);
        victim.serves();
        victim.all().zip(before).for_each(|(server, before)| server.comes_to(before));
        victim.serves();
    };
    both(each);
}

/// Lets several clients speak at once through a proxy that does them harm, and a healthy one beside them.
fn through(victim: &Victim, fault: impl Fault, client: impl Fn(&str) + Sync) {
    let proxy = Proxy::before(victim.server.address(), fault);
    thread::scope(|scope| {
        (0..CLIENTS).for_each(|_| _ = scope.spawn(|| client(proxy.address())));
        victim.serves();
    });
}

/// Clients that are answered in full, whatever the harm.
fn all_are_answered(kind: Kind, requests: usize, fault: impl Fault + Copy) {
    harmed(kind, PATIENCE, |victim| {
        through(victim, fault, |address| victim.asks(&mut connect(address), requests));
    });
}

/// Clients of whose answers no more than so many bytes come, and then an end.
fn all_are_cut_off<F: Fault + Copy>(kind: Kind, requests: usize, most: usize, fault: F) {
    harmed(kind, PATIENCE, |victim| {
        through(victim, fault, |address| {
            let mut came = Vec::new();
            let errors = ends_of(address, &kind.requests(requests), &mut came);
            let is_end =
                |kind: &ErrorKind| matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
            assert!(errors.iter().all(is_end), "{errors:?}");
            assert!(!F::RESETS || !errors.is_empty(), "a reset that looks like an orderly end");
            assert!(came.len() <= most, "{} bytes, of which the proxy sent {most}", came.len());
        });
    });
}

/// Connects, sends and reads to the end, and tells what errors the calls make of it. An end while a client still connects or
/// writes is a reset as well, of which only the first call hears.
fn ends_of(address: &str, requests: &[u8], came: &mut Vec<u8>) -> Vec<ErrorKind> {
    let errors = match try_connect(address) {
        Ok(mut stream) => [stream.write_all(requests).err(), stream.read_to_end(came).err()],
        Err(error) => [Some(error), None],
    };
    errors.into_iter().flatten().map(|error| error.kind()).collect()
}

fn delays(kind: Kind) {
    all_are_answered(kind, REQUESTS, Delays(Duration::from_millis(20)));
}

#[test]
fn delayed() {
    KINDS.into_iter().for_each(delays);
}

fn slices(kind: Kind) {
    all_are_answered(kind, 5, Slices(0));
}

#[test]
fn sliced_into_single_bytes() {
    KINDS.into_iter().for_each(slices);
}

/// All requests are in one piece; or in some; or pieces end wherever in a request.
fn glues(kind: Kind) {
    let all = kind.requests(REQUESTS).len();
    [all, all / 4, 4].into_iter().for_each(|size| all_are_answered(kind, REQUESTS, Glues(size)));
}

#[test]
fn glued_together() {
    KINDS.into_iter().for_each(glues);
}

fn throttles(kind: Kind) {
    all_are_answered(kind, REQUESTS, Throttles(50, Duration::from_millis(1)));
}

#[test]
fn throttled() {
    KINDS.into_iter().for_each(throttles);
}

/// Ends of connections before the first byte, in the middle of the first request, and in the middle of an answer.
fn breaks<F: Fault + Copy>(kind: Kind, fault: fn(Direction, usize) -> F) {
    for after in [0, 3] {
        all_are_cut_off(kind, 1, usize::MAX, fault(Direction::Requests, after));
    }
    for after in [0, 5] {
        all_are_cut_off(kind, 1, after, fault(Direction::Answers, after));
    }
    if kind != Kind::Chat {
        // While the server has much more to write.
        all_are_cut_off(kind, 50_000, 10_000, fault(Direction::Answers, 10_000));
    }
}

fn cuts(kind: Kind) {
    breaks(kind, Cuts);
}

#[test]
fn cut() {
    KINDS.into_iter().for_each(cuts);
}

fn resets(kind: Kind) {
    breaks(kind, Resets);
}

#[test]
fn reset() {
    KINDS.into_iter().for_each(resets);
}

/// A client that reads no answers, so that the server cannot write: it serves the others, until the line breaks.
fn stops_reading(kind: Kind) {
    harmed(kind, PATIENCE, |victim| {
        let proxy = Proxy::before(victim.server.address(), StopsReading(1000));
        let mut deaf = connect(proxy.address());
        let requests = kind.requests(MOST / kind.requests(1).len());
        write_until_stuck(&mut deaf, &requests);
        victim.serves();
        drop(proxy);
        victim.serves();
    });
}

#[test]
fn no_longer_read_from() {
    [Kind::Echo, Kind::Proxy, Kind::Http, Kind::Resp].into_iter().for_each(stops_reading);
}

/// A client that reads no answers, where only the server ends it.
#[test]
fn no_longer_read_from_until_the_server_has_had_enough() {
    harmed(Kind::Http, "2000", |victim| {
        let before = victim.server.settled_descriptors();
        let proxy = Proxy::before(victim.server.address(), StopsReading(1000));
        let mut deaf = connect(proxy.address());
        let many = PLAINTEXT.repeat(1000);
        until(|| match deaf.write_all(&many) {
            Ok(()) => {
                victim.serves();
                Err("the server takes requests for ever".to_owned())
            }
            Err(_) => Ok(()),
        });
        victim.server.comes_to(before);
    });
}

/// A guest whose line stops is told nothing; the others go on talking.
#[test]
fn a_guest_that_no_longer_reads() {
    harmed(Kind::Chat, PATIENCE, |victim| {
        let proxy = Proxy::before(victim.server.address(), StopsReading(10));
        let mut deaf = connect(proxy.address());
        deaf.write_all(b"deaf\n").expect("sent");
        deaf.read_exact(&mut [0; 10]).expect("the begin of a welcome");
        // Much more than the sockets keep for a guest that does not read.
        let (mut speaker, mut listener) = (victim.server.connect(), victim.server.connect());
        victim.asks(&mut listener, 1);
        victim.asks(&mut speaker, 1);
        let words = ["x".repeat(1000), "\n".to_owned()].concat().repeat(100);
        for _ in 0..160 {
            speaker.write_all(words.as_bytes()).expect("sent");
        }
        speaker.write_all(b"that was it\n").expect("sent");
        let mut lines = BufReader::new(&mut listener).lines().map(|line| line.expect("a line"));
        assert!(lines.any(|line| line == "guest: that was it"), "the last word was not heard");
    });
}

#[test]
#[cfg(feature = "compat-examples")]
fn hyper_server_suffers_all_of_it() {
    [delays, slices, glues, throttles, cuts, resets, stops_reading]
        .into_iter()
        .for_each(|harm| harm(Kind::Hyper));
}
