//! Streams of the Unix family keep the promises of std's, in plain threads and in tasks.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::abstract_name::abstract_address;
use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, runtime, until};
use crate::folder::Folder;
use fibra_io::os::linux::net::SocketAddrExt;
use fibra_io::os::unix::net::{Incoming, SocketAddr, UnixListener, UnixStream};
use fibra_runtime::{Runtime, spawn};

fn ends() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

fn listener() -> (Folder, PathBuf, UnixListener) {
    let folder = Folder::new();
    let path = folder.file("sock");
    let listener = UnixListener::bind(&path).unwrap();
    (folder, path, listener)
}

// ---- std's own scenarios ----

#[test]
fn sock_addr_from_pathname() {
    let address = SocketAddr::from_pathname("/path/to/socket").unwrap();
    assert_eq!(address.as_pathname(), Some(Path::new("/path/to/socket")));
}

#[test]
fn basic() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(&*path));
        let server = beside(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            assert!(peer.is_unnamed());
            let mut buf = [0; 5];
            stream.read_exact(&mut buf).unwrap();
            assert_eq!(&buf, b"hello");
            stream.write_all(b"world!").unwrap();
        });
        let mut stream = UnixStream::connect(&path).unwrap();
        assert_eq!(stream.peer_addr().unwrap().as_pathname(), Some(&*path));
        stream.write_all(b"hello").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"world!");
        server.join();
    });
}

#[test]
fn vectored() {
    everywhere(|| {
        let (mut here, mut there) = ends();
        let bufs = [b"hello".as_slice(), b" ", b"world!"].map(IoSlice::new);
        assert_eq!(here.write_vectored(&bufs).unwrap(), 12);
        let (mut one, mut other) = ([0; 6], [0; 7]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
        assert_eq!(there.read_vectored(&mut bufs).unwrap(), 12);
        assert_eq!((&one, &other), (b"hello ", b"world!\0"));
    });
}

#[test]
fn pair() {
    everywhere(|| {
        let (mut here, mut there) = ends();
        assert!(here.local_addr().unwrap().is_unnamed() && there.peer_addr().unwrap().is_unnamed());
        let other = beside(move || {
            let mut buf = [0; 5];
            here.read_exact(&mut buf).unwrap();
            assert_eq!(&buf, b"hello");
            here.write_all(b"world!").unwrap();
        });
        there.write_all(b"hello").unwrap();
        let mut answer = Vec::new();
        there.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"world!");
        other.join();
    });
}

#[test]
fn try_clone() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        let server = beside(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(b"hello").unwrap();
            stream.write_all(b"world").unwrap();
        });
        let mut stream = UnixStream::connect(path).unwrap();
        let mut clone = stream.try_clone().unwrap();
        let mut buf = [0; 5];
        stream.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"hello");
        clone.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"world");
        server.join();
    });
}

#[test]
fn iter() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        let server = beside(move || {
            let mut count = 0;
            for stream in listener.incoming().take(2).chain((&listener).into_iter().take(1)) {
                stream.unwrap().read_exact(&mut [0]).unwrap();
                count += 1;
            }
            count
        });
        for _ in 0..3 {
            UnixStream::connect(&path).unwrap().write_all(&[0]).unwrap();
        }
        assert_eq!(server.join(), 3);
    });
}

#[test]
fn long_path() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file(&"a".repeat(108));
        assert_eq!(kind(UnixStream::connect(&path)), ErrorKind::InvalidInput);
        assert_eq!(kind(UnixListener::bind(&path)), ErrorKind::InvalidInput);
    });
}

#[test]
fn timeouts() {
    everywhere(|| {
        let (stream, _other) = ends();
        let long = Some(Duration::from_secs(15410));
        assert_eq!((stream.read_timeout().unwrap(), stream.write_timeout().unwrap()), (None, None));
        stream.set_read_timeout(long).unwrap();
        assert_eq!((stream.read_timeout().unwrap(), stream.write_timeout().unwrap()), (long, None));
        stream.set_write_timeout(long).unwrap();
        stream.set_read_timeout(None).unwrap();
        assert_eq!((stream.read_timeout().unwrap(), stream.write_timeout().unwrap()), (None, long));
        stream.set_write_timeout(None).unwrap();
        assert_eq!(stream.write_timeout().unwrap(), None);
    });
}

#[test]
fn test_read_timeout() {
    everywhere(|| {
        let (mut stream, _other) = ends();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let start = Instant::now();
        assert_eq!(kind(stream.read_exact(&mut [0; 10])), ErrorKind::WouldBlock);
        assert_eq!(kind(stream.peek(&mut [0; 10])), ErrorKind::WouldBlock);
        assert!(start.elapsed() >= Duration::from_millis(100));
    });
}

