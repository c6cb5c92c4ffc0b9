//! `TcpStream`, with the methods of [`std::net::TcpStream`].

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, Shutdown, SocketAddr};

use crate::net::options::{handle_methods, tcp_methods, ttl_methods};
use crate::net::socket::Socket;
use crate::waiting::convert::{reads, writes};

/// One end of a TCP connection: [`std::net::TcpStream`], for tasks.
///
/// Reading and writing put the task to sleep, never the thread; in a plain thread they block it. Dropping the stream closes
/// it. Reading and writing are independent, and any number of tasks may do either at once through `&TcpStream`.
///
/// # Fairness
///
/// Tasks that wait to read one stream are all woken when something arrives, and compete for it. Bytes are not promised
/// to anyone; writes of several tasks may interleave wherever one of them is cut short.
///
/// # Differences from std
///
/// * [`set_nonblocking`](TcpStream::set_nonblocking) sets the mode of this value alone. A clone starts
///   with that mode and has its own from then on.
/// * Clones that [`try_clone`](TcpStream::try_clone) makes share timeouts, as in std. A clone made by
///   other means keeps those that it was made with.
/// * [`set_linger`](TcpStream::set_linger) and [`linger`](TcpStream::linger) are not stable in std yet. Deadlines, the sizes
///   of the buffers and keep-alive are additions.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use fibra_io::net::{Shutdown, TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(listener.local_addr()?)?;
/// let (mut server, _) = listener.accept()?;
/// client.write_all(b"request")?;
/// client.shutdown(Shutdown::Write)?;
/// let mut request = String::new();
/// server.read_to_string(&mut request)?;
/// assert_eq!(request, "request");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Options, time limits, and handles of one connection:
///
/// ```
/// use std::io::{ErrorKind, Read, Write};
/// use std::time::{Duration, Instant};
/// use fibra_io::net::{Keepalive, TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let limit = Duration::from_secs(5);
/// let stream = TcpStream::connect_timeout(&address, limit)?;
/// let mut peer = TcpStream::connect_deadline(&address, Instant::now() + limit)?;
/// assert_eq!(peer.peer_addr()?, address);
///
/// stream.set_nodelay(true)?;
/// stream.set_linger(Some(limit))?;
/// stream.set_ttl(9)?;
/// stream.set_keepalive(Some(Keepalive::default()))?;
/// assert!(stream.nodelay()? && stream.keepalive()?.is_some());
/// assert_eq!((stream.linger()?, stream.ttl()?), (Some(limit), 9));
/// stream.set_recv_buffer_size(1 << 16)?;
/// stream.set_send_buffer_size(1 << 16)?;
/// assert!(stream.recv_buffer_size()? >= 1 << 16 && stream.send_buffer_size()? >= 1 << 16);
///
/// stream.set_read_timeout(Some(limit))?;
/// stream.set_write_timeout(Some(limit))?;
/// let clone = stream.try_clone()?;
/// assert_eq!((clone.read_timeout()?, clone.write_timeout()?), (Some(limit), Some(limit)));
/// let now = Instant::now();
/// stream.set_read_deadline(Some(now));
/// stream.set_write_deadline(Some(now));
/// assert_eq!((clone.read_deadline(), clone.write_deadline()), (Some(now), Some(now)));
/// assert_eq!((&stream).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// assert!(stream.take_error()?.is_none());
///
/// let (accepted, _) = listener.accept()?;
/// assert_eq!(accepted.peer_addr()?, stream.local_addr()?);
/// (&accepted).write_all(b"twice")?;
/// stream.set_read_deadline(None);
/// let mut buf = [0; 5];
/// assert_eq!(stream.peek(&mut buf)?, (&stream).read(&mut buf)?);
/// peer.set_nonblocking(true)?;
/// assert_eq!(peer.read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TcpStream(pub(crate) Socket<net::TcpStream>);

handle_methods!(TcpStream, SocketAddr);
tcp_methods!(TcpStream);
ttl_methods!(TcpStream);
reads!(TcpStream);
writes!(TcpStream);

impl TcpStream {
    /// Takes a stream that is new, so that it has no timeouts and is not to be non-blocking.
    pub(super) fn fresh(inner: net::TcpStream) -> TcpStream {
        TcpStream(Socket::fresh(inner))
    }

    /// Takes a stream with its timeouts, whose descriptor or listener other code may have had.
    pub(super) fn seen(inner: net::TcpStream) -> TcpStream {
        TcpStream(Socket::seen(inner))
    }

    /// Ends one direction of the connection or both, for all clones.
    ///
    /// All waiters of that direction wake, on every clone: a reader reads the end of the stream, a writer
    /// gets an error.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the connection has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.std().shutdown(how)
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
