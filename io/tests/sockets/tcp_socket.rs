//! What TCP has beside std: options before the connection, deadlines, keep-alive, a listener for each worker.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::sides::{beside, guarded};
use crate::common::{
    everywhere, in_tasks, kind, listener, nap, pair, runtime, set_option, unless_ipv6_lacks, until,
    until_refused,
};
use crate::refused::refused;
use fibra_io::net::{Keepalive, TcpListener, TcpSocket, TcpStream, UdpSocket, UnixStream};
use fibra_runtime::timeout_at;

/// A timeout that is waited for, and one that is not.
const BRIEF: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

// ---- before the connection ----

#[test]
fn bind_before_connect() {
    everywhere(|| {
        let (listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 3], 0))).unwrap();
        let here = socket.local_addr().unwrap();
        let stream = socket.connect(address).unwrap();
        assert_eq!((stream.local_addr().unwrap(), stream.peer_addr().unwrap()), (here, address));
        assert_eq!(listener.accept().unwrap().1, here);
        assert!(!socket2::SockRef::from(&stream).nonblocking().unwrap());
    });
}

/// The system has connected such a socket at once, and asks the peer with what is written first.
#[test]
fn a_connection_opened_by_its_first_write_is_there_at_once() {
    everywhere(|| {
        let (listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT);
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_NO_COOKIE);
        let mut stream = socket.connect_timeout(address, LONG).unwrap();
        let server = beside(move || {
            let mut buf = [0; 5];
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut buf).unwrap();
            stream.write_all(&buf).unwrap();
        });
        let mut buf = [0; 5];
        // It asks as well, and takes nothing along.
        assert_eq!(stream.write(b"").unwrap(), 0);
        stream.write_all(b"hello").unwrap();
        stream.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"hello");
        server.join();
    });
}

#[test]
fn sockets_have_the_names_of_tokio() {
    everywhere(|| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        assert!(socket.reuseaddr().unwrap() && socket.reuse_address().unwrap());
        socket.set_reuseaddr(false).unwrap();
        assert!(!socket.reuseaddr().unwrap() && !socket.reuse_address().unwrap());
        socket.set_reuseport(true).unwrap();
        assert!(socket.reuseport().unwrap() && socket.reuse_port().unwrap());
        socket.bind(ANY_PORT).unwrap();
        let (first, second) = (socket.listen(8).unwrap(), TcpSocket::new_v4().unwrap());
        second.set_reuseport(true).unwrap();
        second.bind(first.local_addr().unwrap()).unwrap();
        second.set_reuseport(false).unwrap();
        assert!(!second.reuseport().unwrap() && !second.reuse_port().unwrap());
        if let Some(socket) = unless_ipv6_lacks(TcpSocket::new_v6()) {
            socket.bind("[::]:0".parse().unwrap()).unwrap();
            assert!(socket.local_addr().unwrap().is_ipv6());
        }
    });
}

