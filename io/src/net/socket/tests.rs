#![forbid(unsafe_code)]

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{Direction, Socket};
use crate::waiting::attempt::Attempt;

fn connected() -> Socket<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Socket::fresh(TcpStream::connect(listener.local_addr().unwrap()).unwrap())
}

#[test]
fn a_socket_without_timeouts_keeps_no_place_for_one() {
    let socket = connected();
    assert_eq!((socket.timeout(Direction::Read), socket.timeout(Direction::Write)), (None, None));
    socket.set_timeout(Direction::Read, None).unwrap();
    socket.set_timeout(Direction::Write, None).unwrap();
    assert!(socket.timeouts.get().is_none());
}

#[test]
fn a_timeout_that_was_set_is_taken_away() {
    let socket = connected();
    let second = Some(Duration::from_secs(1));
    socket.set_timeout(Direction::Read, second).unwrap();
    assert_eq!((socket.timeout(Direction::Read), socket.timeout(Direction::Write)), (second, None));
    socket.set_timeout(Direction::Write, second).unwrap();
    socket.set_timeout(Direction::Read, None).unwrap();
    assert_eq!((socket.timeout(Direction::Read), socket.timeout(Direction::Write)), (None, second));
}

/// The mode does not say what a short read means.
#[test]
fn a_clone_knows_what_the_socket_does() {
    let (unix, _peer) = UnixStream::pair().unwrap();
    let (tcp, unix) = (connected(), Socket::fresh(unix));
    for nonblocking in [true, false] {
        tcp.set_nonblocking(nonblocking).unwrap();
        unix.set_nonblocking(nonblocking).unwrap();
        let (tcp, unix) = (tcp.try_clone().unwrap(), unix.try_clone().unwrap());
        assert!(matches!(tcp.io.have_read(1, 2), Attempt::Drained(1)));
        assert!(matches!(unix.io.have_read(1, 2), Attempt::Done(1)));
        assert_eq!((tcp.io.rechecks_writes(), unix.io.rechecks_writes()), (false, true));
    }
}
