//! TCP keeps the promises of std's, in plain threads and in tasks: opening, talking, ending.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::iter;
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use crate::common::sides::beside;
use crate::common::{everywhere, kind, listener, listener6, nap, pair, until_refused};
use crate::refused::refused;
use fibra_io::net::{TcpListener, TcpStream};

/// A time that no test waits out.
const LONG: Duration = Duration::from_secs(3600);

// ---- opening and failing to ----

#[test]
fn bind_error() {
    everywhere(|| {
        // An address of a network for documentation, so of no interface.
        assert_eq!(kind(TcpListener::bind("192.0.2.1:0")), ErrorKind::AddrNotAvailable);
        assert_eq!(kind(TcpListener::bind("not an address")), ErrorKind::InvalidInput);
    });
}

#[test]
fn bind_takes_the_first_address_that_works() {
    everywhere(|| {
        let addresses = ["192.0.2.1:0".parse().unwrap(), SocketAddr::from(([127, 0, 0, 1], 0))];
        let listener = TcpListener::bind(&addresses[..]).unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
    });
}

#[test]
fn double_bind() {
    everywhere(|| {
        let (_listener, address) = listener();
        assert_eq!(kind(TcpListener::bind(address)), ErrorKind::AddrInUse);
    });
}

#[test]
fn connect_error() {
    everywhere(|| {
        assert_eq!(kind(TcpStream::connect(refused())), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn connect_tries_all_addresses() {
    everywhere(|| {
        let (_listener, address) = listener();
        let stream = TcpStream::connect(&[refused(), address][..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[test]
fn listen_localhost() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = beside(move || {
            let mut stream = TcpStream::connect(("localhost", address.port())).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), address);
            stream.write_all(&[144]).unwrap();
        });
        let mut buf = [0];
        listener.accept().unwrap().0.read_exact(&mut buf).unwrap();
        assert_eq!(buf, [144]);
        client.join();
    });
}

#[test]
fn connect_loopback() {
    everywhere(|| {
        for (host, listener) in [("127.0.0.1", Some(listener())), ("::1", listener6())] {
            let Some((listener, address)) = listener else { continue };
            let client = beside(move || {
                TcpStream::connect((host, address.port())).unwrap().write_all(&[66]).unwrap();
            });
            let mut buf = [0];
            listener.accept().unwrap().0.read_exact(&mut buf).unwrap();
            assert_eq!(buf, [66]);
            client.join();
        }
    });
}

#[test]
fn connect_without_an_address_is_invalid_input() {
    everywhere(|| {
        let none: &[SocketAddr] = &[];
        assert_eq!(kind(TcpStream::connect(none)), ErrorKind::InvalidInput);
    });
}

#[test]
fn connect_timeout_error() {
    everywhere(|| {
        let outcome = TcpStream::connect_timeout(&refused(), LONG);
        assert_eq!(kind(outcome), ErrorKind::ConnectionRefused);
        let zero = TcpStream::connect_timeout(&refused(), Duration::ZERO);
        assert_eq!(kind(zero), ErrorKind::InvalidInput);
    });
}

/// A listener with a full queue answers no client.
#[test]
fn connect_timeout_passes() {
    everywhere(|| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut accepted_by_kernel = Vec::new();
        loop {
            let start = Instant::now();
            match TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
                Ok(stream) => accepted_by_kernel.push(stream),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                    assert!(start.elapsed() >= Duration::from_millis(50));
                    break;
                }
            }
            assert!(accepted_by_kernel.len() < 16, "the queue never fills");
        }
    });
}

#[test]
fn connect_timeout_valid() {
    everywhere(|| {
        let (_listener, address) = listener();
        TcpStream::connect_timeout(&address, LONG).unwrap();
    });
}

#[test]
fn fast_rebind() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = TcpStream::connect(address).unwrap();
        // The server closes first, so the port stays in TIME_WAIT.
        drop(listener.accept().unwrap());
        drop(listener);
        drop(client);
        TcpListener::bind(address).unwrap();
    });
}

// ---- talking ----

