//! `UdpSocket`, with the methods of [`std::net::UdpSocket`].

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;

use socket2::SockAddr;

use super::ToSocketAddrs;
use super::datagram::Family;
use super::options::{handle_methods, message_methods, ttl_methods};
use super::resolve::try_each;
use super::simulated;
use super::socket::Socket;
use crate::waiting::attempt::Attempt;
use crate::waiting::convert::forward;

/// A UDP socket: [`std::net::UdpSocket`], for tasks.
///
/// Receiving puts the task to sleep until a message comes, sending until there is room, which is rarely lacking; in a plain
/// thread they block it. Any number of tasks may do either at once.
///
/// # Fairness
///
/// Tasks that wait to receive from one socket are all woken by a message, and compete for it.
///
/// # Differences from std
///
/// * [`set_nonblocking`](UdpSocket::set_nonblocking) is the wish of this value alone; a clone has its own, which it
///   takes over when it is made.
/// * Timeouts are shared by clones, as in std, if [`try_clone`](UdpSocket::try_clone) made them; a clone made by other
///   means has the ones it was made with.
/// * Deadlines and the sizes of the buffers are additions.
///
/// # Examples
///
/// ```
/// use fibra_io::net::UdpSocket;
///
/// let server = UdpSocket::bind("127.0.0.1:0")?;
/// let client = UdpSocket::bind("127.0.0.1:0")?;
/// client.connect(server.local_addr()?)?;
/// client.send(b"ping")?;
/// let mut buf = [0; 16];
/// let (len, from) = server.recv_from(&mut buf)?;
/// assert_eq!((&buf[..len], from), (&b"ping"[..], client.local_addr()?));
/// server.send_to(b"pong", from)?;
/// assert_eq!(client.recv(&mut buf)?, 4);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// What has to be set before a socket is bound is set by socket2. Two sockets on one port, between which the system divides the
/// messages by their senders:
///
/// ```
/// use std::net::{SocketAddr, UdpSocket as StdSocket};
/// use fibra_io::net::UdpSocket;
/// use socket2::{Domain, Socket, Type};
///
/// let bind = |address: SocketAddr| -> std::io::Result<UdpSocket> {
///     let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
///     socket.set_reuse_port(true)?;
///     socket.bind(&address.into())?;
///     Ok(UdpSocket::from(StdSocket::from(socket)))
/// };
/// let first = bind("127.0.0.1:0".parse().unwrap())?;
/// let second = bind(first.local_addr()?)?;
/// assert_eq!(first.local_addr()?, second.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A look at messages, time limits, options, and a group of receivers:
///
/// ```
/// use std::io::ErrorKind;
/// use std::net::Ipv4Addr;
/// use std::time::{Duration, Instant};
/// use fibra_io::net::UdpSocket;
///
/// let server = UdpSocket::bind("127.0.0.1:0")?;
/// let client = UdpSocket::bind("127.0.0.1:0")?;
/// client.connect(server.local_addr()?)?;
/// assert_eq!(client.peer_addr()?, server.local_addr()?);
/// client.send(b"ping")?;
/// let mut buf = [0; 16];
/// assert_eq!(server.peek_from(&mut buf)?, (4, client.local_addr()?));
/// assert_eq!(server.peek(&mut buf)?, server.recv(&mut buf)?);
///
/// let limit = Some(Duration::from_secs(5));
/// server.set_read_timeout(limit)?;
/// server.set_write_timeout(limit)?;
/// let clone = server.try_clone()?;
/// assert_eq!((clone.read_timeout()?, clone.write_timeout()?), (limit, limit));
/// let now = Some(Instant::now());
/// server.set_read_deadline(now);
/// server.set_write_deadline(now);
/// assert_eq!((clone.read_deadline(), clone.write_deadline()), (now, now));
/// assert_eq!(server.recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
/// client.set_nonblocking(true)?;
/// assert_eq!(client.recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
///
/// server.set_recv_buffer_size(1 << 16)?;
/// server.set_send_buffer_size(1 << 16)?;
/// assert!(server.recv_buffer_size()? >= 1 << 16 && server.send_buffer_size()? >= 1 << 16);
/// server.set_ttl(9)?;
/// server.set_broadcast(true)?;
/// assert!(server.ttl()? == 9 && server.broadcast()? && server.take_error()?.is_none());
///
/// server.set_multicast_loop_v4(false)?;
/// server.set_multicast_ttl_v4(9)?;
/// assert!(!server.multicast_loop_v4()? && server.multicast_ttl_v4()? == 9);
/// let group = Ipv4Addr::new(224, 0, 0, 251);
/// server.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
/// server.leave_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct UdpSocket(pub(crate) Socket<net::UdpSocket>);

handle_methods!(UdpSocket, SocketAddr);
message_methods!(UdpSocket, SocketAddr);
ttl_methods!(UdpSocket);

