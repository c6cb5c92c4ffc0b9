//! Descriptors that are sent along with bytes, and the credentials of the peer.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::common::sides::beside;
use crate::common::{everywhere, in_tasks, kind, nap};
use fibra_io::net::UnixStream;
use fibra_runtime::timeout;

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

#[test]
fn descriptors_come_with_their_bytes() {
    everywhere(|| {
        let (here, there) = pair();
        let (mut one, sent_one) = pair();
        let (mut two, sent_two) = pair();
        let receiver = beside(move || {
            let (mut buf, mut fds) = ([0; 8], Vec::new());
            let n = there.recv_with_fds(&mut buf, &mut fds).unwrap();
            let streams = fds.into_iter().map(UnixStream::from);
            streams.zip([1, 2]).for_each(|(mut stream, byte)| stream.write_all(&[byte]).unwrap());
            buf[..n].to_vec()
        });
        nap(2);
        assert_eq!(here.send_with_fds(b"two", &[sent_one.as_fd(), sent_two.as_fd()]).unwrap(), 3);
        drop((sent_one, sent_two));
        assert_eq!(receiver.join(), b"two");
        for (stream, byte) in [(&mut one, 1), (&mut two, 2)] {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            assert_eq!(all, [byte]);
        }
    });
}

#[test]
fn descriptors_of_two_messages_are_kept_apart() {
    everywhere(|| {
        let (here, there) = pair();
        let fd = here.as_fd();
        here.send_with_fds(b"one", &[fd]).unwrap();
        here.send_with_fds(b"two", &[fd; 3]).unwrap();
        (&here).write_all(b"plain").unwrap();
        let (mut buf, mut fds) = ([0; 64], Vec::new());
        assert_eq!(there.recv_with_fds(&mut buf, &mut fds).unwrap(), 3);
        assert_eq!((&buf[..3], fds.len()), (&b"one"[..], 1));
        let mut all = Vec::new();
        while all.len() < 8 {
            let n = there.recv_with_fds(&mut buf, &mut fds).unwrap();
            all.extend_from_slice(&buf[..n]);
        }
        assert_eq!((&all[..], fds.len()), (&b"twoplain"[..], 4));
    });
}

#[test]
fn a_child_does_not_inherit_what_came() {
    let (here, there) = pair();
    here.send_with_fds(b"x", &[here.as_fd()]).unwrap();
    let mut fds = Vec::new();
    there.recv_with_fds(&mut [0], &mut fds).unwrap();
    // SAFETY: the descriptor is open, and the call touches no memory.
    let flags = unsafe { libc::fcntl(fds[0].as_raw_fd(), libc::F_GETFD) };
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
}

#[test]
fn what_cannot_be_sent_along_is_refused() {
    everywhere(|| {
        let (here, there) = pair();
        let fd: BorrowedFd<'_> = here.as_fd();
        assert_eq!(kind(here.send_with_fds(b"", &[fd])), ErrorKind::InvalidInput);
        assert_eq!(kind(here.send_with_fds(b"x", &[fd; 254])), ErrorKind::InvalidInput);
        assert_eq!(here.send_with_fds(b"x", &[fd; 253]).unwrap(), 1);
        let mut fds = Vec::new();
        assert_eq!(there.recv_with_fds(&mut [0; 8], &mut fds).unwrap(), 1);
        assert_eq!(fds.len(), 253);
        drop(here);
        fds.clear();
        assert_eq!(there.recv_with_fds(&mut [0; 8], &mut fds).unwrap(), 0);
    });
}

#[test]
fn a_wait_for_descriptors_that_is_ended_has_taken_none() {
    in_tasks(|| {
        let (here, there) = pair();
        let mut fds: Vec<OwnedFd> = Vec::new();
        let mut receive = || there.recv_with_fds(&mut [0; 8], &mut fds);
        assert!(timeout(Duration::from_millis(2), &mut receive).is_err());
        here.send_with_fds(b"late", &[here.as_fd()]).unwrap();
        assert_eq!(receive().unwrap(), 4);
        assert_eq!(fds.len(), 1);
    });
}

#[test]
fn the_peer_is_the_process_that_connected() {
    everywhere(|| {
        let (here, _there) = pair();
        let peer = here.peer_cred().unwrap();
        // SAFETY: the calls only return numbers.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        assert_eq!((peer.uid, peer.gid), (uid, gid));
        if cfg!(target_os = "linux") {
            assert_eq!(peer.pid, i32::try_from(std::process::id()).ok());
        }
    });
}
