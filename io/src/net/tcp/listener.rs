//! The listener: std's methods, one by one.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use fibra_runtime::wait;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{Incoming, IntoIncoming, TcpStream};
use crate::descriptor::Descriptor;
use crate::net::ToSocketAddrs;
use crate::net::resolve::try_each;
use crate::op::Attempt;
use crate::readiness::Direction;

/// Connections that the kernel keeps for a listener before someone accepts them. std asks for 128, which one turn of a
/// busy worker can fill, and an overflow costs a client a second. Linux cuts this to `net.core.somaxconn`, whose
/// default is the same number.
const BACKLOG: i32 = 4096;
/// The shortest wait of an `accept` that has found no descriptor left; it doubles each time in a row.
const PAUSE: Duration = Duration::from_millis(1);
/// How often it doubles: up to 16 milliseconds.
const PAUSE_DOUBLINGS: u32 = 4;

/// Accepts TCP connections: [`std::net::TcpListener`], for tasks.
///
/// [`accept`](TcpListener::accept) puts the task to sleep until somebody connects; in a plain thread it blocks it.
///
/// # Fairness
///
/// Tasks that wait on one listener are all woken by a connection, and compete for it.
///
/// # Differences from std
///
/// * The backlog is 4096, not 128.
/// * [`set_nonblocking`](TcpListener::set_nonblocking) is the wish of this value alone; a clone has its own, which it
///   takes over when it is made. The descriptor itself is always non-blocking, because `accept(2)` has no flag for it;
///   std types made from it are put into the mode that was wished for. A clone that std holds beside one of ours shares
///   that mode, and an `accept` of ours sets it: it will see `WouldBlock`.
/// * An `accept` that finds no descriptor left waits for some milliseconds before it says so.
/// * [`into_incoming`](TcpListener::into_incoming) is not stable in std yet.
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
pub struct TcpListener {
    io: Descriptor<std::net::TcpListener>,
    /// True once the descriptor may have a clone somewhere that changes the mode which all of them share. From then
    /// on the mode is set before each accept, one system call more, so that a clone turned blocking elsewhere does
    /// not stop a worker. (A clone that is turned between that call and the accept still does, until the next
    /// connection comes.)
    shared: AtomicBool,
    /// Accepts in a row that found no descriptor left.
    exhausted: AtomicU32,
}

