//! `TcpSocket`: a socket that takes options before it listens or connects.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket};

use super::connect::{connect_with, end_of};
use super::{TcpListener, TcpStream};
use crate::net::ToSocketAddrs;
use crate::net::acceptor::Acceptor;
use crate::net::options::{buffer_methods, tcp_methods};
use crate::net::resolve::try_each;
use crate::net::simulated::{self, Address};
use crate::network::SocketOption;
use crate::waiting::convert::forward;

/// A TCP socket that takes options before it listens or connects.
///
/// Options that are not here can be set on its descriptor, by socket2 for one. On Linux the
/// connections that a listener accepts inherit its options.
///
/// # Examples
///
/// A connection from a port of one's choice:
///
/// ```
/// use fibra_io::net::{TcpListener, TcpSocket};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let socket = TcpSocket::v4()?;
/// socket.bind("127.0.0.2:0".parse().unwrap())?;
/// let stream = socket.connect(listener.local_addr()?)?;
/// assert_eq!(stream.local_addr()?.ip().to_string(), "127.0.0.2");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Two listeners on one port, between which the system divides the connections:
///
/// ```
/// use fibra_io::net::{SocketAddr, TcpListener, TcpSocket};
///
/// let listen = |address: SocketAddr| -> std::io::Result<TcpListener> {
///     let socket = TcpSocket::v4()?;
///     socket.set_reuse_port(true)?;
///     socket.bind(address)?;
///     socket.listen(1024)
/// };
/// let first = listen("127.0.0.1:0".parse().unwrap())?;
/// let second = listen(first.local_addr()?)?;
/// assert_eq!(first.local_addr()?, second.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Options, and a connection within a time limit:
///
/// ```
/// use std::time::{Duration, Instant};
/// use fibra_io::net::{Keepalive, TcpListener, TcpSocket};
///
/// let socket = TcpSocket::v4()?;
/// socket.set_reuse_address(true)?;
/// socket.set_nodelay(true)?;
/// socket.set_keepalive(Some(Keepalive::default()))?;
/// assert!(socket.reuse_address()? && !socket.reuse_port()? && socket.nodelay()?);
/// assert!(socket.keepalive()?.is_some());
/// socket.set_linger(Some(Duration::from_secs(1)))?;
/// assert_eq!(socket.linger()?, Some(Duration::from_secs(1)));
/// socket.set_zero_linger()?;
/// assert_eq!(socket.linger()?, Some(Duration::ZERO));
/// socket.set_recv_buffer_size(1 << 16)?;
/// socket.set_send_buffer_size(1 << 16)?;
/// assert!(socket.recv_buffer_size()? >= 1 << 16 && socket.send_buffer_size()? >= 1 << 16);
/// socket.set_tos_v4(0x10)?;
/// assert_eq!(socket.tos_v4()?, 0x10);
/// assert!(socket.take_error()?.is_none());
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let (address, limit) = (listener.local_addr()?, Duration::from_secs(5));
/// let one = socket.connect_timeout(address, limit)?;
/// let other = TcpSocket::v4()?.connect_deadline(address, Instant::now() + limit)?;
/// assert_eq!(one.peer_addr()?, other.peer_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpSocket(Socket);

buffer_methods!(TcpSocket);
tcp_methods!(TcpSocket);

