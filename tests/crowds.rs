//! Many clients at once that do little or nothing, and a healthy one among them that is served all along.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use common::client::{leave, reset};
use common::http::{self, PLAINTEXT};
use common::server::Server;
use common::{HANG, allow_descriptors, room_for, until};

/// How many clients are slow at once.
const SLOW: usize = 500;

/// How many connections are idle at once.
const IDLE: usize = 10_000;

/// What the tables of a runtime have for so many, in KiB, half of one for each: they stay as long as they have been.
const TABLES: usize = IDLE / 2;

/// Descriptors that are needed for other things than idle connections: slow clients, which have two each, and the rest.
const OTHERS: usize = 2 * SLOW + 500;

/// The time from one byte of a slow client to the next.
const NOW_AND_THEN: Duration = Duration::from_millis(50);

/// Has one crowd at a time idle, for want of descriptors. Slow clients, which wait, come beside it.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a beginning, then a byte now and then, until the server ends the connection.
fn drips(mut stream: fibra::net::TcpStream, begin: &[u8], byte: &[u8]) {
    let mut drip = stream.try_clone().expect("a second handle");
    stream.write_all(begin).expect("sent");
    // Whatever it is sent before the end, and whichever of the two sees the end.
    fibra::race(
        || _ = stream.read_to_end(&mut Vec::new()),
        || {
            while drip.write_all(byte).is_ok() {
                fibra::sleep(NOW_AND_THEN);
            }
        },
    );
}

/// Clients of all slow kinds, to the end of the last one.
fn slow_clients(address: &str) {
    let runtime = fibra::Runtime::builder().workers(1).build().expect("a runtime");
    runtime.run(|| {
        let all_end = || {
            fibra::scope(|scope| {
                for number in 0..SLOW {
                    let mut stream = fibra::net::TcpStream::connect(address).expect("a connection");
                    scope.spawn(move || match number % 3 {
                        0 => drips(stream, b"GET /plaintext HTTP/1.1\r\nx: ", b"y"),
                        1 => drips(stream, b"POST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n", b"z"),
                        _ => assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0),
                    });
                }
            });
        };
        fibra::timeout(HANG, all_end).expect("the server ends all that are slow");
    });
}

/// Serves a healthy client, again and again, while others do what they do; once at the least, should they be quicker than it is.
fn meanwhile(others: impl FnOnce() + Send, mut healthy: impl FnMut()) {
    thread::scope(|scope| {
        let others = scope.spawn(others);
        healthy();
        while !others.is_finished() {
            // Not so often that the ports run out, or that the others find no processor.
            thread::sleep(Duration::from_millis(1));
            healthy();
        }
    });
}

#[test]
fn slow_clients_are_ended_and_others_are_served_meanwhile() {
    allow_descriptors();
    let server = Server::with_patience("http_server", 2000);
    http::serves(&server);
    let before = server.settled_descriptors();
    meanwhile(|| slow_clients(server.address()), || http::serves(&server));
    server.comes_to(before);
    http::serves(&server);
}

/// What a client asks, and how it sees that the answer is right.
struct Talk {
    request: &'static [u8],
    answered: fn(&mut TcpStream),
}

const ECHO: Talk = Talk {
    request: b"still here",
    answered: |stream| {
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).expect("echoed");
        assert_eq!(&reply, b"still here");
    },
};

const HTTP: Talk = Talk { request: PLAINTEXT, answered: |stream| http::plaintext(stream) };

impl Talk {
    /// Asks on each of the streams before the first answer is read: to wait for each answer in turn costs a change of
    /// processes, or more where the machine is busy.
    fn asks<'a>(&self, streams: impl IntoIterator<Item = &'a mut TcpStream>) {
        let ask = |stream: &'a mut TcpStream| {
            stream.write_all(self.request).expect("sent");
            stream
        };
        let asked: Vec<_> = streams.into_iter().map(ask).collect();
        asked.into_iter().for_each(self.answered);
    }
}

/// A client that asks once and leaves; the server keeps nothing of it.
fn visits(server: &Server, talk: &Talk) {
    let mut stream = server.connect();
    talk.asks([&mut stream]);
    leave(stream);
}

/// Opens as many connections as there may be, all at once, of which each asks once and stays; then they go, one half in order,
/// the other by reset. Gives how much of the server's memory was resident before, in KiB.
fn idle_crowd(server: &Server, talk: &Talk) -> usize {
    let most = room_for(IDLE, OTHERS);
    visits(server, talk);
    let (before, memory) = (server.settled_descriptors(), server.resident());
    let mut streams = Vec::with_capacity(most);
    let mut busy = server.connect();
    talk.asks([&mut busy]);
    let others = || {
        fill(server, &mut streams, most);
        let opened = server.resident();
        talk.asks(&mut streams);
        let asked = server.resident();
        let each = |now: usize| (now.saturating_sub(memory) << 10) / most;
        println!("{most} idle connections: {} bytes each, {} after a request", each(opened), each(asked));
        talk.asks(streams.iter_mut().step_by(100));
    };
    meanwhile(others, || talk.asks([&mut busy]));
    leave(busy);
    assert_eq!(streams.len(), most, "there is room for more connections");
    for (index, stream) in streams.into_iter().enumerate() {
        if index % 2 == 0 { drop(stream) } else { reset(stream) }
    }
    server.comes_to(before);
    visits(server, talk);
    memory
}

/// Opens connections in lots that fit into the backlog.
fn fill(server: &Server, streams: &mut Vec<TcpStream>, most: usize) {
    let before = server.descriptors();
    while streams.len() < most {
        let lot = (most - streams.len()).min(1000);
        streams.extend((0..lot).map(|_| server.connect()));
        until(|| match server.descriptors() - before {
            now if now >= streams.len() => Ok(()),
            now => Err(format!("{now} of {} connections accepted", streams.len())),
        });
    }
}

#[test]
fn ten_thousand_idle_connections_of_echo_server() {
    let _alone = alone();
    for workers in [1, 2] {
        allow_descriptors();
        let server = Server::with_workers(workers);
        let memory = idle_crowd(&server, &ECHO);
        server.gives_memory_back(memory, TABLES);
        if workers == 2 {
            // The tables have room for as many by now: nothing is added.
            let memory = idle_crowd(&server, &ECHO);
            server.gives_memory_back(memory, 0);
        }
    }
}

#[test]
fn ten_thousand_idle_connections_of_http_server() {
    let _alone = alone();
    allow_descriptors();
    _ = idle_crowd(&Server::with_patience("http_server", 60_000), &HTTP);
}
