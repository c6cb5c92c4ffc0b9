//! Clones of a socket, and sockets that become std's or bare descriptors and come back.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::common::sides::beside;
use crate::common::{everywhere, listener, nap, pair};
use fibra_io::net::{Incoming, IntoIncoming, TcpListener, TcpStream};

// ---- clones ----

#[test]
fn tcp_clone_smoke() {
    everywhere(|| {
        let (client, mut server) = pair();
        let mut clone = client.try_clone().unwrap();
        let writer = beside(move || clone.write_all(&[1]).unwrap());
        let mut buf = [0; 2];
        assert_eq!(server.read(&mut buf).unwrap(), 1);
        writer.join();
        server.write_all(&[2]).unwrap();
        assert_eq!((&client).read(&mut buf).unwrap(), 1);
        assert_eq!(buf[0], 2);
    });
}

#[test]
fn tcp_clone_two_read() {
    everywhere(|| {
        let (mut client, server) = pair();
        let mut readers = Vec::new();
        for mut stream in [server.try_clone().unwrap(), server] {
            readers.push(beside(move || {
                let mut buf = [0];
                stream.read_exact(&mut buf).unwrap();
                buf[0]
            }));
        }
        nap(10);
        client.write_all(&[1]).unwrap();
        nap(10);
        client.write_all(&[2]).unwrap();
        let mut heard: Vec<u8> = readers.into_iter().map(|reader| reader.join()).collect();
        heard.sort();
        assert_eq!(heard, [1, 2]);
    });
}

#[test]
fn tcp_clone_two_write() {
    everywhere(|| {
        let (client, mut server) = pair();
        let mut writers = Vec::new();
        for (i, mut stream) in [client.try_clone().unwrap(), client].into_iter().enumerate() {
            writers.push(beside(move || stream.write_all(&[i as u8]).unwrap()));
        }
        let mut buf = [9; 2];
        server.read_exact(&mut buf).unwrap();
        buf.sort();
        assert_eq!(buf, [0, 1]);
        writers.into_iter().for_each(|writer| writer.join());
    });
}

#[test]
fn clone_while_reading() {
    everywhere(|| {
        let (mut client, server) = pair();
        let mut clone = server.try_clone().unwrap();
        let reader = beside(move || {
            let mut buf = [0; 2];
            clone.read_exact(&mut buf).unwrap();
            buf
        });
        nap(10);
        let mut more: Vec<TcpStream> = (0..5).map(|_| server.try_clone().unwrap()).collect();
        more.truncate(2);
        drop(server);
        client.write_all(&[1]).unwrap();
        nap(10);
        drop(more);
        client.write_all(&[2]).unwrap();
        assert_eq!(reader.join(), [1, 2]);
    });
}

#[test]
fn clone_accept_smoke() {
    everywhere(|| {
        let (listener, address) = listener();
        let clone = listener.try_clone().unwrap();
        let clients =
            beside(move || (TcpStream::connect(address).unwrap(), TcpStream::connect(address).unwrap()));
        listener.accept().unwrap();
        clone.accept().unwrap();
        clients.join();
    });
}

#[test]
fn clone_accept_concurrent() {
    everywhere(|| {
        let (listener, address) = listener();
        let clone = listener.try_clone().unwrap();
        let first = beside(move || drop(listener.accept().unwrap()));
        let second = beside(move || drop(clone.accept().unwrap()));
        nap(10);
        // Whichever acceptor takes the first connection, the other one gets the second.
        let _streams = [TcpStream::connect(address).unwrap(), TcpStream::connect(address).unwrap()];
        first.join();
        second.join();
    });
}

// ---- changing hands ----

