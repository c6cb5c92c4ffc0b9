//! What clients do to a server by accident, by design, or by dying, done to `echo_server` as a process of its own, with
//! one worker and with two. Whatever it was: it serves again, and holds no descriptor more than before.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::ChildStderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::client::{ask, ends, exchange, exchange_paced, payload, reset, write_until_stuck};
use crate::common::server::Server;
use crate::common::{MOST, NOISE, both, room_for, until};

/// Does `harm` to a server with one worker and to one with two. It must serve afterwards, and have closed everything.
fn harmed(harm: impl Fn(&Server) + Sync) {
    both(|workers| harmed_once(workers, &harm));
}

fn harmed_once(workers: usize, harm: impl Fn(&Server)) {
    recovers(&Server::with_workers(workers), harm);
}

fn recovers(server: &Server, harm: impl FnOnce(&Server)) {
    server.recovers(|| server.serves(), || harm(server));
}

#[test]
fn resets_of_idle_connections() {
    harmed(|server| {
        (0..200).for_each(|_| reset(server.connect()));
        let idle: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
        server.serves();
        idle.into_iter().for_each(reset);
    });
}

#[test]
fn resets_after_requests() {
    harmed(|server| {
        for size in [1, 100, 4096, 4097, 100_000] {
            for _ in 0..40 {
                let mut stream = server.connect();
                stream.write_all(&payload(size)).expect("sent");
                reset(stream);
            }
        }
    });
}

/// A close without a linger of zero is a reset as well if there is something left to read.
#[test]
fn closes_with_unread_replies() {
    harmed(|server| {
        for _ in 0..200 {
            let mut stream = server.connect();
            stream.write_all(&[7; 1000]).expect("sent");
            stream.peek(&mut [0]).expect("the reply is there");
            drop(stream);
        }
    });
}

#[test]
fn resets_while_the_server_cannot_write() {
    harmed(|server| {
        let mut stuck: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
        stuck.iter_mut().for_each(|stream| _ = write_until_stuck(stream, &payload(MOST)));
        stuck.into_iter().for_each(reset);
    });
}

#[test]
fn half_closes_before_any_data() {
    harmed(|server| {
        for _ in 0..100 {
            let mut stream = server.connect();
            stream.shutdown(Shutdown::Write).expect("half-closed");
            ends(&mut stream);
        }
    });
}

#[test]
fn half_closes_while_replies_are_under_way() {
    harmed(|server| {
        for size in [1, 4096, 10_000, 1 << 20] {
            (0..5).for_each(|_| exchange(server.connect(), size));
        }
        // All of it is sent and the side closed before the first byte is read.
        for _ in 0..50 {
            let (mut stream, sent) = (server.connect(), payload(20_000));
            stream.write_all(&sent).expect("sent");
            stream.shutdown(Shutdown::Write).expect("half-closed");
            let mut back = Vec::new();
            stream.read_to_end(&mut back).expect("echoed");
            assert!(back == sent, "{} of {} bytes came back, or others", back.len(), sent.len());
        }
    });
}

#[test]
fn half_closes_after_the_replies() {
    harmed(|server| {
        for _ in 0..100 {
            let mut stream = server.connect();
            ask(&mut stream, &[3; 500]);
            stream.shutdown(Shutdown::Write).expect("half-closed");
            ends(&mut stream);
        }
    });
}

#[test]
fn single_bytes_by_the_thousand() {
    harmed(|server| {
        let mut stream = server.connect();
        payload(3000).chunks(1).for_each(|byte| ask(&mut stream, byte));
        exchange_paced(server.connect(), 20_000, 1, || {});
    });
}

#[test]
fn a_client_that_writes_and_never_reads() {
    harmed(|server| {
        let before = server.resident();
        let mut deaf: Vec<(TcpStream, usize)> = (0..3).map(|_| (server.connect(), 0)).collect();
        for (stream, sent) in &mut deaf {
            *sent = write_until_stuck(stream, &payload(MOST));
            server.serves();
        }
        let after = server.resident();
        assert!(after < before + NOISE, "the server grew from {before} to {after} KiB");
        // One of them reads after all, and nothing was lost.
        let (mut stream, sent) = deaf.pop().expect("three of them");
        stream.shutdown(Shutdown::Write).expect("half-closed");
        let mut back = Vec::with_capacity(sent);
        stream.read_to_end(&mut back).expect("echoed");
        assert!(back == payload(sent), "{} of {sent} bytes came back, or others", back.len());
    });
}

