//! `TcpListener`, with the methods of [`std::net::TcpListener`].

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, SocketAddr};

use socket2::SockRef;

use super::TcpStream;
use crate::net::acceptor::Acceptor;
use crate::net::options::{listener_methods, ttl_methods};
use crate::net::simulated;

/// Accepts TCP connections: [`std::net::TcpListener`], for tasks.
///
/// [`accept`](TcpListener::accept) puts the task to sleep until a client connects; in a plain
/// thread it blocks it.
///
/// # Fairness
///
/// Tasks that wait on one listener are all woken by a connection, and compete for it.
///
/// # Differences from std
///
/// * The backlog is 4096, not 128.
/// * [`set_nonblocking`](TcpListener::set_nonblocking) sets the mode of this value alone. A clone
///   starts with that mode and has its own from then on. The descriptor itself is always
///   non-blocking, because `accept(2)` has no flag for it. A std type made from it gets the mode of
///   this value. A std clone of the open file shares the descriptor's mode, so it sees `WouldBlock`
///   after an `accept` here.
/// * A listener made from std's type or from a descriptor waits, whatever mode that is in, and is
///   blocking when it becomes std's again. It may be non-blocking only because another listener of
///   this crate shares it, here or in another process. For a listener that is not to wait, call
///   `set_nonblocking(true)` afterwards.
/// * An `accept` that finds no descriptor left waits for some milliseconds before it says so.
/// * Deadlines are additions.
/// * [`into_incoming`](TcpListener::into_incoming) is not stable in std yet.
///
/// Options that must be set before the bind, such as `SO_REUSEPORT`, are set on a
/// [`TcpSocket`](crate::net::TcpSocket).
///
/// # Examples
///
/// ```
/// use fibra_io::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let client = TcpStream::connect(listener.local_addr()?)?;
/// let (server, peer) = listener.accept()?;
/// assert_eq!(peer, client.local_addr()?);
/// assert_eq!(server.local_addr()?, listener.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Time limits, handles, and iterators over the connections:
///
/// ```
/// use std::io::ErrorKind;
/// use std::time::Instant;
/// use fibra_io::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let clone = listener.try_clone()?;
/// let now = Instant::now();
/// clone.set_accept_deadline(Some(now));
/// assert_eq!(listener.accept_deadline(), Some(now));
/// assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
/// clone.set_accept_deadline(None);
/// clone.set_nonblocking(true)?;
/// assert_eq!(clone.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
/// listener.set_ttl(9)?;
/// assert!(listener.ttl()? == 9 && listener.take_error()?.is_none());
///
/// let clients = [(); 2].map(|()| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
/// let first = listener.incoming().next().unwrap()?;
/// let second = listener.into_incoming().next().unwrap()?;
/// assert_eq!([first.peer_addr()?, second.peer_addr()?], clients.map(|client| client.local_addr().unwrap()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TcpListener(pub(crate) Acceptor<net::TcpListener>);

listener_methods!(TcpListener, simulated::accept, TcpStream, SocketAddr);
ttl_methods!(TcpListener);

impl TcpListener {
    /// Wraps an accepted connection, which on most systems inherits the listener's options.
    fn take(&self, stream: net::TcpStream) -> TcpStream {
        match self.0.is_seen() {
            true => TcpStream::seen(stream),
            false => TcpStream::fresh(stream),
        }
    }

    /// Sets `IPV6_V6ONLY`.
    ///
    /// # Errors
    ///
    /// Always, as in std: what `setsockopt(2)` says of a socket that is bound.
    ///
    /// # Examples
    ///
    /// ```
    /// # #![expect(deprecated)]
    /// use fibra_io::net::TcpListener;
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// assert!(listener.set_only_v6(true).is_err());
    /// assert!(listener.only_v6().is_err(), "a socket of IPv4 has no such option");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[deprecated(note = "this option can only be set before the socket is bound")]
    pub fn set_only_v6(&self, only_v6: bool) -> io::Result<()> {
        SockRef::from(self.0.std()).set_only_v6(only_v6)
    }

    /// Returns true if `IPV6_V6ONLY` is set.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    #[deprecated(note = "this option can only be set before the socket is bound")]
    pub fn only_v6(&self) -> io::Result<bool> {
        SockRef::from(self.0.std()).only_v6()
    }
}