#[test]
fn smoke_test() {
    everywhere(|| {
        for (listener, address) in iter::once(listener()).chain(listener6()) {
            let client = beside(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&[99]).unwrap();
                stream.local_addr().unwrap()
            });
            let (mut stream, peer) = listener.accept().unwrap();
            let mut buf = [0];
            assert_eq!(stream.read(&mut buf).unwrap(), 1);
            assert_eq!(buf, [99]);
            assert_eq!(peer, client.join());
        }
    });
}

#[test]
fn read_eof() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = beside(move || drop(TcpStream::connect(address).unwrap()));
        let mut stream = listener.accept().unwrap().0;
        let mut buf = [0; 2];
        for _ in 0..3 {
            assert_eq!(stream.read(&mut buf).unwrap(), 0, "the end stays the end");
        }
        client.join();
    });
}

#[test]
fn data_and_end_that_come_before_the_first_read() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        client.write_all(b"all").unwrap();
        drop(client);
        nap(20);
        let mut buf = [0; 64];
        assert_eq!(server.read(&mut buf).unwrap(), 3);
        assert_eq!(server.read(&mut buf).unwrap(), 0);
    });
}

#[test]
fn data_and_end_that_come_to_a_sleeping_reader() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let reader = beside(move || {
            let (mut all, mut buf) = (Vec::new(), [0; 64]);
            loop {
                match server.read(&mut buf).unwrap() {
                    0 => return all,
                    n => all.extend_from_slice(&buf[..n]),
                }
            }
        });
        nap(20);
        client.write_all(b"first").unwrap();
        nap(20);
        client.write_all(b"second").unwrap();
        drop(client);
        assert_eq!(reader.join(), b"firstsecond");
    });
}

#[test]
fn write_close() {
    everywhere(|| {
        let (client, mut server) = pair();
        drop(client);
        let error = loop {
            match server.write_all(&[1]) {
                Ok(()) => nap(1),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted
            ),
            "{error}"
        );
    });
}

/// What a peer that sends urgent data leaves behind its mark must not be taken for an empty socket.
#[cfg(target_os = "linux")]
#[test]
fn data_behind_urgent_data_is_read() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let reader = beside(move || {
            let mut all = Vec::new();
            server.read_to_end(&mut all).unwrap();
            all
        });
        for _ in 0..50 {
            client.write_all(b"before").unwrap();
            socket2::SockRef::from(&client).send_out_of_band(b"!").unwrap();
            client.write_all(b"behind").unwrap();
            nap(1);
        }
        client.shutdown(Shutdown::Write).unwrap();
        assert!(reader.join().ends_with(b"behind"));
    });
}

#[test]
fn partial_read() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let writer = beside(move || {
            client.write_all(&[1, 2, 3]).unwrap();
            nap(20);
            client.write_all(&[4]).unwrap();
        });
        let mut buf = [0; 2];
        server.read_exact(&mut buf).unwrap();
        assert_eq!(buf, [1, 2]);
        server.read_exact(&mut buf).unwrap();
        assert_eq!(buf, [3, 4]);
        writer.join();
    });
}

#[test]
fn read_vectored() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        client.write_all(&[10, 11, 12, 13]).unwrap();
        let (mut a, mut b, mut c) = ([], [0; 3], [0; 3]);
        let mut bufs = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b), IoSliceMut::new(&mut c)];
        assert_eq!(server.read_vectored(&mut bufs).unwrap(), 4);
        assert_eq!((b, c), ([10, 11, 12], [13, 0, 0]));
    });
}

#[test]
fn write_vectored() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let (a, b, c) = ([], [10], [11, 12]);
        let bufs = [IoSlice::new(&a), IoSlice::new(&b), IoSlice::new(&c)];
        assert_eq!(client.write_vectored(&bufs).unwrap(), 3);
        let mut buf = [0; 3];
        server.read_exact(&mut buf).unwrap();
        assert_eq!(buf, [10, 11, 12]);
    });
}

