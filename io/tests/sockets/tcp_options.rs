//! The options of sockets: what is set is read back, and does what std's does.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::common::sides::beside;
use crate::common::{everywhere, kind, listener, listener6, nap, pair};
use fibra_io::net::TcpStream;

#[test]
fn debug() {
    everywhere(|| {
        let (listener, address) = listener();
        let expected = format!("TcpListener {{ addr: {address:?}, fd: {} }}", listener.as_raw_fd());
        assert_eq!(format!("{listener:?}"), expected);
        let stream = TcpStream::connect(address).unwrap();
        let local = stream.local_addr().unwrap();
        let expected =
            format!("TcpStream {{ addr: {local:?}, peer: {address:?}, fd: {} }}", stream.as_raw_fd());
        assert_eq!(format!("{stream:?}"), expected);
        assert!(format!("{:?}", listener.incoming()).starts_with("Incoming { listener: TcpListener"));
    });
}

#[test]
fn timeouts() {
    everywhere(|| {
        let (client, _server) = pair();
        let long = Some(Duration::from_secs(15410));
        assert_eq!(client.read_timeout().unwrap(), None);
        assert_eq!(client.write_timeout().unwrap(), None);
        client.set_read_timeout(long).unwrap();
        assert_eq!((client.read_timeout().unwrap(), client.write_timeout().unwrap()), (long, None));
        client.set_write_timeout(long).unwrap();
        client.set_read_timeout(None).unwrap();
        assert_eq!((client.read_timeout().unwrap(), client.write_timeout().unwrap()), (None, long));
        client.set_write_timeout(None).unwrap();
        assert_eq!(client.write_timeout().unwrap(), None);
    });
}

#[test]
fn clones_share_timeouts() {
    everywhere(|| {
        let (client, _server) = pair();
        let clone = client.try_clone().unwrap();
        clone.set_read_timeout(Some(Duration::from_millis(15))).unwrap();
        assert_eq!(client.read_timeout().unwrap(), Some(Duration::from_millis(15)));
        assert_eq!(kind((&client).read(&mut [0])), ErrorKind::WouldBlock);
    });
}

#[test]
fn timeouts_survive_conversion() {
    everywhere(|| {
        let (client, _server) = pair();
        client.set_read_timeout(Some(Duration::from_secs(7))).unwrap();
        let std = std::net::TcpStream::from(client);
        assert_eq!(std.read_timeout().unwrap(), Some(Duration::from_secs(7)));
        std.set_write_timeout(Some(Duration::from_secs(9))).unwrap();
        let back = TcpStream::from(std);
        assert_eq!(back.read_timeout().unwrap(), Some(Duration::from_secs(7)));
        assert_eq!(back.write_timeout().unwrap(), Some(Duration::from_secs(9)));
    });
}

#[test]
fn test_read_timeout() {
    everywhere(|| {
        let (mut client, _server) = pair();
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let start = Instant::now();
        let error = client.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(100) && took < Duration::from_secs(10), "{took:?}");
    });
}

#[test]
fn test_read_with_timeout() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        // Longer than the bytes may be on their way.
        let long = Some(Duration::from_secs(60));
        client.set_read_timeout(long).unwrap();
        server.write_all(b"hello world").unwrap();
        let mut buf = [0; 11];
        client.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"hello world");
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert_eq!(kind(client.read(&mut buf)), ErrorKind::WouldBlock);
        // The timeout leaves nothing behind.
        client.set_read_timeout(long).unwrap();
        server.write_all(b"once more..").unwrap();
        client.read_exact(&mut buf).unwrap();
    });
}

