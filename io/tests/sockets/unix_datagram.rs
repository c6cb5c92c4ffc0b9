//! Datagrams of the Unix family keep the promises of std's, in plain threads and in tasks.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::abstract_name::abstract_address;
use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, runtime, until};
use crate::folder::Folder;
use fibra_io::os::linux::net::SocketAddrExt;
use fibra_io::os::unix::net::{SocketAddr, UnixDatagram};
use fibra_runtime::{Runtime, spawn};

fn pair() -> (UnixDatagram, UnixDatagram) {
    UnixDatagram::pair().unwrap()
}

/// A bound socket, and its path.
fn bound(folder: &Folder, name: &str) -> (UnixDatagram, PathBuf) {
    let path = folder.file(name);
    (UnixDatagram::bind(&path).unwrap(), path)
}

// ---- std's own scenarios ----

#[test]
fn long_path() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file(&"a".repeat(108));
        assert_eq!(kind(UnixDatagram::bind(&path)), ErrorKind::InvalidInput);
        let socket = UnixDatagram::unbound().unwrap();
        assert_eq!(kind(socket.connect(&path)), ErrorKind::InvalidInput);
        assert_eq!(kind(socket.send_to(&[1], &path)), ErrorKind::InvalidInput);
        assert_eq!(kind(socket.send_to(&[1], "\0name")), ErrorKind::InvalidInput);
    });
}

#[test]
fn test_unix_datagram() {
    everywhere(|| {
        let folder = Folder::new();
        let ((one, from), (other, to)) = (bound(&folder, "one"), bound(&folder, "other"));
        assert_eq!(one.send_to(b"hello world", &to).unwrap(), 11);
        let mut buf = [0; 11];
        let (len, sender) = other.recv_from(&mut buf).unwrap();
        assert_eq!((len, sender.as_pathname()), (11, Some(&*from)));
        assert_eq!(&buf, b"hello world");
    });
}

#[test]
fn test_unnamed_unix_datagram() {
    everywhere(|| {
        let folder = Folder::new();
        let (one, to) = bound(&folder, "one");
        UnixDatagram::unbound().unwrap().send_to(b"hello world", &to).unwrap();
        let mut buf = [0; 11];
        let (len, sender) = one.recv_from(&mut buf).unwrap();
        assert!(len == 11 && sender.is_unnamed() && sender.as_pathname().is_none());
        assert_eq!(format!("{sender:?}"), "(unnamed)");
        assert_eq!(&buf, b"hello world");
    });
}

#[test]
fn test_unix_datagram_connect_to_recv_addr() {
    everywhere(|| {
        let folder = Folder::new();
        let ((one, _), (other, _)) = (bound(&folder, "one"), bound(&folder, "other"));
        other.send_to_addr(b"hello world", &one.local_addr().unwrap()).unwrap();
        let (_, sender) = one.recv_from(&mut [0; 11]).unwrap();
        one.connect_addr(&sender).unwrap();
        one.send(b"hello back").unwrap();
        let mut buf = [0; 10];
        assert_eq!(other.recv(&mut buf).unwrap(), 10);
        assert_eq!(&buf, b"hello back");
    });
}

#[test]
fn test_connect_unix_datagram() {
    everywhere(|| {
        let folder = Folder::new();
        let ((one, to_one), (other, to_other)) = (bound(&folder, "one"), bound(&folder, "other"));
        let socket = UnixDatagram::unbound().unwrap();
        assert_eq!(kind(socket.peer_addr()), ErrorKind::NotConnected);
        assert_eq!(kind(socket.send(&[1])), ErrorKind::NotConnected);
        socket.connect(&to_one).unwrap();
        assert_eq!(socket.peer_addr().unwrap().as_pathname(), Some(&*to_one));
        socket.send(b"hello there").unwrap();
        let mut buf = [0; 11];
        let (len, sender) = one.recv_from(&mut buf).unwrap();
        assert!(len == 11 && sender.is_unnamed());
        socket.connect(&to_other).unwrap();
        socket.send(b"hello there").unwrap();
        assert_eq!(other.recv(&mut buf).unwrap(), 11);
    });
}

