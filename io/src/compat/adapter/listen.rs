//! The accepts of an `Async` around a listener.

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::endpoints::Polls;
use super::{Async, Listener, Site, Waits};
use crate::reactor::Handle;
use crate::sys::Direction;
use crate::waiting::attempt::Attempt;

/// A connection, and where it comes from.
type Accepted<L> = (Async<<L as Listener>::Stream>, <L as Listener>::Address);

impl<L: Listener> Async<L> {
    /// Accepts a connection, and returns its `Async` with the address of its peer.
    ///
    /// # Errors
    /// Those of the listener. That no descriptor is left is said at once, without the pause that
    /// its own `accept` makes. Wait for some milliseconds before the next call.
    ///
    /// # Fairness
    /// A connection wakes all waiters of the listener, which compete for it.
    ///
    /// # Examples
    /// ```
    /// use fibra_io::compat::Async;
    /// use fibra_io::net::{TcpListener, TcpStream};
    ///
    /// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
    /// # runtime.run(|| -> std::io::Result<()> {
    /// let listener = Async::new(TcpListener::bind("127.0.0.1:0")?);
    /// let client = TcpStream::connect(listener.get_ref().local_addr()?)?;
    /// let (server, from) = fibra_runtime::block_on(listener.accept())?;
    /// assert_eq!(from, client.local_addr()?);
    /// assert_eq!(server.get_ref().peer_addr()?, from);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn accept(&self) -> io::Result<Accepted<L>> {
        let mut waits = Waits::new();
        poll_fn(|context| self.site(&mut waits).accept(context)).await
    }

    /// [`accept`](Async::accept) as a poll, which keeps the waker of the last one.
    ///
    /// # Errors
    /// As [`accept`](Async::accept).
    ///
    /// # Examples
    /// ```
    /// use std::future::poll_fn;
    /// use fibra_io::compat::Async;
    /// use fibra_io::net::{TcpListener, TcpStream};
    ///
    /// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
    /// # runtime.run(|| -> std::io::Result<()> {
    /// let mut listener = Async::new(TcpListener::bind("127.0.0.1:0")?);
    /// let client = TcpStream::connect(listener.get_ref().local_addr()?)?;
    /// let (_server, from) = fibra_runtime::block_on(poll_fn(|cx| listener.poll_accept(cx)))?;
    /// assert_eq!(from, client.local_addr()?);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted<L>>> {
        self.polled().accept(context)
    }
}

impl<L: Listener> Site<'_, L> {
    fn accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted<L>>> {
        let call = || self.socket.try_accept().map(Attempt::Done);
        let accepted = self.waits.reads.run(self.socket.inner(), self.origin, context, call);
        accepted.map_ok(|(stream, from)| (Async::of_origin(stream, || self.heir()), from))
    }

    /// Returns the reactor that a stream relies on where it is polled without one.
    fn heir(&self) -> Option<Arc<Handle>> {
        let origin = self.origin.filter(|origin| !origin.is_closed());
        origin.cloned().or_else(|| self.socket.inner().events(Direction::Read).registered?.0.reactor())
    }
}
