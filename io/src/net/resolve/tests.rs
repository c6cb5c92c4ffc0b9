//! Compares answers with std's trait, for every address that needs no name server.

#![forbid(unsafe_code)]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::{ToSocketAddrs, try_each};

fn all(addresses: impl ToSocketAddrs) -> Vec<SocketAddr> {
    addresses.to_socket_addrs().unwrap().collect()
}

fn v4(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn v6(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::LOCALHOST, port))
}

#[test]
fn addresses_are_themselves() {
    assert_eq!(all(v4(1)), [v4(1)]);
    assert_eq!(all(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 2)), [v4(2)]);
    assert_eq!(all(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 3, 0, 0)), [v6(3)]);
    assert_eq!(all((Ipv4Addr::LOCALHOST, 4)), [v4(4)]);
    assert_eq!(all((Ipv6Addr::LOCALHOST, 5)), [v6(5)]);
    assert_eq!(all((v4(0).ip(), 6)), [v4(6)]);
}

#[test]
fn literals_are_parsed_in_place() {
    assert_eq!(all("127.0.0.1:7"), [v4(7)]);
    assert_eq!(all("[::1]:8"), [v6(8)]);
    assert_eq!(all(String::from("127.0.0.1:9")), [v4(9)]);
    assert_eq!(all(("::1", 10)), [v6(10)]);
    assert_eq!(all((String::from("127.0.0.1"), 11)), [v4(11)]);
}

#[test]
fn slices_and_references_pass_through() {
    let both = [v4(1), v6(2)];
    assert_eq!(all(&both[..]), both);
    let text = "127.0.0.1:3";
    assert_eq!(<&&str as ToSocketAddrs>::to_socket_addrs(&&text).unwrap().collect::<Vec<_>>(), [v4(3)]);
}

#[test]
fn names_are_looked_up() {
    assert!(all("localhost:12").iter().all(|address| address.ip().is_loopback() && address.port() == 12));
}

#[test]
fn what_is_no_address_is_invalid_input() {
    for wrong in ["127.0.0.1", "localhost:port", "localhost:70000"] {
        assert_eq!(wrong.to_socket_addrs().unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
    }
}

#[test]
fn no_address_at_all_is_invalid_input() {
    let none: &[SocketAddr] = &[];
    let error = try_each(none, |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_first_that_succeeds_ends_the_trying() {
    let tried = std::cell::RefCell::new(Vec::new());
    let found = try_each(&[v4(1), v4(2), v4(3)][..], |address| {
        tried.borrow_mut().push(address.port());
        if address.port() == 2 { Ok(address) } else { Err(ErrorKind::ConnectionRefused.into()) }
    });
    assert_eq!(found.unwrap(), v4(2));
    assert_eq!(*tried.borrow(), [1, 2]);
}