impl TcpSocket {
    /// Makes a socket for IPv4.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn v4() -> io::Result<TcpSocket> {
        simulated::tcp_socket(Domain::IPV4).map(TcpSocket)
    }

    /// Makes a socket for IPv4: [`v4`](TcpSocket::v4) by the name that tokio gives it.
    ///
    /// # Errors
    ///
    /// As [`v4`](TcpSocket::v4).
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_reuseaddr(true)?;
    /// socket.set_reuseport(true)?;
    /// assert!(socket.reuseaddr()? && socket.reuseport()?);
    /// let listener = socket.bind("127.0.0.1:0".parse().unwrap()).and_then(|()| socket.listen(1024))?;
    /// assert!(listener.local_addr()?.is_ipv4());
    /// // Systems without IPv6 refuse.
    /// assert!(TcpSocket::new_v6().is_ok() == TcpSocket::v6().is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::v4()
    }

    /// Makes a socket for IPv6: [`v6`](TcpSocket::v6) by the name that tokio gives it.
    ///
    /// # Errors
    ///
    /// As [`v6`](TcpSocket::v6).
    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::v6()
    }

    /// Sets `SO_REUSEADDR`: [`set_reuse_address`](TcpSocket::set_reuse_address) by tokio's name.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.set_reuse_address(reuseaddr)
    }

    /// Returns true if `SO_REUSEADDR` is set: [`reuse_address`](TcpSocket::reuse_address) by tokio's name.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.reuse_address()
    }

    /// Sets `SO_REUSEPORT`: [`set_reuse_port`](TcpSocket::set_reuse_port) by tokio's name.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says.
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.set_reuse_port(reuseport)
    }

    /// Returns true if `SO_REUSEPORT` is set: [`reuse_port`](TcpSocket::reuse_port) by tokio's name.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn reuseport(&self) -> io::Result<bool> {
        self.reuse_port()
    }

    /// Makes a socket for IPv6.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left, or the system no IPv6.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::net::TcpSocket;
    ///
    /// // Systems without IPv6 refuse.
    /// if let Ok(socket) = TcpSocket::v6() {
    ///     socket.set_only_v6(true)?;
    ///     assert!(socket.only_v6()?);
    ///     socket.set_tclass_v6(0x20)?;
    ///     assert_eq!(socket.tclass_v6()?, 0x20);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn v6() -> io::Result<TcpSocket> {
        simulated::tcp_socket(Domain::IPV6).map(TcpSocket)
    }

    /// Takes a socket of std's type that is not connected yet, such as one of socket2.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::net::TcpSocket;
    /// use socket2::{Domain, Socket, Type};
    ///
    /// let std_stream = Socket::new(Domain::IPV4, Type::STREAM, None)?.into();
    /// let socket = TcpSocket::from_std_stream(std_stream);
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std_stream(std_stream: std::net::TcpStream) -> TcpSocket {
        OwnedFd::from(std_stream).into()
    }

    fn option(&self) -> SockRef<'_> {
        SockRef::from(&self.0)
    }

    forward! { self => self.0;
        /// Sets `SO_REUSEADDR`: bind although old connections linger on that port.
        ///
        /// [`TcpListener::bind`] sets it.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_reuse_address(reuse: bool) -> io::Result<()>;

        /// Returns true if `SO_REUSEADDR` is set.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn reuse_address() -> io::Result<bool>;

        /// Sets `SO_REUSEPORT`: listeners that all set it may share a port.
        ///
        /// The system divides the connections between them. See
        /// [`TcpListener::serve_on_each_worker`].
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_reuse_port(reuse: bool) -> io::Result<()>;

        /// Returns true if `SO_REUSEPORT` is set.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn reuse_port() -> io::Result<bool>;

        /// Sets `IPV6_V6ONLY`: leave IPv4 to others.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_only_v6(only_v6: bool) -> io::Result<()>;

        /// Returns true if `IPV6_V6ONLY` is set.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn only_v6() -> io::Result<bool>;
    }

    /// Makes closing reset the connection and discard what is unsent.
    ///
    /// It is a linger time of zero, with which closing never blocks.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    forward! { self => self.0;
        /// Sets the type of service of IPv4 packets sent from here (`IP_TOS`).
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_tos_v4(tos: u32) -> io::Result<()>;

        /// Returns the type of service of IPv4 packets.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn tos_v4() -> io::Result<u32>;

        /// Sets the traffic class of IPv6 packets sent from here (`IPV6_TCLASS`).
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_tclass_v6(tclass: u32) -> io::Result<()>;

        /// Returns the traffic class of IPv6 packets.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn tclass_v6() -> io::Result<u32>;

        /// Binds to the network interface of that name (`SO_BINDTODEVICE`), or to none any more:
        /// only what goes through it is sent and received.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says: `PermissionDenied`, for one, when it is bound to another one
        /// already and this is not root.
        ///
        /// # Examples
        ///
        /// ```
        /// use fibra_io::net::TcpSocket;
        ///
        /// let socket = TcpSocket::v4()?;
        /// // Some systems ask for a privilege.
        /// if socket.bind_device(Some(b"lo")).is_ok() {
        ///     assert_eq!(socket.device()?.as_deref(), Some(&b"lo"[..]));
        /// }
        /// # Ok::<(), std::io::Error>(())
        /// ```
        #[cfg(any(target_os = "linux", target_os = "android"))]
        fn bind_device(interface: Option<&[u8]>) -> io::Result<()>;

        /// Returns the name of the network interface that it is bound to.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        fn device() -> io::Result<Option<Vec<u8>>>;

        /// Takes the pending error of the socket away (`SO_ERROR`).
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn take_error() -> io::Result<Option<io::Error>>;
    }

    /// Takes an address for this end; port 0 asks for a free one.
    ///
    /// # Errors
    ///
    /// What `bind(2)` says.
    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        simulated::bind(&self.0, address)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let not_ip = || io::Error::new(io::ErrorKind::InvalidInput, "the socket is of another family");
        let address = self.0.local_addr()?.as_socket().ok_or_else(not_ip);
        address.or_else(|error| SocketAddr::local(self.as_fd(), error))
    }

    /// Listens: at most `backlog` connections wait to be accepted.
    ///
    /// # Errors
    ///
    /// What `listen(2)` says.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        simulated::listen(&self.0, i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Acceptor::seen(self.0.into()).map(TcpListener)
    }

    /// Opens a connection.
    ///
    /// # Cancellation
    ///
    /// Waiting for the outcome is a cancellation point; the socket is closed.
    ///
    /// # Errors
    ///
    /// What `connect(2)` says, or what becomes of it.
    pub fn connect(self, address: SocketAddr) -> io::Result<TcpStream> {
        connect_with(self.0, address, None)
    }

    /// Opens a connection within `timeout`.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](TcpSocket::connect).
    ///
    /// # Errors
    ///
    /// `TimedOut` when the time has passed, `InvalidInput` if it is zero, and as
    /// [`connect`](TcpSocket::connect).
    pub fn connect_timeout(self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        connect_with(self.0, address, end_of(timeout)?)
    }

    /// Opens a connection by `deadline`.
    ///
    /// A deadline that has passed leaves time for what needs no waiting.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](TcpSocket::connect).
    ///
    /// # Errors
    ///
    /// `TimedOut` when the deadline has passed, and as [`connect`](TcpSocket::connect).
    pub fn connect_deadline(self, address: SocketAddr, deadline: Instant) -> io::Result<TcpStream> {
        connect_with(self.0, address, Some(deadline))
    }
}