#[test]
fn more_buffers_than_the_system_takes_are_taken_in_part() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let byte = [7];
        let many: Vec<IoSlice<'_>> = (0..3000).map(|_| IoSlice::new(&byte)).collect();
        let sent = client.write_vectored(&many).unwrap();
        assert!(sent > 0 && sent < many.len());
        let mut buf = vec![0; sent];
        server.read_exact(&mut buf).unwrap();
        // Exactly as many as one call takes: not a short read, so the next one asks again.
        client.write_all(&vec![8; sent]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut places = vec![0; 3000];
        let mut bufs: Vec<IoSliceMut<'_>> = places.chunks_mut(1).map(IoSliceMut::new).collect();
        assert!(server.read_vectored(&mut bufs).unwrap() <= sent);
    });
}

#[test]
fn vectored_calls_wait() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let writer = beside(move || {
            nap(20);
            let payload = vec![5; 1 << 20];
            let mut rest = &payload[..];
            while !rest.is_empty() {
                let half = rest.len() / 2;
                let n = client
                    .write_vectored(&[IoSlice::new(&rest[..half]), IoSlice::new(&rest[half..])])
                    .unwrap();
                rest = &rest[n..];
            }
        });
        let (mut total, mut a, mut b) = (0, [0; 100], [0; 50_000]);
        while total < 1 << 20 {
            let n = server.read_vectored(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)]).unwrap();
            assert!(n > 0);
            total += n;
        }
        writer.join();
    });
}

#[test]
fn a_transfer_that_fills_every_buffer_on_the_way() {
    const LEN: usize = 8 << 20;
    everywhere(|| {
        let (mut client, mut server) = pair();
        let payload: Vec<u8> = (0..LEN).map(|i| (i / 7) as u8).collect();
        let expected = payload.clone();
        let writer = beside(move || client.write_all(&payload).unwrap());
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        writer.join();
        assert!(received == expected, "{} bytes", received.len());
    });
}

#[test]
fn many_rounds_of_ping_pong() {
    everywhere(|| {
        let (mut client, mut server) = pair();
        let echo = beside(move || {
            let mut buf = [0; 256];
            loop {
                match server.read(&mut buf).unwrap() {
                    0 => return,
                    n => server.write_all(&buf[..n]).unwrap(),
                }
            }
        });
        for round in 0..2000_u32 {
            client.write_all(&round.to_ne_bytes()).unwrap();
            let mut buf = [0; 4];
            client.read_exact(&mut buf).unwrap();
            assert_eq!(u32::from_ne_bytes(buf), round);
        }
        drop(client);
        echo.join();
    });
}

#[test]
fn multiple_connect_serial() {
    everywhere(|| {
        let (listener, address) = listener();
        let clients = beside(move || {
            for i in 0..10 {
                TcpStream::connect(address).unwrap().write_all(&[i]).unwrap();
            }
        });
        for i in 0..10 {
            let mut buf = [0];
            listener.accept().unwrap().0.read_exact(&mut buf).unwrap();
            assert_eq!(buf, [i]);
        }
        clients.join();
    });
}

/// All clients are read, in any order of clients and readers.
#[test]
fn multiple_connect_interleaved_lazy_schedule() {
    everywhere(|| {
        let (listener, address) = listener();
        let mut clients = Vec::new();
        for i in 0..10 {
            clients.push(beside(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                nap(10 - u64::from(i));
                stream.write_all(&[i]).unwrap();
            }));
        }
        let servers = listener.incoming().take(10).map(|stream| {
            let mut stream = stream.unwrap();
            beside(move || {
                let mut buf = [0];
                stream.read_exact(&mut buf).unwrap();
                buf[0]
            })
        });
        let servers: Vec<_> = servers.collect();
        let mut heard: Vec<u8> = servers.into_iter().map(|server| server.join()).collect();
        heard.sort();
        assert_eq!(heard, Vec::from_iter(0..10));
        clients.into_iter().for_each(|client| client.join());
    });
}

/// Each client opens its connection, then waits for the next one before it writes. Tells the writes of each.
fn connect_nested(i: u8, address: SocketAddr) -> Vec<(u8, SocketAddr)> {
    if i == 10 {
        return Vec::new();
    }
    let mut stream = TcpStream::connect(address).unwrap();
    let mut written = beside(move || connect_nested(i + 1, address)).join();
    stream.write_all(&[i]).unwrap();
    written.push((i, stream.local_addr().unwrap()));
    written
}

