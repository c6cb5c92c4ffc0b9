//! The stream: std's methods, one by one.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;

use super::connect::{connect_any, connect_to};
use crate::descriptor::Descriptor;
use crate::net::ToSocketAddrs;
use crate::net::timeouts::Timeouts;
use crate::op::Attempt;
use crate::readiness::Direction;
use crate::sys;

/// Is one end of a TCP connection: [`std::net::TcpStream`], for tasks.
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
/// * [`set_nonblocking`](TcpStream::set_nonblocking) is the wish of this value alone; a clone has its own, which it
///   takes over when it is made.
/// * Timeouts are shared by clones, as in std, if [`try_clone`](TcpStream::try_clone) made them; a clone made by other
///   means has the ones it was made with.
/// * [`set_linger`](TcpStream::set_linger) and [`linger`](TcpStream::linger) are not stable in std yet.
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
pub struct TcpStream {
    io: Descriptor<std::net::TcpStream>,
    timeouts: Arc<Timeouts>,
}

impl TcpStream {
    /// Opens a connection to the first of the addresses that answers.
    ///
    /// A name is looked up on the blocking pool; a literal address is not. Several addresses are raced as RFC 8305
    /// ("Happy Eyeballs") has it: IPv6 and IPv4 take turns, and each attempt has a head start of 250 milliseconds over
    /// the next, which begins at once if it fails. In a plain thread they are tried one after the other, as std does.
    ///
    /// # Cancellation
    ///
    /// Waiting for the outcome is a cancellation point; the sockets are closed.
    ///
    /// # Errors
    ///
    /// That of the last address, or of the lookup; `InvalidInput` if there is no address.
    pub fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {
        connect_any(addr.to_socket_addrs()?)
    }

    /// Opens a connection to one address, within `timeout`.
    ///
    /// # Errors
    ///
    /// `TimedOut` when the time has passed, `InvalidInput` if it is zero, and as [`connect`](TcpStream::connect).
    pub fn connect_timeout(addr: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        connect_to(*addr, Some(timeout))
    }

    /// Takes a stream that is new, so that it has no timeouts and is not to be non-blocking.
    pub(super) fn fresh(inner: std::net::TcpStream) -> TcpStream {
        TcpStream { io: Descriptor::new(inner, false), timeouts: Arc::default() }
    }

    /// Takes a stream of whatever history: the mode and the timeouts that std would obey are read from it.
    pub(super) fn adopt(inner: std::net::TcpStream) -> TcpStream {
        let timeout = |of: io::Result<Option<Duration>>| of.unwrap_or(None);
        let timeouts = Timeouts::new(timeout(inner.read_timeout()), timeout(inner.write_timeout()));
        let nonblocking = SockRef::from(&inner).nonblocking().unwrap_or(false);
        TcpStream { io: Descriptor::new(inner, nonblocking), timeouts: Arc::new(timeouts) }
    }

    /// Deregisters, and gives std's stream away.
    pub(super) fn into_std(self) -> std::net::TcpStream {
        self.io.into_inner()
    }

    pub(super) fn std(&self) -> &std::net::TcpStream {
        self.io.inner()
    }

    pub(crate) fn io(&self) -> &Descriptor<std::net::TcpStream> {
        &self.io
    }