#[test]
fn test_unix_datagram_recv() {
    everywhere(|| {
        let folder = Folder::new();
        let (one, to) = bound(&folder, "one");
        let sender = beside(move || {
            let socket = UnixDatagram::unbound().unwrap();
            socket.connect(&to).unwrap();
            nap(5);
            socket.send(b"hello world").unwrap();
        });
        let mut buf = [0; 11];
        assert_eq!(one.recv(&mut buf).unwrap(), 11);
        assert_eq!(&buf, b"hello world");
        sender.join();
    });
}

#[test]
fn datagram_pair() {
    everywhere(|| {
        let (here, there) = pair();
        let other = beside(move || {
            let mut buf = [0; 5];
            here.recv(&mut buf).unwrap();
            assert_eq!(&buf, b"hello");
            here.send(b"world!").unwrap();
        });
        there.send(b"hello").unwrap();
        let mut buf = [0; 6];
        assert_eq!(there.recv(&mut buf).unwrap(), 6);
        assert_eq!(&buf, b"world!");
        other.join();
    });
}

#[test]
fn test_unix_datagram_timeout_zero_duration() {
    everywhere(|| {
        let (socket, _other) = pair();
        assert_eq!(kind(socket.set_write_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(kind(socket.set_read_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
    });
}

#[test]
fn abstract_socket_addr_debug() {
    let address = SocketAddr::from_abstract_name(b"\0hello\x01\t\n\xfe").unwrap();
    assert_eq!(format!("{address:?}"), r#""\0hello\x01\t\n\xfe" (abstract)"#);
}

#[test]
fn test_abstract_datagram_bind_send_to_addr() {
    everywhere(|| {
        let (from, to) = (abstract_address(), abstract_address());
        let sender = UnixDatagram::bind_addr(&from).unwrap();
        assert_eq!(sender.local_addr().unwrap().as_abstract_name(), from.as_abstract_name());
        let receiver = UnixDatagram::bind_addr(&to).unwrap();
        assert_eq!(sender.send_to_addr(b"hello world", &to).unwrap(), 11);
        let mut buf = [0; 11];
        let (len, sender) = receiver.recv_from(&mut buf).unwrap();
        assert_eq!((len, sender.as_abstract_name()), (11, from.as_abstract_name()));
        assert_eq!(&buf, b"hello world");
    });
}

#[test]
fn test_abstract_datagram_connect_addr() {
    everywhere(|| {
        let socket = UnixDatagram::unbound().unwrap();
        for address in [abstract_address(), abstract_address()] {
            let receiver = UnixDatagram::bind_addr(&address).unwrap();
            socket.connect_addr(&address).unwrap();
            socket.send(b"hello world").unwrap();
            let (len, sender) = receiver.recv_from(&mut [0; 11]).unwrap();
            assert!(len == 11 && sender.is_unnamed());
        }
    });
}

#[test]
fn test_abstract_name_too_long() {
    assert_eq!(kind(SocketAddr::from_abstract_name([b'a'; 108])), ErrorKind::InvalidInput);
}

#[test]
fn test_abstract_no_pathname_and_not_unnamed() {
    let address = SocketAddr::from_abstract_name(b"local").unwrap();
    assert_eq!(address.as_pathname(), None);
    assert_eq!(address.as_abstract_name(), Some(&b"local"[..]));
    assert!(!address.is_unnamed());
}

#[test]
fn test_unix_datagram_peek() {
    everywhere(|| {
        let (here, there) = pair();
        there.send(b"hello world").unwrap();
        for _ in 0..2 {
            let mut buf = [0; 11];
            assert_eq!(here.peek(&mut buf).unwrap(), 11);
            assert_eq!(&buf, b"hello world");
        }
        assert_eq!(here.recv(&mut [0; 11]).unwrap(), 11);
    });
}

#[test]
fn test_unix_datagram_peek_from() {
    everywhere(|| {
        let folder = Folder::new();
        let ((one, from), (other, to)) = (bound(&folder, "one"), bound(&folder, "other"));
        one.send_to(b"hello world", &to).unwrap();
        for _ in 0..2 {
            let (len, sender) = other.peek_from(&mut [0; 11]).unwrap();
            assert_eq!((len, sender.as_pathname()), (11, Some(&*from)));
        }
        assert_eq!(other.recv(&mut [0; 11]).unwrap(), 11);
    });
}

/// The longest paths and names that std's addresses hold come and go whole.
#[test]
fn test_unix_datagram_max_path() {
    everywhere(|| {
        let folder = Folder::new();
        let long = |name: &str| {
            let taken = folder.file("").as_os_str().as_bytes().len();
            folder.file(&name.repeat(107 - taken))
        };
        let (from, to) = (long("a"), long("b"));
        let (one, other) = (UnixDatagram::bind(&from).unwrap(), UnixDatagram::bind(&to).unwrap());
        assert_eq!(from.as_os_str().len(), 107);
        one.send_to(b"hello", &to).unwrap();
        assert_eq!(other.recv_from(&mut [0; 5]).unwrap().1.as_pathname(), Some(&*from));

        let name = |byte: u8| {
            let mut name = format!("fibra longest {}", std::process::id()).into_bytes();
            name.resize(106, byte);
            SocketAddr::from_abstract_name([name.as_slice(), &[fresh_byte()]].concat()).unwrap()
        };
        let (from, to) = (name(b'a'), name(b'b'));
        let (one, other) = (UnixDatagram::bind_addr(&from).unwrap(), UnixDatagram::bind_addr(&to).unwrap());
        one.send_to_addr(b"hello", &to).unwrap();
        let (_, sender) = other.recv_from(&mut [0; 5]).unwrap();
        assert_eq!(sender.as_abstract_name(), from.as_abstract_name());
    });
}

/// Another one each time.
fn fresh_byte() -> u8 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) as u8
}

/// A path of 108 bytes is one more than std's type takes.
#[test]
fn a_message_arrives_from_a_sender_with_a_path_too_long_for_an_address() {
    everywhere(|| {
        let folder = Folder::new();
        let (receiver, to) = bound(&folder, "receiver");
        let taken = folder.file("").as_os_str().as_bytes().len();
        let path = folder.file(&"c".repeat(108 - taken));
        // SAFETY: all zeroes is a valid `sockaddr_un`.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (place, byte) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
            *place = *byte as libc::c_char;
        }
        let sender = UnixDatagram::unbound().unwrap();
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the descriptor is open, and the address has that length and outlives the call.
        let bound = unsafe {
            libc::bind(std::os::fd::AsRawFd::as_raw_fd(&sender), std::ptr::from_ref(&address).cast(), len)
        };
        assert_eq!(bound, 0);
        sender.send_to(b"hello", &to).unwrap();
        let (len, from) = receiver.recv_from(&mut [0; 5]).unwrap();
        assert!(len == 5 && from.is_unnamed());
        sender.send_with_fds_to(b"hello", &[sender.as_fd()], &to).unwrap();
        let (len, from) = receiver.recv_with_fds_from(&mut [0; 5], &mut Vec::new()).unwrap();
        assert!(len == 5 && from.is_unnamed());
    });
}

// ---- what std's docs say beside ----

#[test]
fn timeouts() {
    everywhere(|| {
        let (socket, _other) = pair();
        let short = Some(Duration::from_millis(50));
        socket.set_read_timeout(short).unwrap();
        socket.set_write_timeout(short).unwrap();
        assert_eq!((socket.read_timeout().unwrap(), socket.write_timeout().unwrap()), (short, short));
        let start = Instant::now();
        assert_eq!(kind(socket.recv(&mut [0])), ErrorKind::WouldBlock);
        assert_eq!(kind(socket.recv_from(&mut [0])), ErrorKind::WouldBlock);
        assert!(start.elapsed() >= Duration::from_millis(100));
        let error = loop {
            if let Err(error) = socket.send(&[0; 100]) {
                break error;
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
    });
}

#[test]
fn debug_names_both_ends() {
    everywhere(|| {
        let folder = Folder::new();
        let (socket, path) = bound(&folder, "one");
        socket.connect(&path).unwrap();
        let text = format!("{socket:?}");
        assert!(text.starts_with("UnixDatagram { fd: "), "{text}");
        let ends = format!("local: {path:?} (pathname), peer: {path:?} (pathname) }}");
        assert!(text.ends_with(&ends), "{text}");
    });
}

#[test]
fn set_nonblocking() {
    everywhere(|| {
        let folder = Folder::new();
        let (receiver, to) = bound(&folder, "one");
        receiver.set_nonblocking(true).unwrap();
        assert_eq!(kind(receiver.recv(&mut [0])), ErrorKind::WouldBlock);
        let sender = UnixDatagram::unbound().unwrap();
        sender.set_nonblocking(true).unwrap();
        while sender.send_to(&[1], &to).is_ok() {}
        assert_eq!(kind(sender.send_to(&[1], &to)), ErrorKind::WouldBlock);
        until(|| receiver.recv(&mut [0]).is_ok());
        sender.send_to(&[1], &to).unwrap();
        assert!(sender.take_error().unwrap().is_none());
    });
}

#[test]
fn shutdown_wakes_a_sleeping_receiver_of_a_clone() {
    everywhere(|| {
        let (socket, _other) = pair();
        let clone = socket.try_clone().unwrap();
        let receiver = beside(move || clone.recv(&mut [0]).unwrap());
        nap(5);
        socket.shutdown(Shutdown::Read).unwrap();
        assert_eq!(receiver.join(), 0);
    });
}

#[test]
fn messages_sent_before_a_shutdown_are_received_before_the_end() {
    everywhere(|| {
        let (here, there) = pair();
        for _ in 0..3 {
            there.send(&[1, 2]).unwrap();
        }
        here.shutdown(Shutdown::Both).unwrap();
        for _ in 0..3 {
            assert_eq!(here.recv(&mut [0; 4]).unwrap(), 2);
        }
        let (len, from) = here.recv_from(&mut [0; 4]).unwrap();
        assert!(len == 0 && from.is_unnamed());
        assert_eq!(here.peek(&mut [0; 4]).unwrap() + here.peek_from(&mut [0; 4]).unwrap().0, 0);
    });
}

#[test]
fn shutdown_wakes_a_sleeping_sender_of_a_clone() {
    everywhere(|| {
        let (socket, _other) = pair();
        let clone = socket.try_clone().unwrap();
        let sender = beside(move || {
            loop {
                if let Err(error) = clone.send(&[1]) {
                    return error.kind();
                }
            }
        });
        nap(5);
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(sender.join(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_receiver_that_is_dropped_wakes_its_senders() {
    everywhere(|| {
        let folder = Folder::new();
        let (receiver, to) = bound(&folder, "one");
        let unconnected = UnixDatagram::unbound().unwrap();
        let connected = UnixDatagram::unbound().unwrap();
        connected.connect(&to).unwrap();
        let one = beside(move || {
            loop {
                if let Err(error) = unconnected.send_to(&[1], &to) {
                    return error.kind();
                }
            }
        });
        let other = beside(move || {
            loop {
                if let Err(error) = connected.send(&[1]) {
                    return error.kind();
                }
            }
        });
        nap(5);
        drop(receiver);
        assert_eq!((one.join(), other.join()), (ErrorKind::ConnectionRefused, ErrorKind::ConnectionRefused));
    });
}

// ---- a receiver with a full queue ----

/// What comes from one sender is neither lost nor reordered, however it is addressed and however slowly it is taken.
fn all_arrives(send: impl Fn(&UnixDatagram, &Path, &[u8]) + Send + 'static, connect: bool) {
    const COUNT: u32 = 2000;
    let folder = Folder::new();
    let (receiver, to) = bound(&folder, "one");
    let sender = UnixDatagram::unbound().unwrap();
    if connect {
        sender.connect(&to).unwrap();
    }
    let sender = beside(move || (0..COUNT).for_each(|number| send(&sender, &to, &number.to_ne_bytes())));
    nap(5);
    for number in 0..COUNT {
        let mut buf = [0; 4];
        receiver.recv(&mut buf).unwrap();
        assert_eq!(u32::from_ne_bytes(buf), number);
        if number % 500 == 0 {
            nap(2);
        }
    }
    sender.join();
}

#[test]
fn send_waits_for_room_at_the_receiver() {
    everywhere(|| all_arrives(|socket, _to, bytes| assert_eq!(socket.send(bytes).unwrap(), 4), true));
}

#[test]
fn send_to_waits_for_room_at_the_receiver() {
    everywhere(|| all_arrives(|socket, to, bytes| assert_eq!(socket.send_to(bytes, to).unwrap(), 4), false));
}

#[test]
fn send_to_on_a_connected_socket_waits_for_room_at_the_receiver() {
    everywhere(|| all_arrives(|socket, to, bytes| assert_eq!(socket.send_to(bytes, to).unwrap(), 4), true));
}

#[test]
fn many_senders_wait_for_room_at_one_receiver() {
    const SENDERS: usize = 10;
    const EACH: usize = 100;
    everywhere(|| {
        let folder = Folder::new();
        let (receiver, to) = bound(&folder, "one");
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let to = to.clone();
                beside(move || {
                    let socket = UnixDatagram::unbound().unwrap();
                    (0..EACH).for_each(|_| assert_eq!(socket.send_to(&[1], &to).unwrap(), 1));
                })
            })
            .collect();
        for _ in 0..SENDERS * EACH {
            assert_eq!(receiver.recv(&mut [0]).unwrap(), 1);
        }
        senders.into_iter().for_each(|sender| sender.join());
    });
}

#[test]
fn send_to_a_full_receiver_times_out() {
    everywhere(|| {
        let folder = Folder::new();
        let (_receiver, to) = bound(&folder, "one");
        let sender = UnixDatagram::unbound().unwrap();
        sender.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let error = loop {
            let start = Instant::now();
            if let Err(error) = sender.send_to(&[1], &to) {
                assert!(start.elapsed() >= Duration::from_millis(50));
                break error;
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
    });
}

/// A sender with a full buffer of its own, at another receiver, waits for that.
#[test]
fn send_to_waits_for_room_of_its_own() {
    everywhere(|| {
        let folder = Folder::new();
        let (receiver, to) = bound(&folder, "one");
        let sender = UnixDatagram::unbound().unwrap();
        sender.set_send_buffer_size(10_000).unwrap();
        let message = vec![7; 6_000];
        let sender = beside(move || {
            for _ in 0..50 {
                sender.send_to(&message, &to).unwrap();
            }
        });
        for _ in 0..50 {
            assert_eq!(receiver.recv(&mut vec![0; 10_000]).unwrap(), 6_000);
        }
        sender.join();
    });
}

/// A receiver connected to the sender is never full to it, and no other socket can wait for it.
#[test]
fn replies_to_a_client_that_is_connected_to_the_server_wait_for_room_of_the_server() {
    const SENDERS: usize = 2;
    const EACH: usize = 10_000;
    everywhere(|| {
        let folder = Folder::new();
        let ((server, at), (client, to)) = (bound(&folder, "server"), bound(&folder, "client"));
        server.set_send_buffer_size(1).unwrap();
        client.connect(&at).unwrap();
        let server = Arc::new(server);
        let senders = [(); SENDERS].map(|()| {
            let (server, to) = (Arc::clone(&server), to.clone());
            beside(move || (0..EACH).for_each(|_| assert_eq!(server.send_to(&[1; 16], &to).unwrap(), 16)))
        });
        // It takes them while the others look what they lack.
        let client = OwnedFd::from(client);
        let receiver = thread::spawn(move || {
            let client = std::os::unix::net::UnixDatagram::from(client);
            (0..SENDERS * EACH).for_each(|_| assert_eq!(client.recv(&mut [0; 16]).unwrap(), 16));
        });
        senders.into_iter().for_each(|sender| sender.join());
        receiver.join().unwrap();
    });
}

#[test]
fn a_cancelled_sender_unwinds() {
    in_tasks(|| {
        let folder = Folder::new();
        let (_receiver, to) = bound(&folder, "one");
        let sender = spawn(move || {
            let socket = UnixDatagram::unbound().unwrap();
            while socket.send_to(&[1], &to).is_ok() {}
        });
        nap(10);
        sender.task().cancel();
        assert!(sender.join().unwrap_err().is_cancelled());
    });
}

// ---- changing hands, tasks ----

#[test]
fn sockets_change_into_std_and_back() {
    everywhere(|| {
        let (here, there) = pair();
        let receiver = beside(move || {
            here.recv(&mut [0]).unwrap();
            here
        });
        nap(5);
        there.send(&[1]).unwrap();
        let std = std::os::unix::net::UnixDatagram::from(receiver.join());
        assert!(!socket2::SockRef::from(&std).nonblocking().unwrap());
        let here = UnixDatagram::from(OwnedFd::from(UnixDatagram::from(std)));
        // SAFETY: the descriptor comes from `into_raw_fd`, so it is open and ours alone.
        let here = unsafe { UnixDatagram::from_raw_fd(here.into_raw_fd()) };
        there.send(&[2]).unwrap();
        assert_eq!(here.recv(&mut [0]).unwrap(), 1);
    });
}

/// Never called: the markers are what is tested.
#[expect(dead_code, reason = "it is there to be compiled")]
fn the_type_is_as_usable_as_that_of_std() {
    fn movable<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + std::fmt::Debug + 'static>() {}
    movable::<UnixDatagram>();
}

#[test]
fn a_clone_turned_blocking_elsewhere_does_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (here, there) = pair();
            let receiver = spawn(move || {
                let fd = here.as_fd().try_clone_to_owned().unwrap();
                std::os::unix::net::UnixDatagram::from(fd).set_nonblocking(false).unwrap();
                here.recv(&mut [0]).unwrap()
            });
            fibra_runtime::yield_now();
            there.send(&[1]).unwrap();
            assert_eq!(receiver.join().unwrap(), 1);
        });
    });
}

#[test]
fn many_tasks_receive_from_one_socket() {
    everywhere(|| {
        let (here, there) = pair();
        let here = Arc::new(here);
        let receivers: Vec<_> = (0..20)
            .map(|_| {
                let here = Arc::clone(&here);
                beside(move || here.recv(&mut [0]).unwrap())
            })
            .collect();
        for _ in 0..20 {
            there.send(&[1]).unwrap();
        }
        assert_eq!(receivers.into_iter().map(|receiver| receiver.join()).sum::<usize>(), 20);
    });
}

/// One worker and no reactor: the waits go to the blocking pool, and the worker runs on.
#[test]
fn a_runtime_without_the_driver_waits_on_the_pool() {
    guarded(|| {
        Runtime::builder().workers(1).build().unwrap().run(|| {
            let folder = Folder::new();
            let (receiver, to) = bound(&folder, "one");
            let sender = spawn(move || {
                let socket = UnixDatagram::unbound().unwrap();
                (0..30).for_each(|_| assert_eq!(socket.send_to(&[1], &to).unwrap(), 1));
            });
            (0..30).for_each(|_| assert_eq!(receiver.recv(&mut [0]).unwrap(), 1));
            sender.join().unwrap();
        });
    });
}
