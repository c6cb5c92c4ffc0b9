//! What races, waits that are left and files leave behind: nothing. Alone in its binary, because descriptors are counted.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;
#[path = "common/refused.rs"]
mod refused;
#[path = "common/silent.rs"]
mod silent;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use common::sides::guarded;
use common::{descriptors, listener, runtime, until};
use fibra_io::fs::File;
use fibra_io::io::copy_bidirectional;
use fibra_io::net::TcpStream;
use fibra_runtime::{scope, timeout};
use refused::refused;
use silent::Silent;

/// Races that are won, lost and left.
fn races(silent: SocketAddr) {
    let (listener, address) = listener();
    // At once, for each of them waits.
    scope(|tasks| {
        for _ in 0..3 {
            tasks.spawn(|| drop(TcpStream::connect(&[silent, silent, address][..]).unwrap()));
        }
        for millis in [1, 10, 100, 260, 300] {
            let race = move || TcpStream::connect(&[silent; 3][..]).map(drop);
            tasks.spawn(move || assert!(timeout(Duration::from_millis(millis), race).is_err()));
        }
        (0..3).for_each(|_| drop(listener.accept().unwrap()));
    });
    assert!(TcpStream::connect(&[refused(), refused()][..]).is_err());
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
        let silent = Silent::new();
        runtime(2).run(|| {
            // The first round makes what the runtime needs.
            let counts = [(); 3].map(|()| {
                races(silent.address);
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
