//! `UnixStream`, with the methods of [`std::os::unix::net::UnixStream`].

#![forbid(unsafe_code)]

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;
use std::time::Instant;

use super::connect::connect;
use crate::net::options::handle_methods;
use crate::net::socket::Socket;
use crate::sys::{peer_cred, recv_fds, send_fds};
use crate::waiting::attempt::Attempt;
use crate::waiting::convert::{reads, writes};

/// One end of a connection within this machine.
///
/// It is [`std::os::unix::net::UnixStream`], for tasks.
///
/// Reading and writing put the task to sleep, never the thread; in a plain thread they block it.
/// Dropping the stream closes it. Reading and writing are independent, and any number of tasks may
/// do either at once through `&UnixStream`.
///
/// # Fairness
///
/// Tasks that wait to read one stream are all woken when something arrives, and compete for it.
///
/// # Differences from std
///
/// * [`set_nonblocking`](UnixStream::set_nonblocking) is the wish of this value alone; a clone has
///   its own, which it takes over when it is made.
/// * Timeouts are shared by clones, as in std, if [`try_clone`](UnixStream::try_clone) made them; a
///   clone made by other means has the ones it was made with.
/// * [`peek`](UnixStream::peek) is not stable in std yet. Deadlines and the sizes of the buffers
///   are additions.
/// * Descriptors are sent by [`send_with_fds`](UnixStream::send_with_fds), without the
///   `SocketAncillary` that std has unstable.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use fibra_io::net::UnixStream;
///
/// let (mut here, mut there) = UnixStream::pair()?;
/// here.write_all(b"hello")?;
/// drop(here);
/// let mut greeting = String::new();
/// there.read_to_string(&mut greeting)?;
/// assert_eq!(greeting, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Time limits, handles and options:
///
/// ```
/// use std::io::ErrorKind;
/// use std::time::{Duration, Instant};
/// use fibra_io::net::UnixStream;
///
/// let (here, _there) = UnixStream::pair()?;
/// let limit = Some(Duration::from_secs(5));
/// here.set_read_timeout(limit)?;
/// here.set_write_timeout(limit)?;
/// let clone = here.try_clone()?;
/// assert_eq!((clone.read_timeout()?, clone.write_timeout()?), (limit, limit));
/// let now = Some(Instant::now());
/// here.set_read_deadline(now);
/// here.set_write_deadline(now);
/// assert_eq!((clone.read_deadline(), clone.write_deadline()), (now, now));
/// assert_eq!(here.peek(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// here.set_read_deadline(None);
/// here.set_nonblocking(true)?;
/// assert_eq!(here.peek(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// here.set_recv_buffer_size(1 << 16)?;
/// here.set_send_buffer_size(1 << 16)?;
/// assert!(here.recv_buffer_size()? >= 1 << 16 && here.send_buffer_size()? >= 1 << 16);
/// assert!(here.take_error()?.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct UnixStream(pub(crate) Socket<net::UnixStream>);

/// The user, group and process of a peer: see [`UnixStream::peer_cred`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UCred {
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
    /// The process, where the system tells it and it is not of another namespace.
    pub pid: Option<i32>,
}

handle_methods!(UnixStream, SocketAddr);
reads!(UnixStream);
writes!(UnixStream);

impl UnixStream {
    /// Connects to the listener at a path, and waits for room in its queue.
    ///
    /// # Cancellation
    ///
    /// That wait is a cancellation point, which is reached ten times a second.
    ///
    /// # Errors
    ///
    /// `ConnectionRefused` if no listener is there any more, `InvalidInput` if the path is too long for an
    /// address, and what `connect(2)` says.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Write;
    /// use std::time::{Duration, Instant};
    /// use fibra_io::net::{Shutdown, UnixListener, UnixStream};
    ///
    /// let path = std::env::temp_dir().join(format!("fibra-stream-{}", std::process::id()));
    /// let listener = UnixListener::bind(&path)?;
    /// let address = listener.local_addr()?;
    /// let limit = Instant::now() + Duration::from_secs(5);
    /// for mut client in [
    ///     UnixStream::connect(&path)?,
    ///     UnixStream::connect_addr(&address)?,
    ///     UnixStream::connect_deadline(&path, limit)?,
    ///     UnixStream::connect_addr_deadline(&address, limit)?,
    /// ] {
    ///     assert_eq!(client.peer_addr()?.as_pathname(), Some(&*path));
    ///     assert!(client.local_addr()?.is_unnamed());
    ///     client.shutdown(Shutdown::Write)?;
    ///     assert!(client.write(b"more").is_err());
    /// }
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect<P: AsRef<Path>>(path: P) -> io::Result<UnixStream> {
        UnixStream::connect_addr(&SocketAddr::from_pathname(path)?)
    }