#[test]
fn connect_tells_what_is_wrong() {
    everywhere(|| {
        let socket = TcpSocket::v4().unwrap();
        assert_eq!(kind(socket.connect(refused())), ErrorKind::ConnectionRefused);
        let socket = TcpSocket::v4().unwrap();
        assert_eq!(kind(socket.connect_timeout(refused(), Duration::ZERO)), ErrorKind::InvalidInput);
        let socket = TcpSocket::v4().unwrap();
        assert_eq!(kind(socket.bind("192.0.2.1:0".parse().unwrap())), ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn sockets_of_any_make_connect_and_listen() {
    everywhere(|| {
        let made = || OwnedFd::from(std_socket());
        let socket = TcpSocket::from(made());
        socket.bind(ANY_PORT).unwrap();
        let listener = socket.listen(8).unwrap();
        let client = beside({
            let (socket, address) = (TcpSocket::from(made()), listener.local_addr().unwrap());
            move || socket.connect_timeout(address, Duration::from_secs(30)).unwrap()
        });
        let (mut server, _) = listener.accept().unwrap();
        client.join().write_all(&[1]).unwrap();
        server.read_exact(&mut [0]).unwrap();
        let listener = TcpListener::from(OwnedFd::from(listener));
        listener.set_nonblocking(true).unwrap();
        assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock);
    });
}

fn std_socket() -> socket2::Socket {
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap()
}

#[test]
fn options_of_a_socket_are_those_of_its_stream() {
    everywhere(|| {
        let (_listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_linger(Some(Duration::from_secs(3))).unwrap();
        socket.set_send_buffer_size(30_000).unwrap();
        socket.set_recv_buffer_size(30_000).unwrap();
        let sizes = (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap());
        assert!(sizes.0 >= 30_000 && sizes.1 >= 30_000);
        let stream = socket.connect(address).unwrap();
        assert!(stream.nodelay().unwrap());
        assert_eq!(stream.linger().unwrap(), Some(Duration::from_secs(3)));
        assert_eq!((stream.send_buffer_size().unwrap(), stream.recv_buffer_size().unwrap()), sizes);
    });
}

/// Sees that both timeouts are those of [`set_timeouts`], that one of them ends a read, and that reads do wait without it.
fn has_timeouts(stream: &TcpStream) {
    let timeouts = [stream.read_timeout().unwrap(), stream.write_timeout().unwrap()];
    assert_eq!(timeouts, [Some(BRIEF), Some(LONG)]);
    assert_eq!(kind((&*stream).read(&mut [0])), ErrorKind::WouldBlock);
    stream.set_nonblocking(true).unwrap();
    assert_eq!(kind((&*stream).read(&mut [0])), ErrorKind::WouldBlock);
}

/// Sets them on a descriptor.
fn set_timeouts(socket: &impl AsFd) {
    let option = socket2::SockRef::from(socket);
    option.set_read_timeout(Some(BRIEF)).unwrap();
    option.set_write_timeout(Some(LONG)).unwrap();
}

#[test]
fn timeouts_of_a_socket_are_those_of_its_stream() {
    everywhere(|| {
        let (_listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        set_timeouts(&socket);
        has_timeouts(&socket.connect(address).unwrap());
    });
}

/// As Linux has it.
#[cfg(target_os = "linux")]
#[test]
fn timeouts_of_a_listener_are_those_of_its_connections() {
    everywhere(|| {
        let socket = TcpSocket::v4().unwrap();
        set_timeouts(&socket);
        socket.bind(ANY_PORT).unwrap();
        let before = socket.listen(8).unwrap();
        let after = listener().0;
        set_timeouts(&after);
        let by_a_clone = listener().0;
        set_timeouts(&by_a_clone.try_clone().unwrap());
        let cloned = listener().0;
        set_timeouts(&cloned);
        let adopted = std::net::TcpListener::bind(ANY_PORT).unwrap();
        set_timeouts(&adopted);
        for listener in [before, after, by_a_clone, cloned.try_clone().unwrap(), adopted.into()] {
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            has_timeouts(&listener.accept().unwrap().0);
        }
    });
}

#[test]
fn packet_options_are_read_back() {
    everywhere(|| {
        let socket = TcpSocket::v4().unwrap();
        socket.set_tos_v4(0x10).unwrap();
        assert_eq!(socket.tos_v4().unwrap(), 0x10);
        if let Ok(socket) = TcpSocket::v6() {
            socket.set_tclass_v6(0x20).unwrap();
            assert_eq!(socket.tclass_v6().unwrap(), 0x20);
        }
    });
}

#[test]
fn a_linger_time_of_zero_resets_the_connection() {
    everywhere(|| {
        let (listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        socket.set_zero_linger().unwrap();
        assert_eq!(socket.linger().unwrap(), Some(Duration::ZERO));
        let client = socket.connect(address).unwrap();
        let mut server = listener.accept().unwrap().0;
        drop(client);
        assert_eq!(kind(server.read(&mut [0])), ErrorKind::ConnectionReset);
    });
}

#[test]
fn bound_to_an_interface_it_uses_that() {
    everywhere(|| {
        let (listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        assert_eq!(socket.device().unwrap(), None);
        match socket.bind_device(Some(b"lo")) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return,
            bound => bound.unwrap(),
        }
        assert_eq!(socket.device().unwrap().as_deref(), Some(&b"lo"[..]));
        let _client = socket.connect(address).unwrap();
        listener.accept().unwrap();
    });
}

#[test]
fn its_pending_error_is_taken_once() {
    everywhere(|| {
        let socket = TcpSocket::v4().unwrap();
        assert!(socket.take_error().unwrap().is_none());
        // It does not wait for the answer.
        if socket2::SockRef::from(&socket)
            .connect(&refused().into())
            .is_err_and(|error| error.raw_os_error() == Some(libc::EINPROGRESS))
        {
            let mut pending = None;
            until(|| {
                pending = socket.take_error().unwrap();
                pending.is_some()
            });
            assert_eq!(pending.unwrap().kind(), ErrorKind::ConnectionRefused);
        }
        assert!(socket.take_error().unwrap().is_none());
    });
}

#[test]
fn it_comes_and_goes_as_a_bare_descriptor_and_as_std_has_it() {
    everywhere(|| {
        let (listener, address) = listener();
        let socket = TcpSocket::v4().unwrap();
        socket.bind(ANY_PORT).unwrap();
        let here = socket.local_addr().unwrap();
        let fd = socket.into_raw_fd();
        // SAFETY: it was given away a line above, and there is no other owner.
        let socket = unsafe { TcpSocket::from_raw_fd(fd) };
        let stream = std::net::TcpStream::from(OwnedFd::from(socket));
        let stream = TcpSocket::from_std_stream(stream).connect(address).unwrap();
        assert_eq!(stream.local_addr().unwrap(), here);
        assert_eq!(listener.accept().unwrap().1, here);
    });
}

#[test]
fn reuse_port_is_a_choice() {
    everywhere(|| {
        let listen = |address, reuse| {
            let socket = TcpSocket::v4().unwrap();
            socket.set_reuse_port(reuse).unwrap();
            socket.set_reuse_address(true).unwrap();
            assert!(socket.reuse_port().unwrap() == reuse && socket.reuse_address().unwrap());
            socket.bind(address)?;
            socket.listen(16)
        };
        let first = listen(ANY_PORT, true).unwrap();
        let address = first.local_addr().unwrap();
        let _second = listen(address, true).unwrap();
        assert_eq!(kind(listen(address, false)), ErrorKind::AddrInUse);
        assert_eq!(kind(TcpListener::bind(address)), ErrorKind::AddrInUse);
    });
}

#[test]
fn only_v6_leaves_ipv4_to_others() {
    everywhere(|| {
        let Some(socket) = unless_ipv6_lacks(TcpSocket::v6()) else { return };
        socket.set_only_v6(true).unwrap();
        assert!(socket.only_v6().unwrap());
    });
}

// ---- keep-alive ----

#[test]
fn keepalive_is_read_back() {
    everywhere(|| {
        let (stream, _other) = pair();
        assert_eq!(stream.keepalive().unwrap(), None);
        let wish = Keepalive {
            idle: Some(Duration::from_secs(20)),
            interval: Some(Duration::from_secs(5)),
            probes: Some(3),
        };
        stream.set_keepalive(Some(wish)).unwrap();
        assert_eq!(stream.keepalive().unwrap(), Some(wish));
        stream
            .set_keepalive(Some(Keepalive { idle: Some(Duration::from_secs(9)), ..Keepalive::default() }))
            .unwrap();
        assert_eq!(
            stream.keepalive().unwrap(),
            Some(Keepalive { idle: Some(Duration::from_secs(9)), ..wish })
        );
        stream.set_keepalive(None).unwrap();
        assert_eq!(stream.keepalive().unwrap(), None);
    });
}

// ---- deadlines ----

#[test]
fn a_read_fails_at_its_deadline() {
    everywhere(|| {
        let (mut stream, mut other) = pair();
        let deadline = Instant::now() + Duration::from_millis(60);
        stream.set_read_deadline(Some(deadline));
        assert_eq!(stream.read_deadline(), Some(deadline));
        other.write_all(&[1]).unwrap();
        until(|| stream.read(&mut [0]).is_ok());
        let error = stream.read(&mut [0]).unwrap_err();
        assert!(Instant::now() >= deadline);
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
        // It stays: a wait ends at once, and what is there is read.
        assert_eq!(kind(stream.read(&mut [0])), ErrorKind::WouldBlock);
        other.write_all(&[2]).unwrap();
        until(|| stream.read(&mut [0]).is_ok());
        stream.set_read_deadline(None);
        assert_eq!(stream.read_deadline(), None);
        let writer = beside(move || other.write_all(&[3]).unwrap());
        stream.read_exact(&mut [0]).unwrap();
        writer.join();
    });
}

/// A peer that sends a byte now and then keeps each read short, and their sum bounded.
#[test]
fn a_deadline_bounds_what_a_timeout_does_not() {
    everywhere(|| {
        let (mut stream, mut other) = pair();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_read_deadline(Some(Instant::now() + Duration::from_millis(100)));
        let trickle = beside(move || {
            while other.write(&[1]).is_ok() {
                nap(5)
            }
        });
        let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        drop(stream);
        trickle.join();
    });
}

#[test]
fn of_timeout_and_deadline_the_earlier_counts() {
    everywhere(|| {
        let (mut stream, _other) = pair();
        let far = Instant::now() + Duration::from_secs(600);
        stream.set_read_deadline(Some(far));
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        assert_eq!(kind(stream.read(&mut [0])), ErrorKind::WouldBlock);
        assert!(Instant::now() < far);
    });
}

#[test]
fn clones_share_deadlines_and_any_moment_is_kept_as_it_is() {
    everywhere(|| {
        let (stream, _other) = pair();
        let clone = stream.try_clone().unwrap();
        let now = Instant::now();
        let moments = [
            now,
            now - Duration::from_nanos(7),
            now + Duration::from_nanos(7),
            now + Duration::from_secs(1 << 32),
        ];
        for moment in moments {
            stream.set_write_deadline(Some(moment));
            assert_eq!(clone.write_deadline(), Some(moment));
        }
        assert_eq!(clone.read_deadline(), None);
    });
}

#[test]
fn writes_and_other_sockets_have_deadlines_too() {
    everywhere(|| {
        let soon = || Some(Instant::now() + Duration::from_millis(20));
        let (mut stream, _other) = pair();
        stream.set_write_deadline(soon());
        assert_eq!(kind(stream.write_all(&vec![0; 64 << 20])), ErrorKind::WouldBlock);
        let (mut stream, _other) = UnixStream::pair().unwrap();
        stream.set_write_deadline(soon());
        assert_eq!(kind(stream.write_all(&vec![0; 1 << 20])), ErrorKind::WouldBlock);
        let socket = UdpSocket::bind(ANY_PORT).unwrap();
        socket.set_read_deadline(soon());
        assert_eq!(kind(socket.recv(&mut [0])), ErrorKind::WouldBlock);
    });
}

#[test]
fn an_accept_fails_at_its_deadline() {
    everywhere(|| {
        let (listener, address) = listener();
        let clone = listener.try_clone().unwrap();
        let deadline = Instant::now() + Duration::from_millis(40);
        listener.set_accept_deadline(Some(deadline));
        assert_eq!(clone.accept_deadline(), Some(deadline), "clones share it");
        let error = clone.accept().unwrap_err();
        assert!(Instant::now() >= deadline);
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(kind(listener.incoming().next().unwrap()), ErrorKind::WouldBlock, "it stays");
        // Waiting clients are let in.
        let client = TcpStream::connect(address).unwrap();
        // The client may be connected before the listener has its event.
        let mut accepted = None;
        until(|| {
            accepted = listener.accept().ok();
            accepted.is_some()
        });
        assert_eq!(accepted.unwrap().1, client.local_addr().unwrap());
        clone.set_accept_deadline(None);
        assert_eq!(listener.accept_deadline(), None);
        let client = beside(move || TcpStream::connect(address).unwrap());
        listener.accept().unwrap();
        client.join();
    });
}

/// A deadline around the call and one of the socket: the earlier ends it, each in its own way.
#[test]
fn deadlines_compose_with_timeout_at() {
    in_tasks(|| {
        let (mut stream, _other) = pair();
        let in_millis = |millis| Instant::now() + Duration::from_millis(millis);
        stream.set_read_deadline(Some(in_millis(20)));
        let read = timeout_at(in_millis(60_000), || stream.read(&mut [0]));
        assert_eq!(kind(read.unwrap()), ErrorKind::WouldBlock);
        stream.set_read_deadline(Some(in_millis(60_000)));
        assert!(timeout_at(in_millis(20), || stream.read(&mut [0])).is_err());
    });
}

// ---- a listener for each worker ----

#[test]
fn every_worker_serves_one_port() {
    const WORKERS: usize = 3;
    guarded(|| {
        runtime(WORKERS).run(|| {
            let threads = Arc::new(Mutex::new(HashSet::new()));
            let (address, tasks) = TcpListener::serve_on_each_worker(ANY_PORT, {
                let threads = Arc::clone(&threads);
                move |listener| {
                    let home = thread::current().id();
                    threads.lock().unwrap().insert(home);
                    for stream in listener.incoming() {
                        let mut stream = stream.unwrap();
                        assert_eq!(thread::current().id(), home);
                        drop(fibra_runtime::spawn_local(move || {
                            assert_eq!(thread::current().id(), home);
                            let mut buf = [0];
                            stream.read_exact(&mut buf).unwrap();
                            stream.write_all(&buf).unwrap();
                        }));
                    }
                }
            })
            .unwrap();
            assert_eq!(tasks.len(), WORKERS);
            let clients: Vec<_> = (0..60_u8)
                .map(|number| {
                    fibra_runtime::spawn(move || {
                        let mut stream = TcpStream::connect(address).unwrap();
                        stream.write_all(&[number]).unwrap();
                        let mut buf = [0];
                        stream.read_exact(&mut buf).unwrap();
                        assert_eq!(buf, [number]);
                    })
                })
                .collect();
            clients.into_iter().for_each(|client| client.join().unwrap());
            until(|| threads.lock().unwrap().len() == WORKERS);
            tasks.iter().for_each(|task| task.task().cancel());
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
            until_refused(address);
        });
    });
}

#[test]
fn a_port_in_use_is_not_shared() {
    in_tasks(|| {
        let (_listener, address) = listener();
        let served = TcpListener::serve_on_each_worker(address, drop);
        assert_eq!(kind(served.map(|(address, _)| address)), ErrorKind::AddrInUse);
    });
}
