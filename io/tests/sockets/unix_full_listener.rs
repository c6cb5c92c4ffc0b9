//! A Unix listener with a full queue, which has room again without an event.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::sides::beside;
use crate::common::{everywhere, in_tasks, kind, nap};
use crate::folder::Folder;
use fibra_io::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use fibra_runtime::spawn;

#[test]
fn a_connect_fails_at_its_deadline() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("sock");
        let (listener, queue) = full_listener(&path);
        let deadline = Instant::now() + Duration::from_millis(150);
        assert_eq!(kind(UnixStream::connect_deadline(&path, deadline)), ErrorKind::TimedOut);
        assert!(Instant::now() >= deadline);
        let address = SocketAddr::from_pathname(&path).unwrap();
        assert_eq!(kind(UnixStream::connect_addr_deadline(&address, deadline)), ErrorKind::TimedOut);
        // There is room, so there is nothing to wait for.
        listener.accept().unwrap();
        let stream = UnixStream::connect_deadline(&path, deadline).unwrap();
        assert_eq!(stream.write_timeout().unwrap(), None);
        assert_eq!(socket2::SockRef::from(&stream).write_timeout().unwrap(), None);
        drop(queue);
    });
}

/// A listener that keeps few connections, and the streams that fill its queue.
fn full_listener(path: &Path) -> (UnixListener, Vec<UnixStream>) {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket.bind(&socket2::SockAddr::unix(path).unwrap()).unwrap();
    socket.listen(1).unwrap();
    let mut queue = Vec::new();
    loop {
        let client = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        client.set_nonblocking(true).unwrap();
        match client.connect(&socket2::SockAddr::unix(path).unwrap()) {
            Ok(()) => queue.push(UnixStream::from(OwnedFd::from(client))),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return (UnixListener::from(OwnedFd::from(socket)), queue);
            }
        }
    }
}

#[test]
fn connect_waits_for_room_in_the_queue_of_the_listener() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("sock");
        let (listener, queue) = full_listener(&path);
        let client = beside(move || {
            let mut stream = UnixStream::connect(path).unwrap();
            assert!(!socket2::SockRef::from(&stream).nonblocking().unwrap());
            assert_eq!(socket2::SockRef::from(&stream).write_timeout().unwrap(), None);
            stream.write_all(b"in").unwrap();
        });
        nap(150);
        let accepted: Vec<_> = listener.incoming().take(queue.len() + 1).map(Result::unwrap).collect();
        let mut word = [0; 2];
        (&accepted[queue.len()]).read_exact(&mut word).unwrap();
        assert_eq!(&word, b"in");
        client.join();
    });
}

#[test]
fn a_listener_that_is_dropped_refuses_waiters_for_room() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("sock");
        let (listener, _queue) = full_listener(&path);
        let client = beside(move || kind(UnixStream::connect(path)));
        nap(50);
        drop(listener);
        assert_eq!(client.join(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_connect_that_waits_for_room_is_cancelled() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.file("sock");
        let (_listener, _queue) = full_listener(&path);
        let client = spawn(move || drop(UnixStream::connect(path).unwrap()));
        nap(20);
        client.task().cancel();
        assert!(client.join().unwrap_err().is_cancelled());
    });
}
