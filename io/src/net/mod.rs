//! TCP and UDP, as in [`std::net`], and the sockets of [`std::os::unix::net`], for tasks.
//!
//! A program ports by changing `use std::net` to `use fibra::net`: the same names, signatures, traits and error kinds. The
//! address types are std's own. [`ToSocketAddrs`] is a trait of ours with std's shape and std's implementations,
//! because looking up a name blocks a thread: here that is a thread of the blocking pool.
//!
//! # Waiting
//!
//! A system call comes first; the task falls asleep only if it would block. Any number of tasks may read,
//! write or accept on one socket at once: whatever the kernel signals wakes all of them that wait in that
//! direction, and they compete; which task gets the next byte is not promised. An operation that completes
//! without waiting is counted, and after a good many of them the task lets the others run.
//!
//! No call depends on the mode of the descriptor: turning a clone blocking or non-blocking elsewhere changes nothing here.
//!
//! # Cancellation
//!
//! Every wait is a cancellation point. In a task that unwinds from a cancellation, and in destructors that end a cancelled task, an
//! operation that would have to wait fails with [`TimedOut`](std::io::ErrorKind::TimedOut) instead. In a task that unwinds from a
//! panic it waits until the task is cancelled, and then fails so.

#![forbid(unsafe_code)]

pub(crate) mod acceptor;
pub(crate) mod datagram;
mod halves;
mod options;
mod resolve;
pub(crate) mod socket;
mod tcp;
mod udp;
pub(crate) mod unix;

pub use std::net::{
    AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6,
};

/// What a connection ends with whose time has passed, as in std.
fn timed_out() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::TimedOut, "connection timed out")
}

pub use self::halves::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use self::resolve::{ToSocketAddrs, lookup_host};
pub use self::tcp::{Incoming, IntoIncoming, Keepalive, TcpListener, TcpSocket, TcpStream};
pub use self::udp::UdpSocket;
pub use self::unix::{UnixDatagram, UnixListener, UnixStream};
