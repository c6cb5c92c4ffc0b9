//! `UnixDatagram`, with std's methods, and the wait for room in a receiver's queue.

#![forbid(unsafe_code)]

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;
use std::time::Duration;

use fibra_runtime::clock;
use fibra_runtime::time;

use socket2::SockAddr;

use super::address;
use super::probe::Probe;
use crate::net::datagram::Family;
use crate::net::options::{handle_methods, message_methods};
use crate::net::socket::Socket;
use crate::sys;
use crate::sys::Direction;
use crate::waiting::attempt::Attempt;

/// A socket for messages within this machine.
///
/// It is [`std::os::unix::net::UnixDatagram`], for tasks.
///
/// Messages are neither lost nor reordered: sending puts the task to sleep while the receiver's
/// queue is full, receiving until a message comes; in a plain thread they block it. Any number of
/// tasks may do either at once. The file at the path stays when the socket is dropped, as with std.
///
/// # Fairness
///
/// Tasks that wait to receive from one socket are all woken by a message, and compete for it.
///
/// # Differences from std
///
/// * [`set_nonblocking`](UnixDatagram::set_nonblocking) is the wish of this value alone; a clone
///   has its own, which it takes over when it is made.
/// * Timeouts are shared by clones, as in std, if [`try_clone`](UnixDatagram::try_clone) made them;
///   a clone made by other means has the ones it was made with.
/// * A sender with a path of 108 bytes, which no type of std lets one bind, is taken for an unnamed one.
/// * [`peek`](UnixDatagram::peek) and [`peek_from`](UnixDatagram::peek_from) are not stable in std
///   yet. Deadlines and the sizes of the buffers are additions.
/// * Descriptors are sent by [`send_with_fds`](UnixDatagram::send_with_fds), without the
///   `SocketAncillary` that std has unstable.
///
/// # Examples
///
/// ```
/// use fibra_io::net::UnixDatagram;
///
/// let (here, there) = UnixDatagram::pair()?;
/// here.send(b"one")?;
/// here.send(b"two")?;
/// let mut buf = [0; 16];
/// assert_eq!(there.recv(&mut buf)?, 3);
/// assert_eq!(&buf[..3], b"one");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Addresses:
///
/// ```
/// use fibra_io::net::{Shutdown, UnixDatagram};
/// use fibra_io::os::linux::net::SocketAddrExt;
/// use fibra_io::os::unix::net::SocketAddr;
///
/// let path = std::env::temp_dir().join(format!("fibra-datagram-{}", std::process::id()));
/// let by_path = UnixDatagram::bind(&path)?;
/// let name = SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes())?;
/// let by_name = UnixDatagram::bind_addr(&name)?;
/// by_name.send_to(b"one", &path)?;
/// let mut buf = [0; 16];
/// let (_, from) = by_path.peek_from(&mut buf)?;
/// assert_eq!(by_path.recv_from(&mut buf)?.0, 3);
/// by_path.send_to_addr(b"back", &from)?;
/// assert_eq!(by_name.peek(&mut buf)?, by_name.recv(&mut buf)?);
///
/// let client = UnixDatagram::unbound()?;
/// client.connect_addr(&name)?;
/// client.connect(&path)?;
/// assert_eq!(client.peer_addr()?.as_pathname(), by_path.local_addr()?.as_pathname());
/// client.shutdown(Shutdown::Write)?;
/// assert!(client.send(b"more").is_err());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Time limits, handles and options:
///
/// ```
/// use std::io::ErrorKind;
/// use std::time::{Duration, Instant};
/// use fibra_io::net::UnixDatagram;
///
/// let (here, _there) = UnixDatagram::pair()?;
/// let limit = Some(Duration::from_secs(5));
/// here.set_read_timeout(limit)?;
/// here.set_write_timeout(limit)?;
/// let clone = here.try_clone()?;
/// assert_eq!((clone.read_timeout()?, clone.write_timeout()?), (limit, limit));
/// let now = Some(Instant::now());
/// here.set_read_deadline(now);
/// here.set_write_deadline(now);
/// assert_eq!((clone.read_deadline(), clone.write_deadline()), (now, now));
/// assert_eq!(here.recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// here.set_read_deadline(None);
/// here.set_nonblocking(true)?;
/// assert_eq!(here.recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// here.set_recv_buffer_size(1 << 16)?;
/// here.set_send_buffer_size(1 << 16)?;
/// assert!(here.recv_buffer_size()? >= 1 << 16 && here.send_buffer_size()? >= 1 << 16);
/// assert!(here.take_error()?.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct UnixDatagram(pub(crate) Socket<net::UnixDatagram>);