#[test]
fn multiple_connect_interleaved_greedy_schedule() {
    everywhere(|| {
        let (listener, address) = listener();
        let server = beside(move || {
            let readers = (0..10).map(|_| {
                let (mut stream, peer) = listener.accept().unwrap();
                beside(move || {
                    let mut buf = [0];
                    stream.read_exact(&mut buf).unwrap();
                    (buf[0], peer)
                })
            });
            readers.collect::<Vec<_>>().into_iter().map(|reader| reader.join()).collect::<Vec<_>>()
        });
        let mut written = connect_nested(0, address);
        let mut heard = server.join();
        written.sort();
        heard.sort();
        assert_eq!(heard, written);
    });
}

#[test]
fn into_incoming_owns_the_listener() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = beside(move || TcpStream::connect(address).unwrap());
        assert!(listener.into_incoming().next().unwrap().is_ok());
        drop(client.join());
        until_refused(address);
    });
}

#[test]
fn socket_and_peer_name() {
    everywhere(|| {
        let (listener, address) = listener();
        let client = TcpStream::connect(address).unwrap();
        let (server, peer) = listener.accept().unwrap();
        assert_eq!(listener.local_addr().unwrap(), address);
        assert_eq!(client.peer_addr().unwrap(), address);
        assert_eq!(server.local_addr().unwrap(), address);
        assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
        assert_eq!(peer, client.local_addr().unwrap());
    });
}

// ---- shutting down ----

#[test]
fn shutdown_smoke() {
    everywhere(|| {
        let (client, mut server) = pair();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(kind((&client).write(&[1])), ErrorKind::BrokenPipe);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
        server.write_all(&[1]).unwrap();
        let mut buf = [0];
        (&client).read_exact(&mut buf).unwrap();
        assert_eq!(buf, [1]);
    });
}

#[test]
fn close_readwrite_smoke() {
    everywhere(|| {
        let (client, _server) = pair();
        let clone = client.try_clone().unwrap();
        client.shutdown(Shutdown::Read).unwrap();
        assert_eq!((&client).read(&mut [0]).unwrap(), 0);
        assert_eq!((&clone).read(&mut [0]).unwrap(), 0);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(kind((&client).write(&[1])), ErrorKind::BrokenPipe);
        assert_eq!(kind((&clone).write(&[1])), ErrorKind::BrokenPipe);
        let late = clone.try_clone().unwrap();
        assert_eq!((&late).read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn close_read_wakes_up() {
    everywhere(|| {
        let (client, _server) = pair();
        let mut clone = client.try_clone().unwrap();
        let reader = beside(move || clone.read(&mut [0]).unwrap());
        nap(20);
        client.shutdown(Shutdown::Read).unwrap();
        assert_eq!(reader.join(), 0);
    });
}

#[test]
fn shutdown_wakes_a_sleeping_writer() {
    everywhere(|| {
        let (client, _server) = pair();
        let mut clone = client.try_clone().unwrap();
        let writer = beside(move || {
            let buf = vec![0; 1 << 20];
            loop {
                if let Err(error) = clone.write(&buf) {
                    return error.kind();
                }
            }
        });
        nap(50);
        client.shutdown(Shutdown::Both).unwrap();
        assert!(matches!(writer.join(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
    });
}

#[test]
fn a_reset_wakes_a_sleeping_reader() {
    everywhere(|| {
        let (client, mut server) = pair();
        let reader = beside(move || server.read(&mut [0]).unwrap_err().kind());
        nap(20);
        client.set_linger(Some(Duration::ZERO)).unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
        drop(client);
        assert_eq!(reader.join(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_timeout_ends_waits_and_the_data_of_later_stays() {
    everywhere(|| {
        let ((listener, address), (mut client, mut server)) = (listener(), pair());
        let short = Duration::from_millis(3);
        assert!(fibra_runtime::timeout(short, || listener.accept()).is_err());
        assert!(fibra_runtime::timeout(short, || client.read(&mut [0])).is_err());
        server.write_all(b"later").unwrap();
        let mut buf = [0; 5];
        client.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"later");
        let _other = TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
    });
}
