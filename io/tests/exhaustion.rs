//! A process that runs out of descriptors: alone in its binary, because the limit is the process's.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::sides::beside;
use common::{descriptors, everywhere, listener, nap, until};
use fibra_io::net::TcpStream;

/// Lets the process open so many more descriptors than it has now.
fn leave(more: libc::rlim_t) {
    let open = descriptors() as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: open + more, rlim_max: hard_limit() };
    // SAFETY: the limit is a valid structure that outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

fn hard_limit() -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable and outlives the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_max
}

/// One test, so that nothing else opens descriptors beside it.
#[test]
fn accept_survives_descriptor_exhaustion() {
    everywhere(|| {
        let (listener, address) = listener();
        // Connected while there is room, accepted when there is none.
        let mut clients: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
        leave(32);
        let mut hoard = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            hoard.push(file);
        }
        let failures = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let server = {
            let failures = Arc::clone(&failures);
            beside(move || {
                let mut streams = Vec::new();
                while streams.len() < 4 {
                    match listener.accept() {
                        Ok((stream, _)) => streams.push(stream),
                        Err(error) => {
                            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                            failures.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                }
                streams
            })
        };
        until(|| failures.load(Ordering::SeqCst) >= 8);
        // 1 + 2 + 4 + 8 + 16 + 16 + 16 milliseconds, so it does not spin, and this task ran meanwhile.
        assert!(start.elapsed() >= Duration::from_millis(60), "{:?}", start.elapsed());
        drop(hoard);
        let mut streams = server.join();
        leave(1000);
        nap(1);
        for (client, server) in clients.iter_mut().zip(&mut streams) {
            server.write_all(&[1]).unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
    });
}
