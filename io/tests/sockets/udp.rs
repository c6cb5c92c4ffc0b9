//! UDP keeps the promises of std's, in plain threads and in tasks.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, runtime, set_option, unless_ipv6_lacks, until};
use fibra_io::net::UdpSocket;
use fibra_runtime::Runtime;

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// Makes a socket over IPv6, if the machine has it.
fn socket6() -> Option<UdpSocket> {
    unless_ipv6_lacks(UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)))
}

/// A socket at an address that no other test binds, so that its port is free once it is dropped.
fn secluded() -> UdpSocket {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    UdpSocket::bind((Ipv4Addr::new(127, 77, 0, NEXT.fetch_add(1, Ordering::Relaxed)), 0)).unwrap()
}

/// Two sockets of IPv4, then two of IPv6 if the machine has it.
fn each_ip(promise: impl Fn(UdpSocket, UdpSocket)) {
    promise(socket(), socket());
    if let Some(one) = socket6() {
        promise(one, socket6().unwrap());
    }
}

// ---- std's own scenarios ----

#[test]
fn bind_error() {
    everywhere(|| {
        // An address of a network for documentation, so of no interface.
        assert_eq!(kind(UdpSocket::bind("192.0.2.1:0")), ErrorKind::AddrNotAvailable);
        assert_eq!(kind(UdpSocket::bind("not an address")), ErrorKind::InvalidInput);
    });
}

#[test]
fn socket_smoke_test_ip4() {
    everywhere(|| {
        each_ip(|server, client| {
            let (to, from) = (server.local_addr().unwrap(), client.local_addr().unwrap());
            let sender = beside(move || assert_eq!(client.send_to(&[99], to).unwrap(), 1));
            let mut buf = [0];
            assert_eq!(server.recv_from(&mut buf).unwrap(), (1, from));
            assert_eq!(buf, [99]);
            sender.join();
        });
    });
}

#[test]
fn socket_and_peer_name() {
    everywhere(|| {
        each_ip(|one, other| {
            let (here, there) = (one.local_addr().unwrap(), other.local_addr().unwrap());
            assert_eq!(kind(one.peer_addr()), ErrorKind::NotConnected);
            assert!(here.ip().is_loopback());
            one.connect(there).unwrap();
            other.connect(here).unwrap();
            assert_eq!((one.peer_addr().unwrap(), other.peer_addr().unwrap()), (there, here));
        });
    });
}

#[test]
fn udp_clone_smoke() {
    everywhere(|| {
        each_ip(|one, other| {
            let (here, there) = (one.local_addr().unwrap(), other.local_addr().unwrap());
            let answerer = beside(move || {
                let mut buf = [0; 2];
                assert_eq!(other.recv_from(&mut buf).unwrap(), (1, here));
                assert_eq!(buf[0], 1);
                other.send_to(&[2], here).unwrap();
            });
            let clone = one.try_clone().unwrap();
            let sender = beside(move || clone.send_to(&[1], there).unwrap());
            let mut buf = [0; 2];
            assert_eq!(one.recv_from(&mut buf).unwrap(), (1, there));
            assert_eq!(buf[0], 2);
            sender.join();
            answerer.join();
        });
    });
}

#[test]
fn udp_clone_two_read() {
    everywhere(|| {
        each_ip(|one, other| {
            let here = one.local_addr().unwrap();
            let readers = [one.try_clone().unwrap(), one].map(|socket| {
                beside(move || {
                    let mut buf = [0; 2];
                    socket.recv_from(&mut buf).unwrap();
                    buf[0]
                })
            });
            nap(5);
            other.send_to(&[1], here).unwrap();
            nap(5);
            other.send_to(&[2], here).unwrap();
            let mut heard = readers.map(|reader| reader.join());
            heard.sort();
            assert_eq!(heard, [1, 2]);
        });
    });
}

#[test]
fn udp_clone_two_write() {
    everywhere(|| {
        each_ip(|one, other| {
            let there = other.local_addr().unwrap();
            let writers = [one.try_clone().unwrap(), one]
                .map(|socket| beside(move || assert_eq!(socket.send_to(&[1], there).unwrap(), 1)));
            for _ in 0..2 {
                assert_eq!(other.recv_from(&mut [0; 2]).unwrap().0, 1);
            }
            writers.into_iter().for_each(|writer| writer.join());
        });
    });
}

