//! What races, waits that are left and files leave behind: nothing. Alone in its binary, because descriptors are counted.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use common::sides::guarded;
use common::{descriptors, listener, runtime, until};
use fibra_io::fs::File;
use fibra_io::io::copy_bidirectional;
use fibra_io::net::TcpStream;
use fibra_runtime::{scope, timeout};

/// A listener whose queue is full, with those that fill it.
fn silent() -> (socket2::Socket, Vec<std::net::TcpStream>, SocketAddr) {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok();
    let queue = std::iter::from_fn(connect).collect();
    (listener, queue, address)
}

/// Races that are won, lost and left.
fn races(silent: SocketAddr) {
    let (listener, address) = listener();
    for _ in 0..3 {
        drop(TcpStream::connect(&[silent, silent, address][..]).unwrap());
        listener.accept().unwrap();
    }
    drop(listener);
    for millis in [1, 10, 100, 260, 300] {
        let race = || TcpStream::connect(&[silent; 3][..]).map(drop);
        assert!(timeout(Duration::from_millis(millis), race).is_err());
    }
    assert!(TcpStream::connect(&[address, address][..]).is_err());
}

/// Copies that end, and copies that are left.
fn copies() {
    for left in [false, true] {
        let ((mut client, a), (b, mut server)) = (common::pair(), common::pair());
        scope(|tasks| {
            let proxy = tasks.spawn(move || copy_bidirectional(&a, &b));
            client.write_all(b"request").unwrap();
            server.read_exact(&mut [0; 7]).unwrap();
            match left {
                true => proxy.cancel(),
                false => drop((client, server)),
            }
            assert_eq!(proxy.join().is_err(), left);
        });
    }
}

fn files() {
    let file = File::open("/proc/self/exe").unwrap();
    let clone = file.try_clone().unwrap();
    (&clone).read_exact(&mut [0; 100]).unwrap();
    let null = File::options().write(true).open("/dev/null").unwrap();
    assert!(file.copy_to(&null).unwrap() > 0);
    (0..100).for_each(|_| drop(timeout(Duration::from_micros(20), || File::open("/dev/zero").map(drop))));
}

#[test]
fn nothing_stays_open() {
    guarded(|| {
        let (_listener, _queue, silent) = silent();
        runtime(2).run(|| {
            // The first round makes what the runtime needs.
            let counts = [(); 3].map(|()| {
                races(silent);
                copies();
                descriptors()
            });
            assert_eq!(counts[0], counts[1]);
            assert_eq!(counts[1], counts[2]);
            // What was to be opened when it was left is closed once it is open.
            files();
            until(|| descriptors() <= counts[2]);
        });
    });
}
