//! Where connections settle: started tasks stay, so what trickles in one by one must be spread when it starts.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};

/// How many connections come.
const CONNECTIONS: usize = 200;

/// How many of them may be at home on each of two workers.
const FAIR: std::ops::RangeInclusive<usize> = 80..=120;

/// How many handlers ran where.
type Homes = Arc<Mutex<HashMap<ThreadId, usize>>>;

/// Serves one connection, which lives until its client says so.
fn handle(mut stream: TcpStream, homes: &Homes) {
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("the client's sign");
    *homes.lock().expect("nobody panics").entry(thread::current().id()).or_default() += 1;
    stream.write_all(&byte).expect("answered");
}

/// Connects one client a millisecond, and only then has all of them served.
fn trickle(address: SocketAddr) {
    let connect = |_| {
        thread::sleep(Duration::from_millis(1));
        std::net::TcpStream::connect(address).expect("a connection")
    };
    let mut streams: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    for stream in &mut streams {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        stream.write_all(&[1]).expect("sent");
        stream.read_exact(&mut [0]).expect("answered");
    }
}

/// Accepts with `accept_all`, and sees how the handlers are spread.
fn is_balanced(accept_all: impl Fn(TcpListener, &Homes) + Sync) {
    let runtime = fibra::Runtime::builder().workers(2).build().expect("a runtime");
    let homes = Homes::default();
    runtime.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("its address");
        let client = thread::spawn(move || trickle(address));
        accept_all(listener, &homes);
        fibra::unblock(|| client.join().expect("the client"));
    });
    let homes = homes.lock().expect("nobody panics");
    let mut counts: Vec<usize> = homes.values().copied().collect();
    counts.resize(2, 0);
    assert_eq!(counts.iter().sum::<usize>(), CONNECTIONS);
    assert!(counts.iter().all(|count| FAIR.contains(count)), "{counts:?}");
}

#[test]
fn connections_whose_handles_are_dropped() {
    is_balanced(|listener, homes| {
        for _ in 0..CONNECTIONS {
            let (stream, _) = listener.accept().expect("a connection");
            let homes = Arc::clone(homes);
            fibra::spawn(move || handle(stream, &homes));
        }
    });
}

#[test]
fn connections_whose_handles_are_kept() {
    is_balanced(|listener, homes| {
        let mut handles = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let (stream, _) = listener.accept().expect("a connection");
            let homes = Arc::clone(homes);
            handles.push(fibra::spawn(move || handle(stream, &homes)));
        }
        handles.into_iter().for_each(|handle| handle.join().expect("a handler"));
    });
}