#[test]
fn debug() {
    everywhere(|| {
        let socket = socket();
        let address = socket.local_addr().unwrap();
        let expected = format!("UdpSocket {{ addr: {address:?}, fd: {} }}", socket.as_raw_fd());
        assert_eq!(format!("{socket:?}"), expected);
    });
}

#[test]
fn timeouts() {
    everywhere(|| {
        let socket = socket();
        let long = Some(Duration::from_secs(15410));
        assert_eq!((socket.read_timeout().unwrap(), socket.write_timeout().unwrap()), (None, None));
        socket.set_read_timeout(long).unwrap();
        assert_eq!((socket.read_timeout().unwrap(), socket.write_timeout().unwrap()), (long, None));
        socket.set_write_timeout(long).unwrap();
        socket.set_read_timeout(None).unwrap();
        assert_eq!((socket.read_timeout().unwrap(), socket.write_timeout().unwrap()), (None, long));
        socket.set_write_timeout(None).unwrap();
        assert_eq!(socket.write_timeout().unwrap(), None);
    });
}

#[test]
fn test_read_timeout() {
    everywhere(|| {
        let socket = socket();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut buf = [0; 10];
        let calls: [&mut dyn FnMut() -> std::io::Result<usize>; 4] = [
            &mut || socket.recv(&mut [0; 10]),
            &mut || socket.peek(&mut [0; 10]),
            &mut || Ok(socket.peek_from(&mut [0; 10])?.0),
            &mut || Ok(socket.recv_from(&mut buf)?.0),
        ];
        for call in calls {
            let start = Instant::now();
            let error = call().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
            assert!(start.elapsed() >= Duration::from_millis(50));
        }
    });
}

#[test]
fn test_read_with_timeout() {
    everywhere(|| {
        let socket = socket();
        let address = socket.local_addr().unwrap();
        for _ in 0..2 {
            // Longer than the message may be on its way.
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            socket.send_to(b"hello world", address).unwrap();
            let mut buf = [0; 11];
            assert_eq!(socket.recv_from(&mut buf).unwrap(), (11, address));
            assert_eq!(&buf, b"hello world");
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            assert_eq!(kind(socket.recv_from(&mut buf)), ErrorKind::WouldBlock);
        }
    });
}