#[test]
fn test_read_with_timeout() {
    everywhere(|| {
        let (mut stream, mut other) = ends();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        for _ in 0..2 {
            other.write_all(b"hello world").unwrap();
            let mut buf = [0; 11];
            stream.read_exact(&mut buf).unwrap();
            assert_eq!(&buf, b"hello world");
            assert_eq!(kind(stream.read(&mut buf)), ErrorKind::WouldBlock);
        }
    });
}

#[test]
fn test_write_timeout() {
    everywhere(|| {
        let (mut stream, mut other) = ends();
        stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let buf = vec![0; 1 << 16];
        let error = loop {
            if let Err(error) = stream.write(&buf) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let reader = beside(move || {
            let mut buf = vec![0; 1 << 20];
            while other.read(&mut buf).unwrap() > 0 {}
        });
        // Longer than the reader may be held up.
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&buf).unwrap();
        drop(stream);
        reader.join();
    });
}

#[test]
fn test_unix_stream_timeout_zero_duration() {
    everywhere(|| {
        let (stream, _other) = ends();
        assert_eq!(kind(stream.set_write_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(kind(stream.set_read_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
    });
}

#[test]
fn abstract_namespace_not_allowed_connect() {
    everywhere(|| assert_eq!(kind(UnixStream::connect("\0asdf")), ErrorKind::InvalidInput));
}

#[test]
fn test_abstract_stream_connect() {
    everywhere(|| {
        let address = abstract_address();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let server = beside(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut buf = [0; 5];
            stream.read_exact(&mut buf).unwrap();
            assert_eq!(&buf, b"hello");
            stream.write_all(b"world").unwrap();
        });
        let mut stream = UnixStream::connect_addr(&address).unwrap();
        let peer = stream.peer_addr().unwrap();
        assert_eq!(peer.as_abstract_name(), address.as_abstract_name());
        stream.write_all(b"hello").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"world");
        server.join();
    });
}

#[test]
fn test_abstract_stream_iter() {
    everywhere(|| {
        let address = abstract_address();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let server = beside(move || {
            for stream in listener.incoming().take(2) {
                stream.unwrap().read_exact(&mut [0]).unwrap();
            }
        });
        for _ in 0..2 {
            UnixStream::connect_addr(&address).unwrap().write_all(&[0]).unwrap();
        }
        server.join();
    });
}

#[test]
fn test_unix_stream_peek() {
    everywhere(|| {
        let (mut stream, mut other) = ends();
        let writer = beside(move || {
            nap(5);
            other.write_all(&[1, 3, 3, 7]).unwrap();
            other
        });
        let mut buf = [0; 10];
        for _ in 0..2 {
            assert_eq!(stream.peek(&mut buf).unwrap(), 4);
        }
        assert_eq!(stream.read(&mut buf).unwrap(), 4);
        stream.set_nonblocking(true).unwrap();
        assert_eq!(kind(stream.peek(&mut buf)), ErrorKind::WouldBlock);
        drop(writer.join());
        assert_eq!(stream.peek(&mut buf).unwrap(), 0);
    });
}

// ---- what std's docs say beside ----

#[test]
fn debug() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        let text = format!("{listener:?}");
        assert!(text.starts_with("UnixListener { fd: "), "{text}");
        assert!(text.ends_with(&format!(", local: {path:?} (pathname) }}")), "{text}");
        let stream = UnixStream::connect(&path).unwrap();
        let text = format!("{stream:?}");
        assert!(text.starts_with("UnixStream { fd: "), "{text}");
        assert!(text.ends_with(&format!(", local: (unnamed), peer: {path:?} (pathname) }}")), "{text}");
        assert!(format!("{:?}", listener.incoming()).starts_with("Incoming { listener: UnixListener"));
    });
}

#[test]
fn connect_and_bind_tell_what_is_wrong() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        assert_eq!(kind(UnixListener::bind(&path)), ErrorKind::AddrInUse);
        drop(listener);
        assert_eq!(kind(UnixStream::connect(&path)), ErrorKind::ConnectionRefused);
        assert_eq!(kind(UnixStream::connect(path.with_extension("not"))), ErrorKind::NotFound);
    });
}

#[test]
fn set_nonblocking() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock);
        let mut client = UnixStream::connect(path).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock);
        server.write_all(&[1]).unwrap();
        until(|| client.read(&mut [0; 8]).is_ok());
        client.set_nonblocking(false).unwrap();
        let writer = beside(move || server.write_all(&[2]).unwrap());
        assert_eq!(client.read(&mut [0]).unwrap(), 1);
        writer.join();
        assert!(listener.take_error().unwrap().is_none() && client.take_error().unwrap().is_none());
    });
}

