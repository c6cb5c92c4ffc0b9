//! A listening socket: the inner value of TCP and Unix listeners.
//!
//! `accept(2)` has no flag that keeps it from waiting. So the descriptor is always non-blocking, and
//! the mode that the user has set is stored in this type.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fibra_runtime::{sleep, wait};
use socket2::SockRef;

use crate::sys::Direction;
use crate::waiting::attempt::Attempt;
use crate::waiting::convert::Wraps;
use crate::waiting::descriptor::Descriptor;
use crate::waiting::timeouts::Timeout;

/// The wait of an accept that has found no descriptor left, in which other tasks may close theirs.
const PAUSE: Duration = Duration::from_millis(10);

/// See the [module](self).
pub(crate) struct Acceptor<L: AsFd> {
    io: Descriptor<L>,
    /// True once the descriptor may have a clone that changes their common mode.
    ///
    /// From then on the mode is set before each accept, which costs a system call. Otherwise a clone
    /// turned blocking elsewhere would stop a worker. A clone turned between the two calls still
    /// does, until the next connection comes.
    shared: AtomicBool,
    common: Arc<Common>,
}

/// The common state of clones that `try_clone` makes.
#[derive(Default)]
struct Common {
    /// How long they wait.
    limit: Timeout,
    /// True once other code may have set options of the socket, which its connections inherit.
    seen: AtomicBool,
}

impl<L: AsFd> Acceptor<L> {
    /// Takes a listener that is new.
    pub(crate) fn fresh(inner: L) -> io::Result<Acceptor<L>> {
        SockRef::from(&inner).set_nonblocking(true)?;
        Ok(Acceptor::new(inner, false, false, Arc::default()))
    }

    /// Takes a new listener whose descriptor other code may have, and change its mode.
    pub(crate) fn seen(inner: L) -> io::Result<Acceptor<L>> {
        let acceptor = Acceptor::fresh(inner)?;
        acceptor.expose();
        Ok(acceptor)
    }

    fn new(inner: L, nonblocking: bool, shared: bool, common: Arc<Common>) -> Acceptor<L> {
        let io = Descriptor::new(inner, nonblocking);
        Acceptor { io, shared: AtomicBool::new(shared), common }
    }

    /// Returns true if its connections may inherit unknown timeouts.
    pub(crate) fn is_seen(&self) -> bool {
        // Relaxed: see `expose`.
        self.common.seen.load(Ordering::Relaxed)
    }

    pub(crate) fn std(&self) -> &L {
        self.io.inner()
    }

    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn io(&self) -> &Descriptor<L> {
        &self.io
    }

    pub(crate) fn try_clone(&self) -> io::Result<Acceptor<L>>
    where
        L: From<OwnedFd>,
    {
        // Relaxed: see `expose`.
        self.shared.store(true, Ordering::Relaxed);
        let clone = L::from(self.io.fd().try_clone_to_owned()?);
        Ok(Acceptor::new(clone, self.io.is_nonblocking(), true, Arc::clone(&self.common)))
    }

    pub(crate) fn limit(&self) -> &Timeout {
        &self.common.limit
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) {
        self.io.set_nonblocking(nonblocking);
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        SockRef::from(self.std()).take_error()
    }

    /// Waits for a connection, which std's `accept` takes.
    ///
    /// Children do not inherit the new descriptor. It stays in blocking mode, as std would have made
    /// it; no call of this crate depends on the mode.
    pub(crate) fn accept<T>(&self, accept: impl Fn(&L) -> io::Result<T>) -> io::Result<T> {
        let call = || self.try_accept(&accept).map(Attempt::Done);
        let accepted = self.io.run(Direction::Read, || self.common.limit.left(), call);
        if accepted.as_ref().is_err_and(is_exhaustion)
            && !self.io.is_nonblocking()
            && !wait::unwinds_cancelled()
        {
            sleep(PAUSE);
        }
        accepted
    }

    /// Accepts without waiting.
    pub(crate) fn try_accept<T>(&self, accept: impl Fn(&L) -> io::Result<T>) -> io::Result<T> {
        // Relaxed: see `expose`.
        if self.shared.load(Ordering::Relaxed) {
            SockRef::from(self.std()).set_nonblocking(true)?;
        }
        loop {
            match accept(self.std()) {
                Err(error) if was_given_up(&error) => {}
                outcome => return outcome,
            }
        }
    }
}

/// Returns true for a connection that ended while it was in the queue.
fn was_given_up(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted || error.raw_os_error() == Some(libc::EPROTO)
}

/// Returns true for a lack of descriptors or memory, which passes as other code closes its own.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl<L: AsFd> Wraps<L> for Acceptor<L> {
    /// Takes a listener that waits, whatever its mode.
    ///
    /// The mode need not be the user's: another listener of this crate may have made the open file
    /// non-blocking, as the first accept of this one does.
    fn adopt(inner: L) -> Acceptor<L> {
        let acceptor = Acceptor::new(inner, false, true, Arc::default());
        acceptor.expose();
        acceptor
    }

    /// Sets the mode that the user has set for this value.
    ///
    /// The mode in which the descriptor came may be that of another listener of this crate. Such a
    /// listener sets the mode itself, before each accept.
    fn into_std(self) -> L {
        // It fails only on what is no open descriptor, and then there is nothing to put into a mode.
        let _ = SockRef::from(self.std()).set_nonblocking(self.io.is_nonblocking());
        self.io.into_inner()
    }

    fn expose(&self) -> &L {
        // Relaxed, both: a thread that changes the mode or an option for a later accept synchronises with
        // that accept.
        self.shared.store(true, Ordering::Relaxed);
        self.common.seen.store(true, Ordering::Relaxed);
        self.std()
    }
}