impl TcpListener {
    /// Binds a new listener to the first of the addresses that can be bound, with `SO_REUSEADDR`.
    ///
    /// Port 0 asks the system for a free port, which [`local_addr`](TcpListener::local_addr) then tells.
    ///
    /// # Errors
    ///
    /// That of the last address, or of the lookup; `InvalidInput` if there is no address.
    pub fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<TcpListener> {
        try_each(addr, |address| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let listener = std::net::TcpListener::from(socket);
            listener.set_nonblocking(true)?;
            Ok(TcpListener::new(listener, false, false))
        })
    }

    fn new(inner: std::net::TcpListener, nonblocking: bool, shared: bool) -> TcpListener {
        let io = Descriptor::new(inner, nonblocking);
        TcpListener { io, shared: AtomicBool::new(shared), exhausted: AtomicU32::new(0) }
    }

    /// Takes a listener of whatever history: the mode that std would obey is read from it. It becomes non-blocking at the
    /// first accept.
    pub(super) fn adopt(inner: std::net::TcpListener) -> TcpListener {
        let nonblocking = SockRef::from(&inner).nonblocking().unwrap_or(false);
        TcpListener::new(inner, nonblocking, true)
    }

    /// Deregisters, and gives std's listener away, in the mode that the user has asked for.
    pub(super) fn into_std(self) -> std::net::TcpListener {
        // It fails only on what is no open descriptor, and then there is nothing to put into a mode.
        let _ = self.std().set_nonblocking(self.io.is_nonblocking());
        self.io.into_inner()
    }

    /// The descriptor for the user, who may clone it.
    pub(super) fn expose(&self) -> &std::net::TcpListener {
        // Relaxed: whoever changes the mode through a clone and expects an accept to know of it synchronises with it.
        self.shared.store(true, Ordering::Relaxed);
        self.std()
    }

    fn std(&self) -> &std::net::TcpListener {
        self.io.inner()
    }

    /// Gives the address that the listener is bound to.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.std().local_addr()
    }

    /// Makes a second handle of the same listener, with a descriptor of its own.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<TcpListener> {
        let clone = self.expose().try_clone()?;
        Ok(TcpListener::new(clone, self.io.is_nonblocking(), true))
    }

    /// Waits for the next connection, and gives it with the address of its other end.
    ///
    /// A connection that was given up before it could be accepted is passed over.
    ///
    /// # Errors
    ///
    /// What `accept(2)` says. When the process or the system has run out of descriptors or memory, the error comes
    /// after a pause of 1 to 16 milliseconds, growing as long as that lasts, in which the tasks that would close
    /// descriptors run: a loop that logs the error and goes on survives.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self.io.run(Direction::Read, || None, || self.try_accept().map(Attempt::Done));
        match &accepted {
            // Relaxed: a count that sets the length of a pause.
            Ok(_) if self.exhausted.load(Ordering::Relaxed) != 0 => {
                self.exhausted.store(0, Ordering::Relaxed)
            }
            Err(error) if is_exhaustion(error) => self.pause(),
            _ => {}
        }
        accepted
    }

    /// Gives the connections one after the other: [`accept`](TcpListener::accept) as an iterator that never ends.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// The same, owning the listener.
    #[must_use = "`self` will be dropped if the result is not used"]
    pub fn into_incoming(self) -> IntoIncoming {
        IntoIncoming { listener: self }
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

    /// Sets `IPV6_V6ONLY`.
    ///
    /// # Errors
    ///
    /// Always, as in std: what `setsockopt(2)` says of a socket that is bound.
    #[deprecated(note = "this option can only be set before the socket is bound")]
    pub fn set_only_v6(&self, only_v6: bool) -> io::Result<()> {
        SockRef::from(self.std()).set_only_v6(only_v6)
    }

    /// Tells whether `IPV6_V6ONLY` is set.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    #[deprecated(note = "this option can only be set before the socket is bound")]
    pub fn only_v6(&self) -> io::Result<bool> {
        SockRef::from(self.std()).only_v6()
    }

    /// Takes the pending error of the socket away (`SO_ERROR`).
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.std().take_error()
    }

    /// Makes `accept` through this handle fail with `WouldBlock` instead of waiting, or wait again.
    ///
    /// # Errors
    ///
    /// None; the type is std's.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.io.set_nonblocking(nonblocking);
        Ok(())
    }

    /// One accept that does not wait. The new descriptor is not inherited by children; it is left in blocking mode,
    /// which no call of ours minds, so that it is what std would have made when it leaves us.
    fn try_accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        // Relaxed: see `expose`.
        if self.shared.load(Ordering::Relaxed) {
            self.std().set_nonblocking(true)?;
        }
        loop {
            match self.std().accept() {
                Ok((stream, peer)) => return Ok((TcpStream::fresh(stream), peer)),
                Err(error) if was_given_up(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets the tasks run that would close descriptors.
    #[cold]
    fn pause(&self) {
        // Relaxed: see `accept`.
        let before = self.exhausted.fetch_add(1, Ordering::Relaxed);
        let pause = PAUSE * (1 << before.min(PAUSE_DOUBLINGS));
        if self.io.is_nonblocking() || wait::unwinds_from_cancel() {
            return;
        }
        match wait::in_task() {
            true => fibra_runtime::sleep(pause),
            false => std::thread::sleep(pause),
        }
    }
}

/// A connection that ended while it stood in the queue.
fn was_given_up(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted || error.raw_os_error() == Some(libc::EPROTO)
}

/// No descriptor or no memory left: a state that passes when others close theirs.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}
