//! `UnixListener`, with the methods of [`std::os::unix::net::UnixListener`].

#![forbid(unsafe_code)]

use std::io;
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;

use super::UnixStream;
use crate::net::acceptor::Acceptor;
use crate::net::options::{incoming, listener_methods};

/// Accepts connections from this machine.
///
/// It is [`std::os::unix::net::UnixListener`], for tasks.
///
/// [`accept`](UnixListener::accept) puts the task to sleep until a client connects; in a plain
/// thread it blocks it. The file at the path stays when the listener is dropped, as with std.
///
/// # Fairness
///
/// Tasks that wait on one listener are all woken by a connection, and compete for it.
///
/// # Differences from std
///
/// * [`set_nonblocking`](UnixListener::set_nonblocking) is the wish of this value alone; a clone
///   has its own, which it takes over when it is made. The descriptor itself is non-blocking, as
///   that of a [`TcpListener`](crate::net::TcpListener) is. So a listener made from std's type or
///   from a descriptor waits, whatever mode that is in.
/// * An `accept` that finds no descriptor left waits for some milliseconds before it says so.
/// * Deadlines are additions.
///
/// # Examples
///
/// ```
/// use fibra_io::os::linux::net::SocketAddrExt;
/// use fibra_io::os::unix::net::{SocketAddr, UnixListener, UnixStream};
///
/// let address = SocketAddr::from_abstract_name(format!("example of {}", std::process::id()))?;
/// let listener = UnixListener::bind_addr(&address)?;
/// let client = UnixStream::connect_addr(&address)?;
/// let (server, from) = listener.accept()?;
/// assert!(from.is_unnamed() && client.peer_addr()?.as_abstract_name() == address.as_abstract_name());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A path, time limits and handles:
///
/// ```
/// use std::io::ErrorKind;
/// use std::time::Instant;
/// use fibra_io::net::{UnixListener, UnixStream};
///
/// let path = std::env::temp_dir().join(format!("fibra-listener-{}", std::process::id()));
/// let listener = UnixListener::bind(&path)?;
/// let clone = listener.try_clone()?;
/// let now = Some(Instant::now());
/// clone.set_accept_deadline(now);
/// assert_eq!(listener.accept_deadline(), now);
/// assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
/// clone.set_accept_deadline(None);
/// clone.set_nonblocking(true)?;
/// assert_eq!(clone.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
///
/// let client = UnixStream::connect(&path)?;
/// let server = listener.incoming().next().unwrap()?;
/// assert_eq!(server.local_addr()?.as_pathname(), Some(&*path));
/// assert!(client.peer_addr()?.as_pathname().is_some() && listener.take_error()?.is_none());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct UnixListener(pub(crate) Acceptor<net::UnixListener>);

listener_methods!(UnixListener, net::UnixListener::accept, UnixStream, SocketAddr);
incoming!(UnixListener, UnixStream);

impl UnixListener {
    /// Binds a new listener to a path, at which there must be no file.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if there is one, `InvalidInput` if the path is too long for an address, and what
    /// `bind(2)` says.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<UnixListener> {
        Acceptor::fresh(net::UnixListener::bind(path)?).map(UnixListener)
    }

    /// Binds to an address, which may be an abstract name.
    ///
    /// # Errors
    ///
    /// As [`bind`](UnixListener::bind).
    pub fn bind_addr(socket_addr: &SocketAddr) -> io::Result<UnixListener> {
        Acceptor::fresh(net::UnixListener::bind_addr(socket_addr)?).map(UnixListener)
    }

    fn take(&self, stream: net::UnixStream) -> UnixStream {
        UnixStream::fresh(stream)
    }
}

impl<'a> IntoIterator for &'a UnixListener {
    type Item = io::Result<UnixStream>;
    type IntoIter = Incoming<'a>;

    fn into_iter(self) -> Incoming<'a> {
        self.incoming()
    }
}