#[test]
fn streams_change_into_std_and_back() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        // Used before, so that it is registered.
        let reader = beside(move || {
            server.read_exact(&mut [0]).unwrap();
            server
        });
        nap(10);
        client.write_all(&[1]).unwrap();
        let server = reader.join();
        let mut std = std::net::TcpStream::from(server);
        client.write_all(&[2]).unwrap();
        let mut buf = [0];
        std.read_exact(&mut buf).unwrap();
        assert_eq!(buf, [2]);
        let fd = OwnedFd::from(TcpStream::from(std));
        let raw = TcpStream::from(fd).into_raw_fd();
        // SAFETY: the descriptor comes from `into_raw_fd`, so it is open and ours alone.
        let mut server = unsafe { TcpStream::from_raw_fd(raw) };
        let reader = beside(move || {
            server.read_exact(&mut buf).unwrap();
            buf
        });
        nap(10);
        client.write_all(&[3]).unwrap();
        assert_eq!(reader.join(), [3]);
    });
}

#[test]
fn a_stream_made_of_the_number_of_a_forgotten_one_waits_on_the_same_worker() {
    everywhere(|| {
        let (mut client, server) = pair();
        let reader = beside(move || {
            let mut buf = [0];
            (&server).read_exact(&mut buf).unwrap();
            let raw = server.as_raw_fd();
            std::mem::forget(server);
            // SAFETY: the descriptor is open, and its owner is forgotten.
            let mut server = unsafe { TcpStream::from_raw_fd(raw) };
            server.write_all(&buf).unwrap();
            server.read_exact(&mut buf).unwrap();
            buf
        });
        nap(10);
        client.write_all(&[1]).unwrap();
        client.read_exact(&mut [0]).unwrap();
        nap(10);
        client.write_all(&[2]).unwrap();
        assert_eq!(reader.join(), [2]);
    });
}

#[test]
fn listeners_change_into_std_and_back() {
    everywhere(|| {
        let (listener, address) = listener();
        let std = std::net::TcpListener::from(listener);
        let listener = TcpListener::from(OwnedFd::from(std));
        let raw = listener.into_raw_fd();
        // SAFETY: the descriptor comes from `into_raw_fd`, so it is open and ours alone.
        let listener = unsafe { TcpListener::from_raw_fd(raw) };
        let acceptor = beside(move || drop(listener.accept().unwrap()));
        nap(10);
        TcpStream::connect(address).unwrap();
        acceptor.join();
    });
}

#[test]
fn descriptor_that_is_no_socket_is_an_error() {
    everywhere(|| {
        let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let mut stream = TcpStream::from(null.as_fd().try_clone_to_owned().unwrap());
        assert_eq!(stream.read(&mut [0]).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    });
}

/// Never called: the markers and traits are what is tested.
#[expect(dead_code, reason = "it is there to be compiled")]
fn the_types_are_as_usable_as_those_of_std() {
    fn movable<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + std::fmt::Debug + 'static>() {}
    fn endless<T: std::iter::FusedIterator>() {}
    movable::<TcpStream>();
    movable::<TcpListener>();
    movable::<IntoIncoming>();
    movable::<Incoming<'static>>();
    endless::<IntoIncoming>();
    endless::<Incoming<'static>>();
    fn readable<T: Read + Write>() {}
    readable::<TcpStream>();
    readable::<&TcpStream>();
    readable::<Box<TcpStream>>();
    fn shared(stream: Arc<TcpStream>) {
        let _ = (&*stream).read(&mut [0]);
    }
    let _ = shared;
}

/// What std takes for a stream of TCP may be another socket, of which a read gives one message and leaves the next one there.
#[test]
fn a_stream_over_a_socket_that_keeps_messages_misses_none() {
    everywhere(|| {
        let (writer, reader) =
            socket2::Socket::pair(socket2::Domain::UNIX, socket2::Type::SEQPACKET, None).unwrap();
        let mut writer = TcpStream::from(OwnedFd::from(writer));
        let mut reader = TcpStream::from(OwnedFd::from(reader));
        let mut buf = [0; 64];
        for message in ["one", "three"] {
            // Waits, so that the reactor is asked of it.
            let other = beside(move || {
                nap(5);
                (0..2).for_each(|_| writer.write_all(message.as_bytes()).unwrap());
                writer
            });
            assert_eq!([(); 2].map(|()| reader.read(&mut buf).unwrap()), [message.len(); 2]);
            writer = other.join();
        }
    });
}