    /// Gives the address of the other end.
    ///
    /// # Errors
    ///
    /// `NotConnected` once the connection has ended.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.std().peer_addr()
    }

    /// Gives the address of this end.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.std().local_addr()
    }

    /// Ends one direction of the connection or both, for all clones. Whoever waits in that direction, through whichever
    /// clone, wakes: a reader reads the end of the stream, a writer gets an error.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the connection has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.std().shutdown(how)
    }

    /// Makes a second handle of the same connection, with a descriptor of its own.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<TcpStream> {
        let io = Descriptor::new(self.std().try_clone()?, self.io.is_nonblocking());
        Ok(TcpStream { io, timeouts: Arc::clone(&self.timeouts) })
    }

    /// Sets how long a read waits for data; `None`, the default, is for ever. A read that has waited that long fails
    /// with `WouldBlock`, as in std on every Unix. A read that waits already keeps the timeout that it started with.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the timeout is zero.
    pub fn set_read_timeout(&self, dur: Option<Duration>) -> io::Result<()> {
        self.std().set_read_timeout(dur)?;
        self.timeouts.read().set(dur);
        Ok(())
    }

    /// Sets how long a write waits for room; otherwise as [`set_read_timeout`](TcpStream::set_read_timeout).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the timeout is zero.
    pub fn set_write_timeout(&self, dur: Option<Duration>) -> io::Result<()> {
        self.std().set_write_timeout(dur)?;
        self.timeouts.write().set(dur);
        Ok(())
    }

    /// Gives the read timeout, as it was set.
    ///
    /// # Errors
    ///
    /// None; the type is std's.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.timeouts.read().get())
    }

    /// Gives the write timeout, as it was set.
    ///
    /// # Errors
    ///
    /// None; the type is std's.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.timeouts.write().get())
    }

    /// Reads without taking the data away, so that the next read gets it again. Waits as a read does.
    ///
    /// # Errors
    ///
    /// As a read.
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        let call = || sys::recv(self.io.fd(), buf, libc::MSG_PEEK).map(Attempt::Done);
        self.io.run(Direction::Read, || self.timeouts.read().get(), call)
    }

    /// Sets how long closing the last handle goes on trying to deliver what is unsent (`SO_LINGER`, whole seconds).
    /// Closing with a linger time may block the thread.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self.std()).set_linger(linger)
    }

    /// Gives the linger time, if one is set.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self.std()).linger()
    }

    /// Sets `TCP_NODELAY`: send small packets at once instead of collecting them (Nagle's algorithm).
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.std().set_nodelay(nodelay)
    }

    /// Tells whether `TCP_NODELAY` is set.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.std().nodelay()
    }

    /// Sets the time to live of the packets sent from here, in hops.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.std().set_ttl(ttl)
    }

    /// Gives the time to live, in hops.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn ttl(&self) -> io::Result<u32> {
        self.std().ttl()
    }

    /// Takes the pending error of the socket away (`SO_ERROR`).
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.std().take_error()
    }

    /// Makes reads and writes through this handle fail with `WouldBlock` instead of waiting, or wait again. The mode
    /// of the descriptor follows, for whoever uses it raw.
    ///
    /// # Errors
    ///
    /// What `ioctl(2)` says.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.std().set_nonblocking(nonblocking)?;
        self.io.set_nonblocking(nonblocking);
        Ok(())
    }

    #[inline]
    fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        let call = || sys::recv(self.io.fd(), buf, 0).map(|n| Attempt::read(n, buf.len()));
        self.io.run(Direction::Read, || self.timeouts.read().get(), call)
    }

    fn recv_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let len = sys::total(bufs.iter().map(|buf| buf.len()));
        let call = || sys::recv_vectored(self.io.fd(), bufs).map(|n| Attempt::read(n, len));
        self.io.run(Direction::Read, || self.timeouts.read().get(), call)
    }

    #[inline]
    fn send(&self, buf: &[u8]) -> io::Result<usize> {
        let call = || sys::send(self.io.fd(), buf).map(|n| Attempt::written(n, buf.len()));
        self.io.run(Direction::Write, || self.timeouts.write().get(), call)
    }

    fn send_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let len = sys::total(bufs.iter().map(|buf| buf.len()));
        let call = || sys::send_vectored(self.io.fd(), bufs).map(|n| Attempt::written(n, len));
        self.io.run(Direction::Write, || self.timeouts.write().get(), call)
    }
}

impl Read for TcpStream {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.recv(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.recv_vectored(bufs)
    }
}

impl Write for TcpStream {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.send(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_vectored(bufs)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for &TcpStream {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.recv(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.recv_vectored(bufs)
    }
}

impl Write for &TcpStream {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.send(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_vectored(bufs)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}
