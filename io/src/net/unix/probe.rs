//! A descriptor that tells of room in the queue of an unconnected receiver.
//!
//! No event of the sender's socket tells when there is room again. A socket that is connected to
//! the receiver hears of it, so one is made for the wait.

#![forbid(unsafe_code)]

use std::io;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use socket2::{SockAddr, SockRef};

use crate::sys;
use crate::sys::Direction;
use crate::waiting::attempt::Attempt;
use crate::waiting::descriptor::Descriptor;

/// See the [module](self).
pub(crate) struct Probe(Descriptor<UnixDatagram>);

impl Probe {
    /// Makes a probe. Returns `None` if that receiver cannot be waited for: it is gone, or it is
    /// connected. What that means to a message, sending it will tell: a receiver that is connected
    /// to the sender has always room, but the sender's own socket may have none.
    pub(crate) fn of(receiver: &SockAddr) -> io::Result<Option<Probe>> {
        let socket = UnixDatagram::unbound()?;
        let connected = SockRef::from(&socket).connect(receiver);
        Ok(connected.ok().map(|()| Probe(Descriptor::new(socket, false))))
    }

    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn io(&self) -> &Descriptor<UnixDatagram> {
        &self.0
    }

    /// Waits until there is room.
    pub(super) fn wait(&self, timeout: impl Fn() -> Option<Duration>) -> io::Result<()> {
        self.0.run(Direction::Write, timeout, || self.look())
    }

    /// `WouldBlock` unless there is room.
    pub(crate) fn look(&self) -> io::Result<Attempt<()>> {
        sys::look(self.0.fd(), Direction::Write).map(Attempt::Done)
    }
}