#[test]
fn buffers_have_sizes() {
    everywhere(|| {
        let (stream, _other) = ends();
        stream.set_send_buffer_size(20_000).unwrap();
        assert!(stream.send_buffer_size().unwrap() >= 20_000);
        stream.set_recv_buffer_size(20_000).unwrap();
        assert!(stream.recv_buffer_size().unwrap() >= 20_000);
    });
}

#[test]
fn a_transfer_that_fills_every_buffer_on_the_way() {
    const LEN: usize = 4 << 20;
    everywhere(|| {
        let (mut here, mut there) = ends();
        let sent: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
        let expected = sent.clone();
        let writer = beside(move || here.write_all(&sent).unwrap());
        let mut read = Vec::new();
        there.read_to_end(&mut read).unwrap();
        assert!(read == expected);
        writer.join();
    });
}

// ---- the ends of a connection ----

#[test]
fn shutdown_wakes_a_sleeping_reader_of_a_clone() {
    everywhere(|| {
        let (stream, _other) = ends();
        let mut clone = stream.try_clone().unwrap();
        let reader = beside(move || clone.read(&mut [0]).unwrap());
        nap(5);
        stream.shutdown(Shutdown::Read).unwrap();
        assert_eq!(reader.join(), 0);
    });
}

#[test]
fn shutdown_wakes_a_sleeping_writer_of_a_clone() {
    everywhere(|| {
        let (stream, _other) = ends();
        let mut clone = stream.try_clone().unwrap();
        let writer = beside(move || kind(clone.write_all(&vec![0; 4 << 20])));
        nap(5);
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(writer.join(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_peer_that_reads_no_more_wakes_a_sleeping_writer() {
    everywhere(|| {
        let (mut stream, other) = ends();
        let writer = beside(move || kind(stream.write_all(&vec![0; 4 << 20])));
        nap(5);
        other.shutdown(Shutdown::Read).unwrap();
        assert_eq!(writer.join(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_drop_wakes_the_other_end() {
    everywhere(|| {
        let (mut reading, other) = ends();
        let reader = beside(move || reading.read(&mut [0]).unwrap());
        nap(5);
        drop(other);
        assert_eq!(reader.join(), 0);
        let (mut writing, other) = ends();
        let writer = beside(move || kind(writing.write_all(&vec![0; 4 << 20])));
        nap(5);
        drop(other);
        assert!(matches!(writer.join(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
    });
}

#[test]
fn data_and_end_that_come_before_the_first_read() {
    everywhere(|| {
        let (mut here, mut there) = ends();
        there.write_all(b"last words").unwrap();
        drop(there);
        let mut words = String::new();
        here.read_to_string(&mut words).unwrap();
        assert_eq!(words, "last words");
        assert_eq!(here.read(&mut [0]).unwrap(), 0);
    });
}

/// A read stops at a message that descriptors were sent along with, although more lies behind it.
#[test]
fn data_behind_a_sent_descriptor_is_read() {
    everywhere(|| {
        let (mut here, mut there) = ends();
        // Registered, so that a read that found too little would sleep.
        let reader = beside(move || {
            let mut all = Vec::new();
            let mut buf = [0; 64];
            while all.len() < 9 {
                let n = here.read(&mut buf).unwrap();
                all.extend_from_slice(&buf[..n]);
            }
            all
        });
        nap(5);
        there.write_all(b"one").unwrap();
        send_with_descriptor(&there, b"two");
        there.write_all(b"six").unwrap();
        assert_eq!(reader.join(), b"onetwosix");
    });
}

/// Sends the bytes with the descriptor of the stream itself beside them.
fn send_with_descriptor(stream: &UnixStream, bytes: &[u8]) {
    // A header and one descriptor, aligned as a header has to be.
    let mut control = [0_usize; 4];
    // SAFETY: all zeroes is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: a computation without side effects.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as _;
    assert!(message.msg_controllen as usize <= size_of_val(&control));
    // SAFETY: the control buffer has room for a header with four bytes of data, and all of it is initialised; the
    // descriptor is open; all that the message points to outlives the call.
    let sent = unsafe {
        let header = &mut *libc::CMSG_FIRSTHDR(&message);
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        header.cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(stream.as_raw_fd());
        libc::sendmsg(stream.as_raw_fd(), &message, 0)
    };
    assert_eq!(usize::try_from(sent).unwrap(), bytes.len());
}

#[test]
fn an_accept_fails_at_its_deadline() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        let deadline = Instant::now() + Duration::from_millis(40);
        listener.set_accept_deadline(Some(deadline));
        assert_eq!(listener.try_clone().unwrap().accept_deadline(), Some(deadline));
        assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock);
        assert!(Instant::now() >= deadline);
        let _client = UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
    });
}

// ---- changing hands ----

#[test]
fn streams_and_listeners_change_into_std_and_back() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        listener.set_nonblocking(true).unwrap();
        let std = std::os::unix::net::UnixListener::from(listener);
        assert_eq!(kind(std.accept()), ErrorKind::WouldBlock);
        std.set_nonblocking(false).unwrap();
        // SAFETY: the descriptor comes from `into_raw_fd`, so it is open and ours alone.
        let listener = unsafe { UnixListener::from_raw_fd(std.into_raw_fd()) };
        let acceptor = beside(move || listener.accept().unwrap().0);
        nap(5);
        let client = UnixStream::connect(path).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(7))).unwrap();
        let mut std = std::os::unix::net::UnixStream::from(client);
        assert!(!socket2::SockRef::from(&std).nonblocking().unwrap());
        std.write_all(&[1]).unwrap();
        acceptor.join().read_exact(&mut [0]).unwrap();
        let back = UnixStream::from(OwnedFd::from(UnixStream::from(std)));
        assert_eq!(back.read_timeout().unwrap(), Some(Duration::from_secs(7)));
        // SAFETY: as above.
        let mut back = unsafe { UnixStream::from_raw_fd(back.into_raw_fd()) };
        assert_eq!(back.read(&mut [0]).unwrap(), 0);
    });
}

/// Never called: the markers and traits are what is tested.
#[expect(dead_code, reason = "it is there to be compiled")]
fn the_types_are_as_usable_as_those_of_std() {
    fn movable<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + std::fmt::Debug + 'static>() {}
    movable::<UnixStream>();
    movable::<UnixListener>();
    movable::<Incoming<'static>>();
    fn readable<T: Read + Write>() {}
    readable::<UnixStream>();
    readable::<&UnixStream>();
    fn endless<T: std::iter::FusedIterator>() {}
    endless::<Incoming<'static>>();
}

// ---- tasks ----

#[test]
fn many_tasks_share_one_listener_and_many_clients_come() {
    everywhere(|| {
        let (_folder, path, listener) = listener();
        let listener = Arc::new(listener);
        let servers: Vec<_> = (0..8)
            .map(|_| {
                let listener = Arc::clone(&listener);
                beside(move || {
                    for _ in 0..5 {
                        let (mut stream, _) = listener.accept().unwrap();
                        let mut buf = [0];
                        stream.read_exact(&mut buf).unwrap();
                        stream.write_all(&buf).unwrap();
                    }
                })
            })
            .collect();
        let clients: Vec<_> = (0..40)
            .map(|number: u8| {
                let path = path.clone();
                beside(move || {
                    let mut stream = UnixStream::connect(path).unwrap();
                    stream.write_all(&[number]).unwrap();
                    let mut buf = [0];
                    stream.read_exact(&mut buf).unwrap();
                    assert_eq!(buf, [number]);
                })
            })
            .collect();
        clients.into_iter().chain(servers).for_each(|side| side.join());
    });
}

#[test]
fn clones_turned_blocking_elsewhere_do_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (_folder, path, listener) = listener();
            let elsewhere =
                std::os::unix::net::UnixListener::from(listener.as_fd().try_clone_to_owned().unwrap());
            elsewhere.set_nonblocking(false).unwrap();
            let server = spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                let fd = stream.as_fd().try_clone_to_owned().unwrap();
                std::os::unix::net::UnixStream::from(fd).set_nonblocking(false).unwrap();
                stream.read_exact(&mut [0]).unwrap();
            });
            fibra_runtime::yield_now();
            let mut client = UnixStream::connect(path).unwrap();
            fibra_runtime::yield_now();
            client.write_all(&[1]).unwrap();
            server.join().unwrap();
        });
    });
}

#[test]
fn a_cancelled_reader_unwinds_and_closes_its_stream() {
    in_tasks(|| {
        let (mut here, mut there) = ends();
        let reader = spawn(move || here.read(&mut [0]).unwrap());
        nap(5);
        reader.task().cancel();
        assert!(reader.join().unwrap_err().is_cancelled());
        assert_eq!(there.read(&mut [0]).unwrap(), 0);
    });
}

/// One worker and no reactor: the waits go to the blocking pool, and the worker runs on.
#[test]
fn a_runtime_without_the_driver_waits_on_the_pool() {
    guarded(|| {
        Runtime::builder().workers(1).build().unwrap().run(|| {
            let (_folder, path, listener) = listener();
            let server = spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                let mut buf = [0];
                stream.read_exact(&mut buf).unwrap();
                stream.write_all(&buf).unwrap();
            });
            let mut client = UnixStream::connect(path).unwrap();
            client.write_all(&[7]).unwrap();
            let mut buf = [0];
            client.read_exact(&mut buf).unwrap();
            assert_eq!(buf, [7]);
            server.join().unwrap();
        });
    });
}