handle_methods!(UnixDatagram, SocketAddr);
message_methods!(UnixDatagram, SocketAddr);

impl UnixDatagram {
    /// Binds a new socket to a path, at which there must be no file.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if there is one, `InvalidInput` if the path is too long for an address, and what
    /// `bind(2)` says.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<UnixDatagram> {
        net::UnixDatagram::bind(path).map(UnixDatagram::fresh)
    }

    /// Binds to an address, which may be an abstract name.
    ///
    /// # Errors
    ///
    /// As [`bind`](UnixDatagram::bind).
    pub fn bind_addr(socket_addr: &SocketAddr) -> io::Result<UnixDatagram> {
        net::UnixDatagram::bind_addr(socket_addr).map(UnixDatagram::fresh)
    }

    /// Makes a socket without an address.
    ///
    /// It can send. Only sockets of a [`pair`](UnixDatagram::pair) receive without an address.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn unbound() -> io::Result<UnixDatagram> {
        net::UnixDatagram::unbound().map(UnixDatagram::fresh)
    }

    /// Makes two sockets that are connected with each other.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (one, other) = net::UnixDatagram::pair()?;
        Ok((UnixDatagram::fresh(one), UnixDatagram::fresh(other)))
    }

    fn fresh(inner: net::UnixDatagram) -> UnixDatagram {
        UnixDatagram(Socket::fresh(inner))
    }

    /// Fixes the peer that [`send`](UnixDatagram::send) sends to and messages come from.
    ///
    /// It never waits.
    ///
    /// # Errors
    ///
    /// What `connect(2)` says; `InvalidInput` if the path is too long for an address.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        self.0.std().connect(path)
    }

    /// Connects to an address, which may be an abstract name.
    ///
    /// # Errors
    ///
    /// As [`connect`](UnixDatagram::connect).
    pub fn connect_addr(&self, socket_addr: &SocketAddr) -> io::Result<()> {
        self.0.std().connect_addr(socket_addr)
    }

    /// Sends a message to the socket at a path, and waits for room in its queue.
    ///
    /// # Cancellation
    ///
    /// Waiting for room is a cancellation point; nothing is sent then.
    ///
    /// # Errors
    ///
    /// `ConnectionRefused` if no socket has that path any more, `InvalidInput` if it is too long for an
    /// address, and what `sendto(2)` says.
    pub fn send_to<P: AsRef<Path>>(&self, buf: &[u8], path: P) -> io::Result<usize> {
        self.send_to_addr(buf, &SocketAddr::from_pathname(path)?)
    }

    /// Sends to an address, which may be an abstract name.
    ///
    /// # Cancellation
    ///
    /// Waiting for room is a cancellation point; nothing is sent then.
    ///
    /// # Errors
    ///
    /// As [`send_to`](UnixDatagram::send_to).
    pub fn send_to_addr(&self, buf: &[u8], socket_addr: &SocketAddr) -> io::Result<usize> {
        let receiver = net::UnixDatagram::to_raw(socket_addr)?;
        self.send_by(|| self.0.send_to_now(buf, &receiver), &receiver)
    }

    /// Sends a message with descriptors to the address that the socket is connected to.
    ///
    /// The receiver gets duplicates of the descriptors. A message of no bytes may have descriptors too.
    ///
    /// # Cancellation
    ///
    /// Waiting for room is a cancellation point; nothing is sent then.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there are more than 253 descriptors; and as [`send`](UnixDatagram::send).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use std::os::fd::AsFd;
    /// use fibra_io::io::{PipeReader, pipe};
    /// use fibra_io::net::UnixDatagram;
    ///
    /// let (here, there) = UnixDatagram::pair()?;
    /// let (reader, mut writer) = pipe()?;
    /// here.send_with_fds(b"a pipe", &[reader.as_fd()])?;
    ///
    /// let (mut text, mut fds) = ([0; 6], Vec::new());
    /// assert_eq!(there.recv_with_fds(&mut text, &mut fds)?, 6);
    /// writer.write_all(b"!")?;
    /// let mut byte = [0];
    /// PipeReader::from(fds.remove(0)).read_exact(&mut byte)?;
    /// assert_eq!((&text, &byte), (b"a pipe", b"!"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[doc(alias("SocketAncillary", "SCM_RIGHTS", "sendmsg", "send_vectored_with_ancillary"))]
    pub fn send_with_fds(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        self.0.dispatch(|| sys::send_fds(self.as_fd(), buf, fds, None).map(Attempt::Done))
    }

    /// Sends a message with descriptors to the socket at a path.
    ///
    /// # Cancellation
    ///
    /// Waiting for room is a cancellation point; nothing is sent then.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there are more than 253 descriptors; and as [`send_to`](UnixDatagram::send_to).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::fd::AsFd;
    /// use fibra_io::net::UnixDatagram;
    ///
    /// let path = std::env::temp_dir().join(format!("fibra-descriptors-{}", std::process::id()));
    /// let receiver = UnixDatagram::bind(&path)?;
    /// let (sender, kept) = (UnixDatagram::unbound()?, UnixDatagram::unbound()?);
    /// sender.send_with_fds_to(b"one", &[kept.as_fd()], &path)?;
    /// sender.send_with_fds_to_addr(b"two", &[kept.as_fd()], &receiver.local_addr()?)?;
    /// # std::fs::remove_file(&path)?;
    ///
    /// let (mut buf, mut fds) = ([0; 3], Vec::new());
    /// let (len, from) = receiver.recv_with_fds_from(&mut buf, &mut fds)?;
    /// assert!(len == 3 && from.is_unnamed());
    /// receiver.recv_with_fds(&mut buf, &mut fds)?;
    /// assert_eq!((&buf, fds.len()), (b"two", 2));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[doc(alias("SocketAncillary", "SCM_RIGHTS", "sendmsg", "send_vectored_with_ancillary_to"))]
    pub fn send_with_fds_to<P: AsRef<Path>>(
        &self,
        buf: &[u8],
        fds: &[BorrowedFd<'_>],
        path: P,
    ) -> io::Result<usize> {
        self.send_with_fds_to_addr(buf, fds, &SocketAddr::from_pathname(path)?)
    }

    /// Sends a message with descriptors to an address, which may be an abstract name.
    ///
    /// # Cancellation
    ///
    /// Waiting for room is a cancellation point; nothing is sent then.
    ///
    /// # Errors
    ///
    /// As [`send_with_fds_to`](UnixDatagram::send_with_fds_to).
    #[doc(alias("SocketAncillary", "SCM_RIGHTS", "sendmsg"))]
    pub fn send_with_fds_to_addr(
        &self,
        buf: &[u8],
        fds: &[BorrowedFd<'_>],
        socket_addr: &SocketAddr,
    ) -> io::Result<usize> {
        let receiver = net::UnixDatagram::to_raw(socket_addr)?;
        self.send_by(|| sys::send_fds(self.as_fd(), buf, fds, Some(&receiver)), &receiver)
    }

    /// Receives a message, and appends the descriptors that came along to `fds`.
    ///
    /// The descriptors are closed in children that are started. What does not fit into the buffer is lost; the descriptors
    /// are not. A plain receive closes those that come with its message.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point; no message is taken then.
    ///
    /// # Errors
    ///
    /// As [`recv`](UnixDatagram::recv). If the process has no descriptors left, those that do not fit are lost without an
    /// error.
    #[doc(alias("SocketAncillary", "SCM_RIGHTS", "recvmsg", "recv_vectored_with_ancillary"))]
    pub fn recv_with_fds(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        Ok(self.recv_with_fds_from(buf, fds)?.0)
    }

    /// Receives a message with its descriptors, and returns its length and the address of its sender.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point; no message is taken then.
    ///
    /// # Errors
    ///
    /// As [`recv_with_fds`](UnixDatagram::recv_with_fds).
    #[doc(alias("SocketAncillary", "SCM_RIGHTS", "recvmsg", "recv_vectored_with_ancillary_from"))]
    pub fn recv_with_fds_from(
        &self,
        buf: &mut [u8],
        fds: &mut Vec<OwnedFd>,
    ) -> io::Result<(usize, SocketAddr)> {
        self.0.receive_by(|| sys::recv_fds(self.as_fd(), buf, fds))
    }

    /// Ends one direction or both, for all clones.
    ///
    /// All waiters of that direction wake, on every clone: a receiver gets a message of no bytes; a
    /// sender an error, up to a quarter of a second later, since the system does not tell it.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the socket is not connected.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
    }

    /// Sends to an address by a call that does not wait, and waits for room in its owner's queue.
    fn send_by(&self, call: impl Fn() -> io::Result<usize>, receiver: &SockAddr) -> io::Result<usize> {
        match self.send_unless_full(&call, || self.0.left(Direction::Write))? {
            Some(sent) => Ok(sent),
            None => self.send_when_not_full(&call, receiver),
        }
    }

    /// Sends unless the receiver's queue is full: `None`. Waits for room in this socket.
    fn send_unless_full(
        &self,
        call: impl Fn() -> io::Result<usize>,
        timeout: impl Fn() -> Option<Duration>,
    ) -> io::Result<Option<usize>> {
        match self.0.io().is_nonblocking() {
            true => self.0.dispatch(|| call().map(Attempt::Done)).map(Some),
            false => self.0.io().run(Direction::Write, timeout, || self.0.try_send_by(&call)),
        }
    }

    /// Repeats a send until it succeeds. No event of this socket tells when the queue has room
    /// again, since it is not connected to its owner: a socket that is hears of it, so one is made
    /// for the wait.
    #[cold]
    fn send_when_not_full(
        &self,
        call: impl Fn() -> io::Result<usize>,
        receiver: &SockAddr,
    ) -> io::Result<usize> {
        let deadline = self.0.left(Direction::Write).and_then(time::deadline);
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        loop {
            let Some(probe) = Probe::of(receiver)? else {
                // A full queue makes the call wait for the room of this socket.
                return self.0.io().run(Direction::Write, left, || call().map(Attempt::Done));
            };
            probe.wait(left)?;
            if let Some(sent) = self.send_unless_full(&call, left)? {
                return Ok(sent);
            }
        }
    }
}

impl Family for net::UnixDatagram {
    type Address = SocketAddr;

    fn to_raw(address: &SocketAddr) -> io::Result<SockAddr> {
        address::to_raw(address)
    }

    fn is_full_elsewhere(fd: BorrowedFd<'_>) -> io::Result<bool> {
        Ok(!sys::lacks_room_of_its_own(fd)?)
    }

    fn sender(_fd: BorrowedFd<'_>, from: &SockAddr) -> io::Result<SocketAddr> {
        address::to_std(from)
    }
}
