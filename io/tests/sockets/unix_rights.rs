//! Descriptors that are sent along with bytes, and the credentials of the peer.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::abstract_name::abstract_address;
use crate::common::sides::beside;
use crate::common::{everywhere, in_tasks, kind, nap, read_all};
use crate::folder::Folder;
use fibra_io::io::{PipeWriter, pipe};
use fibra_io::net::{UnixDatagram, UnixStream};
use fibra_runtime::timeout;

/// The sockets that descriptors go through.
trait Carrier: AsFd + Send + Sized + 'static {
    fn pair() -> (Self, Self);
    fn send(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize>;
    fn receive(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize>;
    fn send_plain(&self, buf: &[u8]) -> io::Result<usize>;
    fn receive_plain(&self, buf: &mut [u8]) -> io::Result<usize>;
}

impl Carrier for UnixStream {
    fn pair() -> (Self, Self) {
        UnixStream::pair().unwrap()
    }

    fn send(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        self.send_with_fds(buf, fds)
    }

    fn receive(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        self.recv_with_fds(buf, fds)
    }

    fn send_plain(&self, buf: &[u8]) -> io::Result<usize> {
        let mut stream = self;
        stream.write(buf)
    }

    fn receive_plain(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut stream = self;
        stream.read(buf)
    }
}

impl Carrier for UnixDatagram {
    fn pair() -> (Self, Self) {
        UnixDatagram::pair().unwrap()
    }

    fn send(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        self.send_with_fds(buf, fds)
    }

    fn receive(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        self.recv_with_fds(buf, fds)
    }

    fn send_plain(&self, buf: &[u8]) -> io::Result<usize> {
        UnixDatagram::send(self, buf)
    }

    fn receive_plain(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.recv(buf)
    }
}

/// Keeps a promise of one socket type everywhere, then of the other.
macro_rules! of_both {
    ($promise:ident) => {
        everywhere($promise::<UnixStream>);
        everywhere($promise::<UnixDatagram>);
    };
}

#[test]
fn descriptors_come_with_their_bytes() {
    fn promise<C: Carrier>() {
        for count in [1, 2, 7] {
            let (here, there) = C::pair();
            let receiver = beside(move || {
                let (mut buf, mut fds) = ([0; 8], Vec::new());
                let n = there.receive(&mut buf, &mut fds).unwrap();
                let writers = fds.into_iter().map(PipeWriter::from);
                writers.zip(1..).for_each(|(mut writer, byte)| writer.write_all(&[byte]).unwrap());
                buf[..n].to_vec()
            });
            nap(2);
            let (readers, writers): (Vec<_>, Vec<_>) = (0..count).map(|_| pipe().unwrap()).unzip();
            let fds: Vec<_> = writers.iter().map(AsFd::as_fd).collect();
            assert_eq!(here.send(b"two", &fds).unwrap(), 3);
            drop(writers);
            assert_eq!(receiver.join(), b"two");
            // All that could write is closed when the receiver has ended, so each reader comes to its end.
            readers.into_iter().zip(1..).for_each(|(reader, byte)| assert_eq!(read_all(reader), [byte]));
        }
    }
    of_both!(promise);
}

#[test]
fn bytes_come_without_descriptors() {
    fn promise<C: Carrier>() {
        let (here, there) = C::pair();
        let (mut buf, mut fds) = ([0; 8], Vec::new());
        here.send(b"none", &[]).unwrap();
        assert_eq!(there.receive(&mut buf, &mut fds).unwrap(), 4);
        here.send_plain(b"plain").unwrap();
        assert_eq!(there.receive(&mut buf, &mut fds).unwrap(), 5);
        assert!(&buf[..5] == b"plain" && fds.is_empty());
    }
    of_both!(promise);
}

#[test]
fn a_plain_receive_closes_the_descriptors_of_its_bytes() {
    fn promise<C: Carrier>() {
        let (here, there) = C::pair();
        let (reader, writer) = pipe().unwrap();
        here.send(b"x", &[writer.as_fd()]).unwrap();
        drop(writer);
        assert_eq!(there.receive_plain(&mut [0; 8]).unwrap(), 1);
        assert!(read_all(reader).is_empty());
    }
    of_both!(promise);
}

#[test]
fn descriptors_that_were_never_received_are_closed_with_the_socket() {
    fn promise<C: Carrier>() {
        let (here, there) = C::pair();
        let (reader, writer) = pipe().unwrap();
        here.send(b"x", &[writer.as_fd()]).unwrap();
        drop((writer, there));
        assert!(read_all(reader).is_empty());
    }
    of_both!(promise);
}

#[test]
fn descriptors_of_two_messages_are_kept_apart() {
    everywhere(|| {
        let (here, there) = UnixStream::pair().unwrap();
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
fn descriptors_go_to_addresses_and_come_with_the_sender() {
    everywhere(|| {
        let folder = Folder::new();
        let paths = ["receiver", "sender"].map(|name| folder.file(name));
        let [receiver, sender] = paths.each_ref().map(|path| UnixDatagram::bind(path).unwrap());
        let by_name = UnixDatagram::bind_addr(&abstract_address()).unwrap();
        let fd = sender.as_fd();
        let (mut buf, mut fds) = ([0; 8], Vec::new());

        assert_eq!(sender.send_with_fds_to(b"path", &[fd], &paths[0]).unwrap(), 4);
        let (len, from) = receiver.recv_with_fds_from(&mut buf, &mut fds).unwrap();
        assert_eq!((&buf[..len], from.as_pathname(), fds.len()), (&b"path"[..], Some(&*paths[1]), 1));

        let name = by_name.local_addr().unwrap();
        assert_eq!(sender.send_with_fds_to_addr(b"name", &[fd; 2], &name).unwrap(), 4);
        let (len, from) = by_name.recv_with_fds_from(&mut buf, &mut fds).unwrap();
        assert_eq!((&buf[..len], from.as_pathname(), fds.len()), (&b"name"[..], Some(&*paths[1]), 3));

        by_name.send_with_fds_to_addr(b"", &[fd], &from).unwrap();
        let (len, from) = sender.recv_with_fds_from(&mut buf, &mut fds).unwrap();
        assert_eq!((len, format!("{from:?}"), fds.len()), (0, format!("{name:?}"), 4));

        UnixDatagram::unbound().unwrap().send_with_fds_to(b"unnamed", &[], &paths[0]).unwrap();
        let (len, from) = receiver.recv_with_fds_from(&mut buf, &mut fds).unwrap();
        assert!(len == 7 && from.is_unnamed() && fds.len() == 4);

        let missing = folder.file("missing");
        assert_eq!(kind(sender.send_with_fds_to(b"x", &[fd], &missing)), ErrorKind::NotFound);
        assert_eq!(kind(sender.send_with_fds_to(b"x", &[fd], "\0name")), ErrorKind::InvalidInput);
        assert_eq!(kind(sender.send_with_fds_to(b"x", &[fd; 254], &paths[0])), ErrorKind::InvalidInput);
        assert_eq!(kind(sender.send_with_fds(b"x", &[fd])), ErrorKind::NotConnected);
    });
}

#[test]
fn a_message_that_is_cut_off_keeps_its_descriptors() {
    everywhere(|| {
        let (here, there) = UnixDatagram::pair().unwrap();
        here.send_with_fds(b"longer", &[here.as_fd(); 2]).unwrap();
        here.send(b"next").unwrap();
        let (mut buf, mut fds) = ([0; 4], Vec::new());
        assert_eq!(there.recv_with_fds(&mut buf, &mut fds).unwrap(), 4);
        assert_eq!((&buf, fds.len()), (b"long", 2));
        assert_eq!(there.recv_with_fds(&mut buf, &mut fds).unwrap(), 4);
        assert_eq!((&buf, fds.len()), (b"next", 2));
    });
}

#[test]
fn a_message_with_descriptors_waits_for_room() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        let fill = |send: &dyn Fn() -> io::Result<usize>| {
            sender.set_nonblocking(true).unwrap();
            let sent = (0..).take_while(|_| send().is_ok()).count();
            sender.set_nonblocking(false).unwrap();
            sent
        };
        let fd = receiver.as_fd();
        let full = fill(&|| sender.send_with_fds_to(b"x", &[fd], &path));
        assert!(full > 0);
        let emptier = {
            let receiver = receiver.try_clone().unwrap();
            beside(move || {
                nap(5);
                let mut fds = Vec::new();
                (0..=full).for_each(|_| _ = receiver.recv_with_fds(&mut [0], &mut fds).unwrap());
                fds.len()
            })
        };
        sender.send_with_fds_to(b"x", &[fd], &path).unwrap();
        assert_eq!(emptier.join(), full + 1);

        sender.connect(&path).unwrap();
        let full = fill(&|| sender.send_with_fds(b"x", &[fd]));
        let emptier = beside(move || {
            nap(5);
            let mut fds = Vec::new();
            (0..=full).for_each(|_| _ = receiver.recv_with_fds(&mut [0], &mut fds).unwrap());
            fds.len()
        });
        sender.send_with_fds(b"x", &[sender.as_fd()]).unwrap();
        assert_eq!(emptier.join(), full + 1);
    });
}

#[test]
fn a_child_does_not_inherit_what_came() {
    fn promise<C: Carrier>() {
        let (here, there) = C::pair();
        here.send(b"x", &[here.as_fd()]).unwrap();
        let mut fds = Vec::new();
        there.receive(&mut [0], &mut fds).unwrap();
        // SAFETY: the descriptor is open, and the call touches no memory.
        let flags = unsafe { libc::fcntl(fds[0].as_raw_fd(), libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    }
    of_both!(promise);
}

#[test]
fn what_cannot_be_sent_along_is_refused() {
    fn promise<C: Carrier>() {
        let (here, there) = C::pair();
        let fd: BorrowedFd<'_> = here.as_fd();
        assert_eq!(kind(here.send(b"x", &[fd; 254])), ErrorKind::InvalidInput);
        assert_eq!(here.send(b"x", &[fd; 253]).unwrap(), 1);
        let mut fds = Vec::new();
        assert_eq!(there.receive(&mut [0; 8], &mut fds).unwrap(), 1);
        assert_eq!(fds.len(), 253);
    }
    of_both!(promise);
}

#[test]
fn a_stream_sends_no_descriptors_without_bytes() {
    everywhere(|| {
        let (here, there) = UnixStream::pair().unwrap();
        assert_eq!(kind(here.send_with_fds(b"", &[here.as_fd()])), ErrorKind::InvalidInput);
        drop(here);
        assert_eq!(there.recv_with_fds(&mut [0; 8], &mut Vec::new()).unwrap(), 0);
    });
}

#[test]
fn a_wait_for_descriptors_that_is_ended_has_taken_none() {
    fn promise<C: Carrier>() {
        let (here, there) = C::pair();
        let mut fds: Vec<OwnedFd> = Vec::new();
        let mut receive = || there.receive(&mut [0; 8], &mut fds);
        assert!(timeout(Duration::from_millis(2), &mut receive).is_err());
        here.send(b"late", &[here.as_fd()]).unwrap();
        assert_eq!(receive().unwrap(), 4);
        assert_eq!(fds.len(), 1);
    }
    of_both!(promise);
}

#[test]
fn a_shutdown_ends_a_wait_for_a_message_with_descriptors() {
    in_tasks(|| {
        let (_here, there) = UnixDatagram::pair().unwrap();
        let receiver = there.try_clone().unwrap();
        let receiver = beside(move || receiver.recv_with_fds(&mut [0; 8], &mut Vec::new()).unwrap());
        nap(2);
        there.shutdown(std::net::Shutdown::Read).unwrap();
        assert_eq!(receiver.join(), 0);
    });
}

#[test]
fn the_peer_is_the_process_that_connected() {
    everywhere(|| {
        let (here, _there) = UnixStream::pair().unwrap();
        let peer = here.peer_cred().unwrap();
        // SAFETY: the calls only return numbers.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        assert_eq!((peer.uid, peer.gid), (uid, gid));
        if cfg!(target_os = "linux") {
            assert_eq!(peer.pid, i32::try_from(std::process::id()).ok());
        }
    });
}
