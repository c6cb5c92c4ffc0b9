//! The seam of simulations: a network that takes the place of the system's.
//!
//! Its sockets are descriptors of the Unix family, so that transfers and readiness are the system's own. What such a
//! descriptor cannot do is asked of the network: `net/simulated.rs` does so after the system has refused.

#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

/// A simulated network. Its calls do not wait, and name sockets by their descriptors.
pub trait Network: Send + Sync + 'static {
    /// Makes a socket of the running task's host.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    fn socket(&self, transport: Transport) -> io::Result<OwnedFd>;

    /// Does what `bind(2)` does.
    ///
    /// # Errors
    /// As `bind(2)`.
    fn bind(&self, socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()>;

    /// Does what `listen(2)` does.
    ///
    /// # Errors
    /// As `listen(2)`.
    fn listen(&self, socket: BorrowedFd<'_>, backlog: usize) -> io::Result<()>;

    /// Does what `connect(2)` does.
    ///
    /// # Errors
    /// As `connect(2)`. For a stream `EINPROGRESS`: the descriptor has an event for writing at the end of the attempt.
    fn connect(&self, socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()>;

    /// Accepts a connection, if one is there.
    ///
    /// # Errors
    /// As `accept(2)`.
    fn accept(&self, listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, SocketAddr)>;

    /// Returns the address of this end.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    fn local_addr(&self, socket: BorrowedFd<'_>) -> io::Result<SocketAddr>;

    /// Returns the address of the other end.
    ///
    /// # Errors
    /// `NotConnected` if there is none. The reason why an attempt to connect has failed, once.
    fn peer_addr(&self, socket: BorrowedFd<'_>) -> io::Result<SocketAddr>;

    /// Sends a message to an address.
    ///
    /// # Errors
    /// As `sendto(2)`.
    fn send_to(&self, socket: BorrowedFd<'_>, message: &[u8], address: SocketAddr) -> io::Result<usize>;

    /// Returns the sender of a message that the socket has received from the Unix socket with that name.
    ///
    /// # Errors
    /// If the network has no such socket.
    fn sender(&self, socket: BorrowedFd<'_>, name: &[u8]) -> io::Result<SocketAddr>;

    /// Sets an option that only sockets of the internet have.
    ///
    /// # Errors
    /// If it is not a socket of this network.
    fn set_option(&self, socket: BorrowedFd<'_>, option: SocketOption, value: u32) -> io::Result<()>;

    /// Returns what an option is set to.
    ///
    /// # Errors
    /// If it is not a socket of this network.
    fn option(&self, socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<u32>;

    /// Looks a name up.
    ///
    /// # Errors
    /// If there is no host of that name.
    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Returns a number for the simulated process that the running task belongs to. It is not 0.
    fn process(&self) -> u64;

    /// Takes what the sockets have sent, and delivers what has arrived by now.
    ///
    /// # Errors
    /// If the system refuses.
    fn step(&self) -> io::Result<()>;

    /// Returns when something arrives next.
    fn next_arrival(&self) -> Option<Instant>;
}

/// What a socket transports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// A stream of bytes.
    Stream,
    /// Messages.
    Messages,
}

/// An option that sockets of the Unix family do not have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SocketOption {
    /// `TCP_NODELAY`.
    NoDelay,
    /// `IP_TTL`.
    TimeToLive,
    /// `SO_REUSEPORT`, which some systems do not have for sockets of the Unix family.
    ReusePort,
    /// `TCP_KEEPIDLE`, in seconds.
    KeepaliveIdle,
    /// `TCP_KEEPINTVL`, in seconds.
    KeepaliveInterval,
    /// `TCP_KEEPCNT`.
    KeepaliveProbes,
}
