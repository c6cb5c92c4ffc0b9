//! A process that runs out of descriptors: alone in its binary, because the limit is the process's.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::sides::beside;
use common::{descriptors, everywhere, listener, nap, read_all, until};
use fibra_io::io::pipe;
use fibra_io::net::{TcpStream, UnixDatagram, UnixStream};

/// Has the test that asks run alone, so that nothing else opens descriptors beside it.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Opens files until the process has no descriptor left.
fn hoard() -> Vec<File> {
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    hoard
}

/// Sends four writers of a pipe to a process that has room for two of them.
fn receive_too_many(
    send: impl FnOnce(&[BorrowedFd<'_>]) -> io::Result<usize>,
    receive: impl FnOnce(&mut Vec<OwnedFd>) -> io::Result<usize>,
) {
    let (reader, writer) = pipe().unwrap();
    send(&[writer.as_fd(); 4]).unwrap();
    drop(writer);
    leave(32);
    let mut hoard = hoard();
    hoard.truncate(hoard.len() - 2);
    let mut fds = Vec::new();
    assert_eq!(receive(&mut fds).unwrap(), 5, "the bytes come whole");
    assert_eq!(fds.len(), 2);
    drop((hoard, fds));
    leave(1000);
    // The end comes when none of the four is open any more.
    assert!(read_all(reader).is_empty());
}

#[test]
fn descriptors_that_find_no_room_are_closed_and_none_leaks() {
    let _alone = alone();
    everywhere(|| {
        let (here, there) = UnixStream::pair().unwrap();
        let (to, from) = UnixDatagram::pair().unwrap();
        let before = descriptors();
        receive_too_many(
            |fds| here.send_with_fds(b"bytes", fds),
            |fds| there.recv_with_fds(&mut [0; 8], fds),
        );
        receive_too_many(|fds| to.send_with_fds(b"bytes", fds), |fds| from.recv_with_fds(&mut [0; 8], fds));
        assert_eq!(descriptors(), before);
    });
}

#[test]
fn accept_survives_descriptor_exhaustion() {
    let _alone = alone();
    everywhere(|| {
        let (listener, address) = listener();
        // Connected while there is room, accepted when there is none.
        let mut clients: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
        leave(32);
        let hoard = hoard();
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
        // It pauses after each, so it does not spin, and this task ran meanwhile.
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