    /// Connects to an address, which may be an abstract name.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](UnixStream::connect).
    ///
    /// # Errors
    ///
    /// As [`connect`](UnixStream::connect).
    pub fn connect_addr(socket_addr: &SocketAddr) -> io::Result<UnixStream> {
        connect(socket_addr, None).map(UnixStream::fresh)
    }

    /// Opens a connection to the listener at a path, by `deadline`.
    ///
    /// A deadline that has passed leaves time for what needs no waiting.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](UnixStream::connect).
    ///
    /// # Errors
    ///
    /// `TimedOut` when the deadline has passed, and as [`connect`](UnixStream::connect).
    pub fn connect_deadline<P: AsRef<Path>>(path: P, deadline: Instant) -> io::Result<UnixStream> {
        UnixStream::connect_addr_deadline(&SocketAddr::from_pathname(path)?, deadline)
    }

    /// Connects to an address by a deadline; the address may be an abstract name.
    ///
    /// # Cancellation
    ///
    /// As for [`connect`](UnixStream::connect).
    ///
    /// # Errors
    ///
    /// As [`connect_deadline`](UnixStream::connect_deadline).
    pub fn connect_addr_deadline(socket_addr: &SocketAddr, deadline: Instant) -> io::Result<UnixStream> {
        connect(socket_addr, Some(deadline)).map(UnixStream::fresh)
    }

    /// Makes two streams that are connected with each other.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((UnixStream::fresh(one), UnixStream::fresh(other)))
    }

    /// Takes a stream that is new, so that it has no timeouts and is not to be non-blocking.
    pub(super) fn fresh(inner: net::UnixStream) -> UnixStream {
        UnixStream(Socket::fresh(inner))
    }

    /// Ends one direction of the connection or both, for all clones.
    ///
    /// All waiters of that direction wake, on every clone: a reader reads the end of the stream; a writer
    /// gets an error, up to a quarter of a second later, since the system does not tell it.
    ///
    /// # Errors
    ///
    /// What `shutdown(2)` says.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
    }

    /// Writes bytes, and sends descriptors along with the first of them.
    ///
    /// The peer gets duplicates of the descriptors. Returns the number of bytes, of which there is one at the least: the rest
    /// is for a plain write.
    ///
    /// # Cancellation
    ///
    /// As for a write: a wait is a cancellation point, and has sent nothing.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there are descriptors and no bytes, or more than 253 descriptors; and as a write.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use std::os::fd::AsFd;
    /// use fibra_io::io::{PipeReader, pipe};
    /// use fibra_io::net::UnixStream;
    ///
    /// let (here, there) = UnixStream::pair()?;
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
        if buf.is_empty() && !fds.is_empty() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "descriptors go along with bytes"));
        }
        self.0.dispatch(|| send_fds(self.as_fd(), buf, fds, None).map(|n| Attempt::written(n, buf.len())))
    }

    /// Reads bytes, and appends the descriptors that came along to `fds`.
    ///
    /// A read does not go on from the bytes of one sender's descriptors into those of the next. The descriptors are closed
    /// in children that are started. A plain read discards those that come with its bytes.
    ///
    /// # Cancellation
    ///
    /// As for a read: a wait is a cancellation point, and has taken nothing.
    ///
    /// # Errors
    ///
    /// As a read. If the process has no descriptors left, those that do not fit are lost without an error.
    #[doc(alias("SocketAncillary", "SCM_RIGHTS", "recvmsg", "recv_vectored_with_ancillary"))]
    pub fn recv_with_fds(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        self.0.receive(|| recv_fds(self.as_fd(), buf, fds).map(|(n, _sender)| Attempt::Done(n)))
    }

    /// Returns the credentials of the peer at the time when it connected, listened or made the pair.
    ///
    /// # Errors
    ///
    /// What the system says.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::net::UnixStream;
    ///
    /// let (here, _there) = UnixStream::pair()?;
    /// let peer = here.peer_cred()?;
    /// assert!(peer.pid.is_none_or(|pid| pid == std::process::id() as i32));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn peer_cred(&self) -> io::Result<UCred> {
        let (uid, gid, pid) = peer_cred(self.as_fd())?;
        Ok(UCred { uid, gid, pid })
    }

    /// Reads data and leaves it for the next read.
    ///
    /// It waits as a read does.
    ///
    /// # Cancellation
    ///
    /// As for a read: a wait is a cancellation point.
    ///
    /// # Errors
    ///
    /// As a read.
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf)
    }
}
