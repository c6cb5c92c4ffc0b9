//! TCP and UDP, as in [`std::net`], and the sockets of [`std::os::unix::net`], for tasks.
//!
//! A program ports by changing `use std::net` to `use fibra::net`: names, signatures, traits and error
//! kinds are std's. The address types are std's own. [`ToSocketAddrs`] is a trait of this crate with
//! std's shape and std's implementations, because the lookup of a name blocks a thread. Here that is
//! a thread of the blocking pool.
//!
//! # Waiting
//!
//! A system call comes first; the task sleeps only if the call would block. Any number of tasks may
//! read, write or accept on one socket at once. An event wakes all tasks that wait in its direction,
//! and they compete; which task gets the next byte is not promised. Operations that complete without
//! a wait count against the task's budget; when it is used up, other tasks run.
//!
//! No call depends on the mode of the descriptor, which a clone may change elsewhere.
//!
//! # Cancellation
//!
//! Every wait is a cancellation point. A cancelled task that unwinds, or runs its last destructors,
//! does not wait: its operation fails with [`TimedOut`](std::io::ErrorKind::TimedOut). In a task that
//! unwinds from a panic, an operation waits until the task is cancelled, and then fails so.

#![forbid(unsafe_code)]

pub(crate) mod acceptor;
pub(crate) mod datagram;
mod halves;
mod options;
mod resolve;
pub(crate) mod simulated;
pub(crate) mod socket;
mod tcp;
mod udp;
pub(crate) mod unix;

pub use std::net::{
    AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6,
};

/// Returns the error of a connection whose time has passed, as in std.
fn timed_out() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::TimedOut, "connection timed out")
}

pub use self::halves::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use self::resolve::{ToSocketAddrs, lookup_host};
pub use self::tcp::{Incoming, IntoIncoming, Keepalive, TcpListener, TcpSocket, TcpStream};
pub use self::udp::UdpSocket;
pub use self::unix::{UnixDatagram, UnixListener, UnixStream};
