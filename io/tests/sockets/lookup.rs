//! Names are looked up on the blocking pool, literal addresses in place; and a lookup can be left.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::common::sides::guarded;
use crate::common::{everywhere, kind, until, with_full_pool};
use crate::folder::Folder;
use fibra_io::fs::File;
use fibra_io::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket, lookup_host};
use fibra_runtime::{Runtime, spawn, timeout};

/// A time that no test waits out.
const LONG: Duration = Duration::from_secs(3600);
/// A time after which what has not come will not come.
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn a_name_has_the_addresses_that_std_finds() {
    everywhere(|| {
        let ours: Vec<SocketAddr> = lookup_host("localhost:80").unwrap().collect();
        let stds: Vec<SocketAddr> =
            std::net::ToSocketAddrs::to_socket_addrs("localhost:80").unwrap().collect();
        assert_eq!(ours, stds);
        assert_eq!(lookup_host(("localhost", 80)).unwrap().collect::<Vec<_>>(), stds);
    });
}

#[test]
fn invalid_address_is_an_error() {
    everywhere(|| {
        assert_eq!(kind(lookup_host("localhost")), ErrorKind::InvalidInput);
        assert_eq!(kind(lookup_host("localhost:70000")), ErrorKind::InvalidInput);
        let none: &[SocketAddr] = &[];
        assert_eq!(kind(TcpStream::connect(none)), ErrorKind::InvalidInput);
    });
}

// ---- std's scenarios of addresses, by their names ----

/// All addresses that something stands for, or the kind of the error.
fn all(host: impl ToSocketAddrs) -> Result<Vec<SocketAddr>, ErrorKind> {
    host.to_socket_addrs().map(Vec::from_iter).map_err(|error| error.kind())
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[test]
fn to_socket_addr_ipaddr_u16() {
    everywhere(|| {
        let (v4, v6) = (Ipv4Addr::new(192, 0, 2, 7), "2001:db8::7".parse::<Ipv6Addr>().unwrap());
        assert_eq!(all((v4, 80)), Ok(vec![SocketAddr::from((v4, 80))]));
        assert_eq!(all((v6, 80)), Ok(vec![SocketAddr::from((v6, 80))]));
        assert_eq!(all((IpAddr::V6(v6), 80)), all((v6, 80)));
    });
}

#[test]
fn to_socket_addr_str_u16() {
    everywhere(|| {
        assert_eq!(all(("192.0.2.7", 80)), all((Ipv4Addr::new(192, 0, 2, 7), 80)));
        assert_eq!(all(("2001:db8::7", 80)), Ok(vec!["[2001:db8::7]:80".parse().unwrap()]));
        assert!(all(("localhost", 80)).unwrap().contains(&loopback(80)));
    });
}

#[test]
fn to_socket_addr_str() {
    everywhere(|| {
        assert_eq!(all("192.0.2.7:80"), all(("192.0.2.7", 80)));
        assert_eq!(all("[2001:db8::7]:80"), all(("2001:db8::7", 80)));
        assert!(all("localhost:80").unwrap().contains(&loopback(80)));
    });
}

#[test]
fn to_socket_addr_string() {
    everywhere(|| {
        let text = format!("{}:{}", "192.0.2.7", 80);
        let expected = all(("192.0.2.7", 80));
        assert_eq!(all(&*text), expected);
        assert_eq!(all(&text), expected);
        assert_eq!(all(text), expected);
        assert_eq!(all(("192.0.2.7".to_owned(), 80)), expected);
    });
}

#[test]
fn bind_udp_socket_bad() {
    everywhere(|| assert!(UdpSocket::bind("1200::AB00:1234::2552:7777:1313:34300").is_err()));
}

#[test]
fn no_lookup_host_duplicates() {
    everywhere(|| {
        let mut found = all("localhost:0").unwrap();
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count, "{found:?}");
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

/// One thread for calls that may not end, which an open of a FIFO has.
#[test]
fn a_lookup_that_waits_for_a_thread_can_be_left() {
    guarded(|| {
        let builder = Runtime::builder().driver(fibra_io::driver()).workers(1).max_blocking_threads(1);
        builder.build().unwrap().run(|| {
            let folder = Folder::new();
            let path = folder.fifo();
            let opener = spawn({
                let path = path.clone();
                move || File::open(path).map(drop)
            });
            until(|| timeout(SHORT, || lookup_host("localhost:80").map(drop)).is_err());
            let _other_end = File::options().read(true).write(true).open(path).unwrap();
            opener.join().unwrap().unwrap();
            assert!(lookup_host("localhost:80").is_ok());
        });
    });
}
