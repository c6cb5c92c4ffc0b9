//! One attempt to connect: start it, wait until the socket is writable, get the outcome.

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::task::{Context, Poll};
use std::time::Instant;

use socket2::{Domain, Socket};

use super::TcpStream;
use crate::net::{simulated, timed_out};
use crate::sys::Direction;
use crate::waiting::edge_wait::EdgeWait;

/// An attempt under way.
///
/// The descriptor is non-blocking until it ends, since `connect(2)` has no flag for that. Then it is
/// put into the mode that std uses.
pub(super) struct Connecting {
    stream: TcpStream,
    /// True if the call succeeded at once: over TCP Fast Open the first write asks the peer.
    is_done: bool,
}

impl Connecting {
    /// Starts an attempt.
    pub(super) fn start(address: SocketAddr) -> io::Result<Connecting> {
        let socket = simulated::tcp_socket(Domain::for_address(address))?;
        Connecting::start_with(socket, address, TcpStream::fresh)
    }

    pub(super) fn start_with(
        socket: Socket,
        address: SocketAddr,
        take: fn(net::TcpStream) -> TcpStream,
    ) -> io::Result<Connecting> {
        socket.set_nonblocking(true)?;
        let is_done = match simulated::connect(&socket, address) {
            Ok(()) => true,
            Err(error) if is_under_way(&error) => false,
            Err(error) => return Err(error),
        };
        Ok(Connecting { stream: take(socket.into()), is_done })
    }

    /// Waits for the outcome until the deadline, if there is one.
    pub(super) fn by(self, deadline: Option<Instant>) -> io::Result<TcpStream> {
        self.until(deadline)?.map_err(|_pending| timed_out())
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.0.io().fd()
    }

    /// Returns true if the reactor of the caller's worker hears of the outcome.
    pub(super) fn is_heard_here(&self) -> bool {
        matches!(self.stream.0.io().registered().attach_here(self.fd().as_raw_fd()), Ok(Some(_)))
    }

    /// Returns whether there was an event since the last look. If not, the waker of the last poll is called at the next one.
    pub(super) fn poll_edge(&self, wait: &mut EdgeWait, context: &mut Context<'_>) -> Poll<()> {
        let io = self.stream.0.io();
        // After the end of its reactor it has to be looked at from elsewhere.
        let Ok(Some(reliance)) = io.registered().attach_here(self.fd().as_raw_fd()) else {
            return Poll::Ready(());
        };
        wait.poll(io.source(), reliance.set_id, context)
    }

    /// Waits for the outcome. An attempt that is undecided at the deadline comes back as the error.
    ///
    /// The first look comes before the first wait: over the loopback the outcome is often there.
    pub(super) fn until(self, deadline: Option<Instant>) -> io::Result<Result<TcpStream, Connecting>> {
        let Connecting { stream, is_done } = self;
        let look = || if is_done { Ok(()) } else { look(&stream) };
        if stream.0.io().run_until(Direction::Write, deadline, look)?.is_none() {
            return Ok(Err(Connecting { stream, is_done }));
        }
        stream.0.std().set_nonblocking(false)?;
        Ok(Ok(stream))
    }
}

/// Returns the outcome, or `WouldBlock`. Only an error or a peer proves the end, not an event.
fn look(socket: &TcpStream) -> io::Result<()> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error),
    }
}

fn is_under_way(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS) || error.kind() == io::ErrorKind::Interrupted
}