#[test]
fn test_write_timeout() {
    everywhere(|| {
        let (mut client, _server) = pair();
        client.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let buf = vec![0; 1 << 20];
        let error = loop {
            if let Err(error) = client.write(&buf) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn test_timeout_zero_duration() {
    everywhere(|| {
        let (client, _server) = pair();
        assert_eq!(kind(client.set_write_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(kind(client.set_read_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(client.read_timeout().unwrap(), None);
    });
}

#[test]
fn linger() {
    everywhere(|| {
        let (client, mut server) = pair();
        assert_eq!(client.linger().unwrap(), None);
        client.set_linger(Some(Duration::from_secs(1))).unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::from_secs(1)));
        client.set_linger(None).unwrap();
        assert_eq!(client.linger().unwrap(), None);
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert_eq!(kind(server.read(&mut [0])), ErrorKind::ConnectionReset);
    });
}

#[test]
fn nodelay() {
    everywhere(|| {
        let (client, _server) = pair();
        assert!(!client.nodelay().unwrap());
        client.set_nodelay(true).unwrap();
        assert!(client.nodelay().unwrap());
        client.set_nodelay(false).unwrap();
        assert!(!client.nodelay().unwrap());
    });
}

#[test]
fn ttl() {
    everywhere(|| {
        let (listener, address) = listener();
        listener.set_ttl(100).unwrap();
        assert_eq!(listener.ttl().unwrap(), 100);
        let client = TcpStream::connect(address).unwrap();
        client.set_ttl(100).unwrap();
        assert_eq!(client.ttl().unwrap(), 100);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn quickack() {
    use fibra_io::os::linux::net::TcpStreamExt;
    everywhere(|| {
        let (client, _server) = pair();
        client.set_quickack(false).unwrap();
        assert!(!client.quickack().unwrap());
        client.set_quickack(true).unwrap();
        assert!(client.quickack().unwrap());
    });
}

#[test]
fn take_error_of_a_sound_socket_is_none() {
    everywhere(|| {
        let (listener, address) = listener();
        assert!(listener.take_error().unwrap().is_none());
        assert!(TcpStream::connect(address).unwrap().take_error().unwrap().is_none());
    });
}

#[test]
#[expect(deprecated, reason = "it is there because std has it")]
fn only_v6_cannot_be_set_any_more() {
    everywhere(|| {
        if let Some((listener, _)) = listener6() {
            listener.only_v6().unwrap();
            assert_eq!(kind(listener.set_only_v6(true)), ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn set_nonblocking() {
    everywhere(|| {
        let (listener, address) = listener();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock);
        listener.set_nonblocking(false).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock);
        assert_eq!(kind(client.peek(&mut [0])), ErrorKind::WouldBlock);
        // It asks each time, also when the socket was found empty before.
        server.write_all(&[1]).unwrap();
        crate::common::until(|| client.read(&mut [0; 8]).is_ok());
        client.set_nonblocking(false).unwrap();
        let writer = beside(move || {
            nap(20);
            server.write_all(&[2]).unwrap();
            server
        });
        assert_eq!(client.read(&mut [0]).unwrap(), 1);
        writer.join();
    });
}

#[test]
fn nonblocking_survives_conversion() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = TcpStream::connect(address).unwrap();
        client.set_nonblocking(true).unwrap();
        let mut std = std::net::TcpStream::from(client);
        assert_eq!(kind(std.read(&mut [0])), ErrorKind::WouldBlock);
        assert_eq!(kind(TcpStream::from(std).read(&mut [0])), ErrorKind::WouldBlock);
        listener.set_nonblocking(true).unwrap();
        let std = std::net::TcpListener::from(listener);
        // The client may be connected before the listener has its event.
        crate::common::until(|| std.accept().is_ok());
        assert_eq!(kind(std.accept()), ErrorKind::WouldBlock);
    });
}

#[test]
fn socket_given_to_std_blocks_as_std_does() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().unwrap();
        for fd in [OwnedFd::from(client), OwnedFd::from(server), OwnedFd::from(listener)] {
            assert!(!socket2::SockRef::from(&fd).nonblocking().unwrap());
        }
    });
}

#[test]
fn peek() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let writer = beside(move || {
            nap(20);
            client.write_all(&[1, 3, 3, 7]).unwrap();
            client
        });
        let mut buf = [0; 10];
        for _ in 0..3 {
            assert_eq!(server.peek(&mut buf).unwrap(), 4);
            assert_eq!(buf[..4], [1, 3, 3, 7]);
        }
        assert_eq!(server.read(&mut buf).unwrap(), 4);
        drop(writer.join());
        assert_eq!(server.peek(&mut buf).unwrap(), 0);
    });
}

#[test]
fn reads_and_writes_of_nothing() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        assert_eq!(client.write(&[]).unwrap(), 0);
        client.write_all(&[1]).unwrap();
        assert_eq!(server.read(&mut []).unwrap(), 0);
        assert_eq!(server.read(&mut [0]).unwrap(), 1);
    });
}
