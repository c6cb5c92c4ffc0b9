//! Several addresses are raced; the losers leave nothing behind.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::sides::beside;
use crate::common::{everywhere, everywhere_at_once, in_tasks, kind, listener, listener6, until};
use crate::refused::refused;
use crate::silent::Silent;
use fibra_io::net::{TcpSocket, TcpStream};
use fibra_runtime::spawn;

/// How much earlier an attempt begins than the next one.
const HEAD_START: Duration = Duration::from_millis(250);

#[cfg(target_os = "linux")]
/// Sockets of this process that wait for an answer of `address`.
fn asking(address: SocketAddr) -> usize {
    // Thousands of lines, where other tests have had as many connections: the remote port, and the state SYN_SENT.
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.matches(&format!(":{:04X} 02 ", address.port())).count()
}

#[test]
fn a_silent_address_does_not_hold_up_the_next() {
    everywhere_at_once(|| {
        let silent = Silent::new();
        let (listener, address) = listener();
        let start = Instant::now();
        let mut stream = TcpStream::connect(&[silent.address, address][..]).unwrap();
        let took = start.elapsed();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(took >= HEAD_START, "{took:?}");
        stream.write_all(&[1]).unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
    });
}

#[test]
fn several_silent_addresses_cost_a_head_start_each() {
    everywhere_at_once(|| {
        let silent = Silent::new();
        let (_listener, address) = listener();
        let stream = TcpStream::connect(&[silent.address, silent.address, address][..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[test]
fn a_refusal_lets_the_next_begin_at_once() {
    everywhere(|| {
        let (_listener, address) = listener();
        let mut addresses = vec![refused(); 100];
        addresses.push(address);
        let start = Instant::now();
        let stream = TcpStream::connect(&addresses[..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(start.elapsed() < 100 * HEAD_START);
    });
}

#[test]
fn the_last_error_is_told_if_none_answers() {
    everywhere(|| {
        assert_eq!(kind(TcpStream::connect(&[refused(), refused()][..])), ErrorKind::ConnectionRefused);
    });
}

/// The stream that wins after a race is as blocking as any once it is given to std.
#[test]
fn the_winner_is_an_ordinary_stream() {
    everywhere_at_once(|| {
        let silent = Silent::new();
        let (_listener, address) = listener();
        let stream = TcpStream::connect(&[silent.address, address][..]).unwrap();
        assert!(!socket2::SockRef::from(&stream).nonblocking().unwrap());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn losers_are_closed_when_the_race_is_over() {
    everywhere_at_once(|| {
        let silent = Silent::new();
        let (_listener, address) = listener();
        TcpStream::connect(&[silent.address, silent.address, address][..]).unwrap();
        assert_eq!(asking(silent.address), 0);
    });
}

#[test]
fn an_attempt_that_fails_does_not_end_the_others() {
    everywhere_at_once(|| {
        let silent = Silent::new();
        let (_listener, address) = listener();
        let addresses = [silent.address, refused(), silent.address, refused(), address];
        let stream = TcpStream::connect(&addresses[..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

/// The first address answers when others have begun. It is asked again after a second.
#[cfg(target_os = "linux")]
#[test]
fn a_late_answer_counts() {
    everywhere_at_once(|| {
        let (slow, silent) = (Silent::new(), Silent::new());
        let addresses = [slow.address, silent.address];
        let racer = beside(move || TcpStream::connect(&addresses[..]).unwrap().peer_addr().unwrap());
        until(|| asking(silent.address) == 1);
        // A client that leaves the queue makes room in it.
        let _accepted: Vec<_> = slow.queue.iter().map(|_| slow.listener.accept().unwrap()).collect();
        assert_eq!(racer.join(), slow.address);
        assert_eq!(asking(silent.address), 0);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_race_that_is_left_closes_all() {
    in_tasks(|| {
        let silent = Silent::new();
        let racer = spawn(move || TcpStream::connect(&[silent.address; 3][..]).map(drop));
        until(|| asking(silent.address) >= 2);
        racer.cancel();
        assert!(racer.join().unwrap_err().is_cancelled());
        assert_eq!(asking(silent.address), 0);
    });
}

#[test]
fn ipv4_answers_where_ipv6_is_silent() {
    everywhere_at_once(|| {
        let (_listener, address) = listener();
        // An address of the range for documentation, which is routed nowhere: refused at once, or never answered.
        let nowhere = SocketAddr::from((std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9));
        let stream = TcpStream::connect(&[nowhere, nowhere, address][..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[test]
fn ipv6_is_as_good() {
    everywhere(|| {
        let Some((_listener, address)) = listener6() else { return };
        let stream = TcpStream::connect(&[refused(), address][..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_timeout_that_passes_is_told_so() {
    everywhere(|| {
        let silent = Silent::new();
        let outcome = TcpStream::connect_timeout(&silent.address, Duration::from_millis(30));
        assert_eq!(kind(outcome), ErrorKind::TimedOut);
        assert_eq!(asking(silent.address), 0);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_connect_fails_at_its_deadline() {
    everywhere(|| {
        let silent = Silent::new();
        let deadline = Instant::now() + Duration::from_millis(30);
        assert_eq!(kind(TcpStream::connect_deadline(&silent.address, deadline)), ErrorKind::TimedOut);
        assert!(Instant::now() >= deadline);
        let socket = TcpSocket::v4().unwrap();
        assert_eq!(kind(socket.connect_deadline(silent.address, deadline)), ErrorKind::TimedOut);
        assert_eq!(asking(silent.address), 0);
    });
}

#[test]
fn a_connect_before_its_deadline_succeeds_and_other_errors_are_told() {
    everywhere(|| {
        let (listener, address) = listener();
        let far = Instant::now() + Duration::from_secs(600);
        let stream = TcpStream::connect_deadline(&address, far).unwrap();
        assert_eq!(listener.accept().unwrap().1, stream.local_addr().unwrap());
        TcpSocket::v4().unwrap().connect_deadline(address, far).unwrap();
        assert_eq!(kind(TcpStream::connect_deadline(&refused(), far)), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_timeout_of_zero_is_no_timeout() {
    everywhere(|| {
        let (_listener, address) = listener();
        assert_eq!(kind(TcpStream::connect_timeout(&address, Duration::ZERO)), ErrorKind::InvalidInput);
    });
}