impl UdpSocket {
    /// Binds a new socket to the first of the addresses that can be bound.
    ///
    /// Port 0 asks the system for a free port, which [`local_addr`](UdpSocket::local_addr) then tells.
    ///
    /// # Cancellation
    ///
    /// As for [`ToSocketAddrs`]: waiting for a lookup is a cancellation point.
    ///
    /// # Errors
    ///
    /// That of the last address, or of the lookup; `InvalidInput` if there is no address.
    pub fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<UdpSocket> {
        try_each(addr, |address| {
            simulated::udp_socket(address).map(|socket| UdpSocket(Socket::fresh(socket)))
        })
    }

    /// Fixes the peer that [`send`](UdpSocket::send) sends to and messages come from.
    ///
    /// It is the first of the addresses that can be connected to. It never waits: nothing is sent.
    ///
    /// # Cancellation
    ///
    /// As for [`ToSocketAddrs`]: waiting for a lookup is a cancellation point.
    ///
    /// # Errors
    ///
    /// That of the last address, or of the lookup; `InvalidInput` if there is no address.
    pub fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        try_each(addr, |address| simulated::connect_messages(self.0.std(), address))
    }

    /// Sends a message to the first of the addresses.
    ///
    /// # Cancellation
    ///
    /// Waiting for a lookup is a cancellation point, and so is waiting for room; nothing is sent then.
    ///
    /// # Errors
    ///
    /// What `sendto(2)` says, or the lookup; `InvalidInput` if there is no address.
    pub fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        let no_address = || io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to");
        let address = addr.to_socket_addrs()?.next().ok_or_else(no_address)?;
        let address = net::UdpSocket::to_raw(&address)?;
        self.0.dispatch(|| self.0.send_to_now(buf, &address).map(Attempt::Done))
    }

    forward! { self => self.0.std();
        /// Allows messages to broadcast addresses, or forbids them.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_broadcast(broadcast: bool) -> io::Result<()>;

        /// Returns true if messages to broadcast addresses are allowed.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn broadcast() -> io::Result<bool>;

        /// Sets whether messages to IPv4 groups come back to this machine.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_multicast_loop_v4(multicast_loop_v4: bool) -> io::Result<()>;

        /// Returns true if messages to IPv4 groups come back to this machine.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn multicast_loop_v4() -> io::Result<bool>;

        /// Sets the time to live of messages to IPv4 groups, in hops.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_multicast_ttl_v4(multicast_ttl_v4: u32) -> io::Result<()>;

        /// Returns the time to live of messages to IPv4 groups, in hops.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn multicast_ttl_v4() -> io::Result<u32>;

        /// Sets whether messages to IPv6 groups come back to this machine.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_multicast_loop_v6(multicast_loop_v6: bool) -> io::Result<()>;

        /// Returns true if messages to IPv6 groups come back to this machine.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn multicast_loop_v6() -> io::Result<bool>;

        /// Joins an IPv4 group on the interface that has that address; the unspecified one leaves the choice to the system.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn join_multicast_v4(multiaddr: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()>;

        /// Joins an IPv6 group on the interface with that number; zero leaves the choice to the system.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        ///
        /// # Examples
        ///
        /// ```
        /// use fibra_io::net::UdpSocket;
        ///
        /// // Systems without IPv6, or without a network, refuse.
        /// if let Ok(socket) = UdpSocket::bind("[::]:0") {
        ///     socket.set_multicast_loop_v6(false)?;
        ///     assert!(!socket.multicast_loop_v6()?);
        ///     let group = "ff02::fb".parse().unwrap();
        ///     let joined = socket.join_multicast_v6(&group, 0);
        ///     assert_eq!(joined.is_ok(), socket.leave_multicast_v6(&group, 0).is_ok());
        /// }
        /// # Ok::<(), std::io::Error>(())
        /// ```
        fn join_multicast_v6(multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()>;

        /// Leaves a group that was joined by [`join_multicast_v4`](UdpSocket::join_multicast_v4).
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn leave_multicast_v4(multiaddr: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()>;

        /// Leaves a group that was joined by [`join_multicast_v6`](UdpSocket::join_multicast_v6).
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn leave_multicast_v6(multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()>;
    }
}

impl Family for net::UdpSocket {
    type Address = SocketAddr;

    fn to_raw(address: &SocketAddr) -> io::Result<SockAddr> {
        Ok(SockAddr::from(*address))
    }

    fn is_full_elsewhere(_fd: BorrowedFd<'_>) -> io::Result<bool> {
        Ok(false)
    }

    fn sender(fd: BorrowedFd<'_>, from: &SockAddr) -> io::Result<SocketAddr> {
        let not_ip = || io::Error::new(io::ErrorKind::InvalidInput, "the socket is of another family");
        from.as_socket().ok_or_else(not_ip).or_else(|error| simulated::sender(fd, from, error))
    }
}