#[test]
fn a_slow_reader_of_ten_megabytes() {
    harmed(|server| {
        let stream = server.connect();
        socket2::SockRef::from(&stream).set_recv_buffer_size(64 << 10).expect("a small buffer");
        let mut pieces = 0;
        exchange_paced(stream, 10_000_000, 10_000_000, || {
            pieces += 1;
            thread::sleep(Duration::from_millis(1));
            if pieces % 32 == 0 {
                server.serves();
            }
        });
    });
}

/// So many descriptors has a server that is to run out of them.
const FEW: usize = 64;

#[test]
fn no_descriptor_left_to_accept_with() {
    both(|workers| {
        let (server, stderr) = Server::with_descriptors(workers, FEW);
        let complaints = count_complaints(stderr);
        recovers(&server, |server| exhaust(server, &complaints));
    });
}

/// Connects more clients than the server can accept, and sees that all of them are served in the end.
fn exhaust(server: &Server, complaints: &AtomicUsize) {
    let (before, begun) = (server.descriptors(), Instant::now());
    let mut clients: Vec<TcpStream> = (0..150).map(|_| server.connect()).collect();
    complains(complaints, 20);
    let words = complaints.load(Ordering::Relaxed);
    let millis = begun.elapsed().as_millis() as usize;
    assert!(words <= millis / 10 + 1, "{words} complaints in {millis} ms, with 10 ms after each");
    // A processor that was taken away in between may count as used: so it is asked until that is not so.
    until(|| {
        let (begun, ticks) = (Instant::now(), server.ticks());
        complains(complaints, 20);
        let (millis, ticks) = (begun.elapsed().as_millis() as usize, server.ticks() - ticks);
        match ticks as usize <= millis / 25 + 1 {
            true => Ok(()),
            false => Err(format!("{ticks} of {} ticks of computing nothing", millis / 10)),
        }
    });
    let accepted = server.descriptors() - before;
    assert!((FEW / 2..FEW).contains(&accepted), "{accepted} connections in {FEW} descriptors");
    // Those that came in time are served as ever; each that leaves makes room for one.
    clients[..accepted].iter_mut().for_each(|stream| ask(stream, b"accepted"));
    for mut stream in clients.drain(..) {
        ask(&mut stream, b"accepted at last");
    }
}

/// Waits until the server has complained so many times more.
fn complains(complaints: &AtomicUsize, more: usize) {
    let before = complaints.load(Ordering::Relaxed);
    until(|| match complaints.load(Ordering::Relaxed) - before {
        few if few < more => Err(format!("{few} words of it")),
        _ => Ok(()),
    });
}

/// Counts what the server says of failed accepts; anything else that it says fails the reader's thread, loudly.
fn count_complaints(stderr: ChildStderr) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            assert!(line.starts_with("accept: "), "{line}");
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    count
}

#[test]
fn memory_returns_with_one_worker() {
    harmed_once(1, bursts);
}

#[test]
fn memory_returns_with_two_workers() {
    harmed_once(2, bursts);
}

/// Two thousand connections at once, each of which makes its task use the whole of its buffer.
fn bursts(server: &Server) {
    // The others are for the tests beside this one.
    let most = room_for(2000, 4000);
    let before = server.resident();
    let mut streams: Vec<TcpStream> = (0..most).map(|_| server.connect()).collect();
    streams.iter_mut().for_each(|stream| ask(stream, &payload(8192)));
    // Of few, the system's own count may be further off.
    let (peak, few) = (server.resident(), most * 4 < NOISE);
    assert!(few || peak > before + most * 4, "{most} stacks in {peak} KiB, with {before} before");
    drop(streams);
    server.gives_memory_back(before, 0);
}

#[test]
fn everything_at_once() {
    harmed(|server| {
        thread::scope(|scope| {
            scope.spawn(|| (0..300).for_each(|_| reset(server.connect())));
            scope.spawn(|| (0..5).for_each(|_| exchange(server.connect(), 1 << 20)));
            scope.spawn(|| exchange_paced(server.connect(), 5000, 1, || {}));
            scope.spawn(|| (0..100).for_each(|_| drop(server.connect())));
            scope.spawn(|| {
                let mut stuck = server.connect();
                write_until_stuck(&mut stuck, &payload(MOST));
                reset(stuck);
            });
            scope.spawn(|| (0..20).for_each(|_| server.serves()));
        });
    });
}
