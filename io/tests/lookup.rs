//! Names are looked up on the blocking pool, literal addresses in place; and a lookup can be left.

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use common::{everywhere, kind, with_full_pool};
use fibra_io::net::{TcpListener, TcpStream, lookup_host};
use fibra_runtime::timeout;

/// A time that no test waits out.
const LONG: Duration = Duration::from_secs(3600);
/// A time after which what has not come will not come.
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn a_name_has_the_addresses_that_std_finds() {
    everywhere(|| {
        let ours: Vec<SocketAddr> = lookup_host("localhost:80").unwrap().collect();
        let stds: Vec<SocketAddr> = "localhost:80".to_socket_addrs().unwrap().collect();
        assert_eq!(ours, stds);
        assert_eq!(lookup_host(("localhost", 80)).unwrap().collect::<Vec<_>>(), stds);
    });
}

#[test]
fn what_is_no_address_is_an_error() {
    everywhere(|| {
        assert_eq!(kind(lookup_host("localhost")), ErrorKind::InvalidInput);
        assert_eq!(kind(lookup_host("localhost:70000")), ErrorKind::InvalidInput);
        let none: &[SocketAddr] = &[];
        assert_eq!(kind(TcpStream::connect(none)), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_name_can_be_bound_and_connected_to() {
    everywhere(|| {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("localhost", port)).unwrap();
        assert_eq!(listener.accept().unwrap().1, client.local_addr().unwrap());
    });
}

#[test]
fn a_literal_address_needs_no_thread() {
    with_full_pool(|_free, _taker| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = timeout(LONG, || lookup_host(address.to_string().as_str()).unwrap().next());
        assert_eq!(found, Ok(Some(address)));
        TcpStream::connect(("127.0.0.1", address.port())).unwrap();
    });
}

#[test]
fn a_lookup_that_waits_for_a_thread_can_be_left() {
    with_full_pool(|free, taker| {
        assert!(timeout(SHORT, || lookup_host("localhost:80").map(drop)).is_err());
        drop(free);
        taker.join().unwrap();
        assert!(lookup_host("localhost:80").is_ok());
    });
}
