//! Opening connections: to one address, or to the first of several that answers.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fibra_runtime::{time, wait};
use socket2::Socket;

use super::TcpStream;
use super::connecting::Connecting;
use super::race::connect_first;
use crate::net::ToSocketAddrs;
use crate::net::resolve::{no_address, try_each};
use crate::waiting::timeouts::refuse_zero;

impl TcpStream {
    /// Opens a connection to the first of the addresses that answers.
    ///
    /// A name is looked up on the blocking pool; a literal address is not. Several addresses race by
    /// RFC 8305 ("Happy Eyeballs"): IPv6 and IPv4 alternate, and each attempt has a head start of 250
    /// milliseconds. A failure lets the next attempt begin at once. std tries them in sequence.
    ///
    /// # Cancellation
    ///
    /// Waiting for the outcome is a cancellation point; the sockets are closed.
    ///
    /// # Errors
    ///
    /// That of the last address, or of the lookup; `InvalidInput` if there is no address.
    pub fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {
        connect_any(addr.to_socket_addrs()?)
    }

    /// Opens a connection to one address, within `timeout`.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](TcpStream::connect).
    ///
    /// # Errors
    ///
    /// `TimedOut` when the time has passed, `InvalidInput` if it is zero, and as
    /// [`connect`](TcpStream::connect).
    pub fn connect_timeout(addr: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        connect_to(*addr, end_of(timeout)?)
    }

    /// Opens a connection to one address, by `deadline`.
    ///
    /// After the deadline it still connects if that takes no wait.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](TcpStream::connect).
    ///
    /// # Errors
    ///
    /// `TimedOut` when the deadline has passed, and as [`connect`](TcpStream::connect).
    pub fn connect_deadline(addr: &SocketAddr, deadline: Instant) -> io::Result<TcpStream> {
        connect_to(*addr, Some(deadline))
    }
}

/// Connects to one of the addresses by racing them.
pub(super) fn connect_any(mut addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let first = addresses.next().ok_or_else(no_address)?;
    let Some(second) = addresses.next() else { return connect_to(first, None) };
    let all: Vec<SocketAddr> = [first, second].into_iter().chain(addresses).collect();
    match wait::unwinds_cancelled() {
        // A literal address needs no lookup, so this does not wait.
        true => try_each(&all[..], |address| connect_to(address, None)),
        false => connect_first(all),
    }
}

/// Connects to one address, by `deadline` if there is one.
pub(super) fn connect_to(address: SocketAddr, deadline: Option<Instant>) -> io::Result<TcpStream> {
    Connecting::start(address)?.by(deadline)
}

/// Connects a socket, which other code may have had, to one address.
pub(super) fn connect_with(
    socket: Socket,
    address: SocketAddr,
    deadline: Option<Instant>,
) -> io::Result<TcpStream> {
    Connecting::start_with(socket, address, TcpStream::seen)?.by(deadline)
}

/// Returns the end of a timeout that begins now. `None`: it is beyond the clock.
pub(super) fn end_of(timeout: Duration) -> io::Result<Option<Instant>> {
    refuse_zero(Some(timeout))?;
    Ok(time::deadline(timeout))
}