impl From<OwnedFd> for TcpSocket {
    /// Takes a socket that neither listens nor connects.
    fn from(fd: OwnedFd) -> TcpSocket {
        TcpSocket(fd.into())
    }
}

impl From<TcpSocket> for OwnedFd {
    /// Returns the descriptor in its mode: non-blocking from [`v4`](TcpSocket::v4) and
    /// [`v6`](TcpSocket::v6).
    fn from(socket: TcpSocket) -> OwnedFd {
        socket.0.into()
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl TcpListener {
    /// Binds a listener to the first address that can be bound, with `SO_REUSEADDR`.
    ///
    /// Port 0 asks the system for a free port, which [`local_addr`](TcpListener::local_addr) then tells.
    ///
    /// # Cancellation
    ///
    /// As for [`ToSocketAddrs`]: waiting for a lookup is a cancellation point.
    ///
    /// # Errors
    ///
    /// That of the last address, or of the lookup; `InvalidInput` if there is no address.
    pub fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<TcpListener> {
        try_each(addr, |address| listen_at(address, false))
    }
}

/// Connections that the kernel queues for a listener.
///
/// std asks for 128, which fill while a busy worker runs one task; an overflow costs a client a
/// second. Linux cuts this to `net.core.somaxconn`, whose default is 4096.
const BACKLOG: i32 = 4096;

/// Opens a listener of one address, whose descriptor was never exposed.
pub(super) fn listen_at(address: SocketAddr, shares_port: bool) -> io::Result<TcpListener> {
    let socket = simulated::tcp_socket(Domain::for_address(address))?;
    socket.set_reuse_address(true)?;
    if shares_port {
        let refused = |error| simulated::set_option(&socket, SocketOption::ReusePort, 1, error);
        socket.set_reuse_port(true).or_else(refused)?;
    }
    simulated::bind(&socket, address)?;
    simulated::listen(&socket, BACKLOG)?;
    Acceptor::fresh(socket.into()).map(TcpListener)
}