#[test]
fn test_timeout_zero_duration() {
    everywhere(|| {
        let socket = socket();
        assert_eq!(kind(socket.set_write_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(kind(socket.set_read_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(socket.read_timeout().unwrap(), None);
    });
}

#[test]
fn connect_send_recv() {
    everywhere(|| {
        let socket = socket();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        assert_eq!(socket.send(b"hello world").unwrap(), 11);
        let mut buf = [0; 11];
        assert_eq!(socket.recv(&mut buf).unwrap(), 11);
        assert_eq!(&buf, b"hello world");
    });
}

#[test]
fn connect_send_peek_recv() {
    everywhere(|| {
        each_ip(|socket, _| {
            socket.connect(socket.local_addr().unwrap()).unwrap();
            socket.send(b"hello world").unwrap();
            for _ in 0..2 {
                let mut buf = [0; 11];
                assert_eq!(socket.peek(&mut buf).unwrap(), 11);
                assert_eq!(&buf, b"hello world");
            }
            let mut buf = [0; 11];
            assert_eq!(socket.recv(&mut buf).unwrap(), 11);
            assert_eq!(&buf, b"hello world");
        });
    });
}

#[test]
fn peek_from() {
    everywhere(|| {
        each_ip(|socket, _| {
            let address = socket.local_addr().unwrap();
            socket.send_to(b"hello world", address).unwrap();
            for _ in 0..2 {
                let mut buf = [0; 11];
                assert_eq!(socket.peek_from(&mut buf).unwrap(), (11, address));
                assert_eq!(&buf, b"hello world");
            }
            assert_eq!(socket.recv_from(&mut [0; 11]).unwrap(), (11, address));
        });
    });
}

#[test]
fn ttl() {
    everywhere(|| {
        let socket = socket();
        socket.set_ttl(100).unwrap();
        assert_eq!(socket.ttl().unwrap(), 100);
    });
}

#[test]
fn set_nonblocking() {
    everywhere(|| {
        each_ip(|socket, _| {
            let address = socket.local_addr().unwrap();
            socket.connect(address).unwrap();
            socket.set_nonblocking(true).unwrap();
            assert_eq!(socket.recv(&mut [0]).unwrap_err().raw_os_error(), Some(libc::EAGAIN));
            assert_eq!(kind(socket.peek_from(&mut [0])), ErrorKind::WouldBlock);
            socket.send(&[1]).unwrap();
            until(|| socket.recv(&mut [0]).is_ok());
            socket.set_nonblocking(false).unwrap();
            let clone = socket.try_clone().unwrap();
            let sender = beside(move || clone.send(&[2]).unwrap());
            assert_eq!(socket.recv(&mut [0]).unwrap(), 1);
            sender.join();
        });
    });
}

/// The buffer is made of untouched pages.
#[cfg(target_pointer_width = "64")]
#[test]
fn send_datagram_larger_than_c_int_max() {
    let data = vec![0; libc::c_int::MAX as usize + 1];
    let socket = socket();
    let address = socket.local_addr().unwrap();
    assert!(socket.send_to(&data, address).is_err());
    socket.connect(address).unwrap();
    assert!(socket.send(&data).is_err());
}

// ---- what std's docs say beside ----

#[test]
fn message_that_does_not_fit_is_cut_off() {
    everywhere(|| {
        let socket = socket();
        let address = socket.local_addr().unwrap();
        socket.send_to(b"long", address).unwrap();
        socket.send_to(b"", address).unwrap();
        socket.send_to(b"next", address).unwrap();
        let mut buf = [0; 2];
        assert_eq!(socket.recv_from(&mut buf).unwrap(), (2, address));
        assert_eq!(&buf, b"lo");
        assert_eq!(socket.recv_from(&mut buf).unwrap(), (0, address));
        assert_eq!(socket.recv_from(&mut []).unwrap(), (0, address));
        socket.set_nonblocking(true).unwrap();
        assert_eq!(kind(socket.recv_from(&mut buf)), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_message_without_a_receiver_is_refused_and_the_socket_goes_on() {
    everywhere(|| {
        let (socket, closed) = (socket(), secluded());
        let there = closed.local_addr().unwrap();
        socket.connect(there).unwrap();
        drop(closed);
        socket.send(&[1]).unwrap();
        assert_eq!(kind(socket.recv(&mut [0])), ErrorKind::ConnectionRefused);
        let later = UdpSocket::bind(there).unwrap();
        socket.send(&[2]).unwrap();
        assert_eq!(later.recv(&mut [0]).unwrap(), 1);
    });
}

#[test]
fn a_refusal_wakes_a_sleeping_receiver() {
    everywhere(|| {
        let (receiver, closed) = (socket(), secluded());
        receiver.connect(closed.local_addr().unwrap()).unwrap();
        let sender = receiver.try_clone().unwrap();
        drop(closed);
        let receiver = beside(move || kind(receiver.recv(&mut [0])));
        nap(5);
        // The first look takes the error away, so the message that causes it is the last call of this side.
        sender.send(&[1]).unwrap();
        assert_eq!(receiver.join(), ErrorKind::ConnectionRefused);
    });
}

/// No method of std's shuts one down, but other means do.
#[test]
fn a_receiver_that_is_shut_down_hears_of_it() {
    everywhere(|| {
        let socket = socket();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let clone = socket.try_clone().unwrap();
        let receiver = beside(move || (clone.recv(&mut [0; 4]).unwrap(), clone.recv(&mut [0; 4]).unwrap()));
        nap(5);
        socket.send(&[1, 2]).unwrap();
        socket2::SockRef::from(&socket).shutdown(std::net::Shutdown::Read).unwrap();
        assert_eq!(receiver.join(), (2, 0));
        assert_eq!(socket.peek(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn connect_filters_what_comes() {
    everywhere(|| {
        let (socket, friend, stranger) = (socket(), socket(), socket());
        let here = socket.local_addr().unwrap();
        socket.connect(friend.local_addr().unwrap()).unwrap();
        stranger.send_to(b"spam", here).unwrap();
        friend.send_to(b"mail", here).unwrap();
        let mut buf = [0; 4];
        socket.recv(&mut buf).unwrap();
        assert_eq!(&buf, b"mail");
        // Another `connect` replaces the first; an address among several is enough.
        let several = [SocketAddr::from(([192, 0, 2, 1], 0)), stranger.local_addr().unwrap()];
        socket.connect(&several[1..]).unwrap();
        assert_eq!(socket.peer_addr().unwrap(), several[1]);
    });
}

#[test]
fn send_to_needs_an_address() {
    everywhere(|| {
        let none: &[SocketAddr] = &[];
        assert_eq!(kind(socket().send_to(&[1], none)), ErrorKind::InvalidInput);
        assert_eq!(kind(socket().send(&[1])), kind(std_socket().send(&[1])));
    });
}

fn std_socket() -> std::net::UdpSocket {
    std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

#[test]
fn options_are_read_back() {
    everywhere(|| {
        let socket = socket();
        for on in [true, false] {
            socket.set_broadcast(on).unwrap();
            assert_eq!(socket.broadcast().unwrap(), on);
            socket.set_multicast_loop_v4(on).unwrap();
            assert_eq!(socket.multicast_loop_v4().unwrap(), on);
        }
        socket.set_multicast_ttl_v4(9).unwrap();
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 9);
        assert!(socket.take_error().unwrap().is_none());
        socket.set_recv_buffer_size(20_000).unwrap();
        assert!(socket.recv_buffer_size().unwrap() >= 20_000);
        socket.set_send_buffer_size(20_000).unwrap();
        assert!(socket.send_buffer_size().unwrap() >= 20_000);
        if let Some(socket) = socket6() {
            socket.set_multicast_loop_v6(false).unwrap();
            assert!(!socket.multicast_loop_v6().unwrap());
        }
    });
}

/// What comes of it depends on the machine's routes; std is asked for comparison.
#[test]
fn groups_are_joined_and_left_as_with_std() {
    everywhere(|| {
        let group = Ipv4Addr::new(224, 0, 0, 123);
        let (ours, stds) = (socket(), std_socket());
        let localhost = Ipv4Addr::LOCALHOST;
        let same = |ours: std::io::Result<()>, stds: std::io::Result<()>| {
            assert_eq!(ours.map_err(|error| error.kind()), stds.map_err(|error| error.kind()));
        };
        same(ours.leave_multicast_v4(&group, &localhost), stds.leave_multicast_v4(&group, &localhost));
        same(ours.join_multicast_v4(&group, &localhost), stds.join_multicast_v4(&group, &localhost));
        same(ours.leave_multicast_v4(&group, &localhost), stds.leave_multicast_v4(&group, &localhost));
        let group = "ff01::1".parse().unwrap();
        same(ours.join_multicast_v6(&group, 0), stds.join_multicast_v6(&group, 0));
        same(ours.leave_multicast_v6(&group, 0), stds.leave_multicast_v6(&group, 0));
    });
}

#[test]
fn a_message_to_a_group_reaches_its_members() {
    everywhere(|| {
        let group = Ipv4Addr::new(239, 255, 77, 1);
        let member = UdpSocket::bind((group, 0)).unwrap();
        member.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
        let sender = socket();
        socket2::SockRef::from(&sender).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        let port = member.local_addr().unwrap().port();
        let receiver = beside(move || {
            let mut buf = [0; 8];
            let (len, from) = member.recv_from(&mut buf).unwrap();
            (buf[..len].to_vec(), from)
        });
        sender.send_to(b"all", (group, port)).unwrap();
        assert_eq!(receiver.join(), (b"all".to_vec(), sender.local_addr().unwrap()));
    });
}

// ---- changing hands ----

#[test]
fn sockets_change_into_std_and_back() {
    everywhere(|| {
        let (sender, socket) = (socket(), socket());
        let to = socket.local_addr().unwrap();
        let receiver = beside(move || {
            socket.recv(&mut [0]).unwrap();
            socket
        });
        nap(5);
        sender.send_to(&[1], to).unwrap();
        let std = std::net::UdpSocket::from(receiver.join());
        assert!(!socket2::SockRef::from(&std).nonblocking().unwrap());
        std.set_read_timeout(Some(Duration::from_secs(7))).unwrap();
        let socket = UdpSocket::from(OwnedFd::from(UdpSocket::from(std)));
        assert_eq!(socket.read_timeout().unwrap(), Some(Duration::from_secs(7)));
        // SAFETY: the descriptor comes from `into_raw_fd`, so it is open and ours alone.
        let socket = unsafe { UdpSocket::from_raw_fd(socket.into_raw_fd()) };
        sender.send_to(&[2], to).unwrap();
        assert_eq!(socket.recv(&mut [0]).unwrap(), 1);
    });
}

#[test]
fn a_socket_of_another_family_says_so() {
    everywhere(|| {
        let (one, other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let socket = UdpSocket::from(OwnedFd::from(one));
        other.send(&[1]).unwrap();
        assert_eq!(kind(socket.recv_from(&mut [0])), ErrorKind::InvalidInput);
    });
}

/// Never called: the markers are what is tested.
#[expect(dead_code, reason = "it is there to be compiled")]
fn the_type_is_as_usable_as_that_of_std() {
    fn movable<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + std::fmt::Debug + 'static>() {}
    movable::<UdpSocket>();
}

// ---- tasks ----

#[test]
fn many_tasks_receive_from_one_socket() {
    const RECEIVERS: usize = 20;
    everywhere(|| {
        let (sender, socket) = (socket(), Arc::new(socket()));
        let to = socket.local_addr().unwrap();
        let receivers: Vec<_> = (0..RECEIVERS)
            .map(|_| {
                let socket = Arc::clone(&socket);
                beside(move || {
                    let mut buf = [0; 8];
                    socket.recv_from(&mut buf).unwrap();
                    usize::from_ne_bytes(buf)
                })
            })
            .collect();
        nap(5);
        for number in 0..RECEIVERS {
            sender.send_to(&number.to_ne_bytes(), to).unwrap();
        }
        let mut heard: Vec<usize> = receivers.into_iter().map(|receiver| receiver.join()).collect();
        heard.sort();
        assert!(heard.into_iter().eq(0..RECEIVERS));
    });
}

#[test]
fn a_clone_turned_blocking_elsewhere_does_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (sender, socket) = (socket(), socket());
            let to = socket.local_addr().unwrap();
            let receiver = fibra_runtime::spawn(move || {
                let elsewhere = std::net::UdpSocket::from(socket.as_fd().try_clone_to_owned().unwrap());
                elsewhere.set_nonblocking(false).unwrap();
                socket.recv(&mut [0]).unwrap()
            });
            let sender = fibra_runtime::spawn(move || sender.send_to(&[1], to).unwrap());
            assert_eq!(receiver.join().unwrap() + sender.join().unwrap(), 2);
        });
    });
}

#[test]
fn a_cancelled_receiver_leaves_the_others_waiting() {
    in_tasks(|| {
        let (sender, socket) = (socket(), Arc::new(socket()));
        let to = socket.local_addr().unwrap();
        let receivers = [(), (), ()].map(|()| {
            let socket = Arc::clone(&socket);
            fibra_runtime::spawn(move || socket.recv(&mut [0]).unwrap())
        });
        nap(5);
        receivers[1].task().cancel();
        let [first, cancelled, last] = receivers;
        assert!(cancelled.join().unwrap_err().is_cancelled());
        sender.send_to(&[1], to).unwrap();
        sender.send_to(&[1], to).unwrap();
        assert_eq!(first.join().unwrap() + last.join().unwrap(), 2);
    });
}

#[test]
fn many_rounds_of_ping_pong() {
    everywhere(|| {
        let (one, other) = (socket(), socket());
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        let echo = beside(move || {
            let mut buf = [0; 4];
            for _ in 0..500 {
                other.recv(&mut buf).unwrap();
                other.send(&buf).unwrap();
            }
        });
        for round in 0..500_u32 {
            one.send(&round.to_ne_bytes()).unwrap();
            let mut buf = [0; 4];
            one.recv(&mut buf).unwrap();
            assert_eq!(u32::from_ne_bytes(buf), round);
        }
        echo.join();
    });
}

/// A datagram socket learns of an error twice: by the call that fails, and by a message in the error queue, which only explicit
/// reads empty. A poll reports the message for as long as it is there.
#[test]
fn an_unread_error_keeps_no_receive_beyond_its_timeout() {
    let promise = || {
        let closed = secluded().local_addr().unwrap();
        let socket = socket();
        set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVERR);
        socket.connect(closed).unwrap();
        socket.send(&[1]).unwrap();
        assert_eq!(kind(socket.recv(&mut [0])), ErrorKind::ConnectionRefused);
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert_eq!(kind(socket.recv(&mut [0])), ErrorKind::WouldBlock);
    };
    everywhere(promise);
    guarded(|| Runtime::builder().workers(1).build().unwrap().run(promise));
}
