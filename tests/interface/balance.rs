//! Where connections settle: started tasks stay, so what trickles in one by one must be spread when it starts.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};

/// How many connections come, and then how many more as long as they are not spread.
const CONNECTIONS: usize = 200;

/// How many connections come at the most.
const MOST: usize = 2000;

/// How many handlers began where.
type Homes = Arc<Mutex<HashMap<ThreadId, usize>>>;

/// Serves one connection, which lives until its client says so.
fn handle(mut stream: TcpStream, homes: &Homes) {
    *homes.lock().expect("no handler panics").entry(thread::current().id()).or_default() += 1;
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("the client's sign");
    stream.write_all(&byte).expect("answered");
}

/// Connects one client a millisecond.
fn trickle(address: SocketAddr) -> Vec<std::net::TcpStream> {
    let connect = |_| {
        thread::sleep(Duration::from_millis(1));
        std::net::TcpStream::connect(address).expect("a connection")
    };
    (0..CONNECTIONS).map(connect).collect()
}

/// Has one of them served.
fn is_served(mut stream: std::net::TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    stream.write_all(&[1]).expect("sent");
    stream.read_exact(&mut [0]).expect("answered");
}

/// How many run on each of the two workers, once all have begun.
fn begun(homes: &Homes, connections: usize) -> [usize; 2] {
    loop {
        let mut counts: Vec<usize> = homes.lock().expect("no handler panics").values().copied().collect();
        counts.resize(2, 0);
        if counts.iter().sum::<usize>() == connections {
            return [counts[0], counts[1]];
        }
        fibra::sleep(Duration::from_millis(1));
    }
}

/// True if each has two fifths at the least.
fn are_spread([one, other]: [usize; 2]) -> bool {
    5 * one.min(other) >= 2 * (one + other)
}

/// Accepts, has each connection handled by what `start` makes, and sees how the handlers are spread.
fn is_balanced<T: Send>(start: impl Fn(TcpStream, Homes) -> T + Sync, end: impl Fn(T) + Sync) {
    let runtime = fibra::Runtime::builder().workers(2).build().expect("a runtime");
    let homes = Homes::default();
    runtime.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("its address");
        let (mut clients, mut handlers) = (Vec::new(), Vec::new());
        let counts = loop {
            let client = thread::spawn(move || trickle(address));
            for _ in 0..CONNECTIONS {
                let (stream, _) = listener.accept().expect("a connection");
                handlers.push(start(stream, Arc::clone(&homes)));
            }
            clients.extend(fibra::unblock(|| client.join().expect("the client")));
            // What a worker has missed that the machine held back for a while, it gets of those that come next.
            let counts = begun(&homes, handlers.len());
            if are_spread(counts) || handlers.len() >= MOST {
                break counts;
            }
        };
        fibra::unblock(|| clients.into_iter().for_each(is_served));
        handlers.into_iter().for_each(&end);
        assert!(are_spread(counts), "{counts:?}");
    });
}

#[test]
fn connections_with_dropped_handles() {
    is_balanced(|stream, homes| drop(fibra::spawn(move || handle(stream, &homes))), drop);
}

#[test]
fn connections_with_kept_handles() {
    is_balanced(
        |stream, homes| fibra::spawn(move || handle(stream, &homes)),
        |handle| handle.join().expect("a handler"),
    );
}
