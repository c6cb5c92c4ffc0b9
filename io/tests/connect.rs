//! Several addresses are raced; the losers leave nothing behind.

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::{everywhere, in_tasks, kind, listener};
use fibra_io::net::TcpStream;

/// An address that answers nobody: a listener whose queue is full.
struct Silent {
    _listener: socket2::Socket,
    _queue: Vec<std::net::TcpStream>,
    address: SocketAddr,
}

impl Silent {
    fn new() -> Silent {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
            queue.push(stream);
        }
        Silent { _listener: listener, _queue: queue, address }
    }
}

fn refused() -> SocketAddr {
    listener().1
}

#[test]
fn a_silent_address_does_not_hold_up_the_next() {
    in_tasks(|| {
        let silent = Silent::new();
        let (listener, address) = listener();
        let start = Instant::now();
        let mut stream = TcpStream::connect(&[silent.address, address][..]).unwrap();
        let took = start.elapsed();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(took >= Duration::from_millis(250) && took < Duration::from_millis(950), "{took:?}");
        stream.write_all(&[1]).unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
    });
}

#[test]
fn several_silent_addresses_cost_a_head_start_each() {
    in_tasks(|| {
        let silent = Silent::new();
        let (_listener, address) = listener();
        let stream = TcpStream::connect(&[silent.address, silent.address, address][..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[test]
fn a_refusal_lets_the_next_begin_at_once() {
    everywhere(|| {
        let (_listener, address) = listener();
        let start = Instant::now();
        let stream = TcpStream::connect(&[refused(), refused(), address][..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(start.elapsed() < Duration::from_millis(250));
    });
}

#[test]
fn the_last_error_is_told_if_none_answers() {
    everywhere(|| {
        assert_eq!(kind(TcpStream::connect(&[refused(), refused()][..])), ErrorKind::ConnectionRefused);
    });
}

/// The stream that wins after a race is as blocking as any for whoever takes it to std.
#[test]
fn the_winner_is_an_ordinary_stream() {
    in_tasks(|| {
        let silent = Silent::new();
        let (_listener, address) = listener();
        let stream = TcpStream::connect(&[silent.address, address][..]).unwrap();
        assert!(!socket2::SockRef::from(&stream).nonblocking().unwrap());
    });
}
