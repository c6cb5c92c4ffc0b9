//! An open socket: what streams and datagram sockets of every family are made of.
//!
//! A descriptor that tasks can wait for, and how long they wait. The types differ in names and
//! addresses; the transfers are here, those of streams in this file and those of datagrams in
//! `datagram.rs`.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fibra_runtime::wait;
use socket2::{Protocol, SockRef};

use crate::sys;
use crate::sys::Direction;
use crate::waiting::attempt::Attempt;
use crate::waiting::convert::Wraps;
use crate::waiting::descriptor::Descriptor;
use crate::waiting::timeouts::{Timeouts, refuse_zero};

#[cfg(test)]
mod tests;

/// The shortest timeout that the kernel's option can hold; a shorter one would be none.
pub(super) const SHORTEST: Duration = Duration::from_micros(1);

/// See the [module](self).
pub(crate) struct Socket<S: AsFd> {
    io: Descriptor<S>,
    /// What the handles that `try_clone` makes have in common. Made when it is first asked for:
    /// most sockets never need it, and a wait that looked into it would touch one cache line more
    /// for each connection.
    timeouts: OnceLock<Arc<Timeouts>>,
}

/// What has to be known of one of std's types to wait for it.
pub(crate) trait Kind: AsFd {
    /// True if all is one stream of bytes, so that a read which fills a part of its buffer has
    /// emptied the socket.
    const SHORT_READ_DRAINS: bool;
    /// True if a shutdown of the write direction, here or by the peer, wakes its waiters.
    const WRITERS_HEAR_OF_SHUTDOWN: bool;
}

impl Kind for std::net::TcpStream {
    const SHORT_READ_DRAINS: bool = true;
    const WRITERS_HEAR_OF_SHUTDOWN: bool = true;
}

impl Kind for std::net::UdpSocket {
    const SHORT_READ_DRAINS: bool = false;
    const WRITERS_HEAR_OF_SHUTDOWN: bool = true;
}

impl Kind for std::os::unix::net::UnixStream {
    /// A read stops short between the bytes of two senders, and where descriptors were sent along.
    const SHORT_READ_DRAINS: bool = false;
    /// Linux wakes a blocked `write`, but neither `poll` nor `epoll` calls a full socket writable for it.
    const WRITERS_HEAR_OF_SHUTDOWN: bool = false;
}

impl Kind for std::os::unix::net::UnixDatagram {
    const SHORT_READ_DRAINS: bool = false;
    /// As for streams.
    const WRITERS_HEAR_OF_SHUTDOWN: bool = false;
}

impl<S: Kind> Socket<S> {
    /// Takes a socket that is new, so that it has no timeouts and is not to be non-blocking.
    pub(crate) fn fresh(inner: S) -> Socket<S> {
        Socket::new(inner, S::SHORT_READ_DRAINS, S::WRITERS_HEAR_OF_SHUTDOWN)
    }

    /// Takes a socket whose descriptor, or whose listener's, other code may have had, with the
    /// timeouts that it has.
    pub(crate) fn seen(inner: S) -> Socket<S> {
        let option = SockRef::from(&inner);
        let timeouts = [(Direction::Read, option.read_timeout()), (Direction::Write, option.write_timeout())];
        // A type of std's is no proof: a descriptor that becomes one may keep messages apart, of
        // which a read gives one at a time, and may be of the Unix family, where protocols have no
        // numbers.
        let protocol = option.protocol().unwrap_or(None);
        let drains = S::SHORT_READ_DRAINS && matches!(protocol, Some(Protocol::TCP | Protocol::MPTCP));
        let hears = S::WRITERS_HEAR_OF_SHUTDOWN && protocol.is_some();
        let socket = Socket::new(inner, drains, hears);
        for (direction, timeout) in timeouts {
            if let Ok(Some(timeout)) = timeout {
                socket.timeouts().of(direction).set(Some(timeout));
            }
        }
        socket
    }

    fn new(inner: S, short_reads_drain: bool, hears: bool) -> Socket<S> {
        let io = Descriptor::new(inner, false).short_reads_drain(short_reads_drain).recheck_writes(!hears);
        Socket { io, timeouts: OnceLock::new() }
    }

    /// The std value, for everything that neither waits nor changes hands.
    pub(crate) fn std(&self) -> &S {
        self.io.inner()
    }

    pub(crate) fn io(&self) -> &Descriptor<S> {
        &self.io
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.io.fd()
    }

    /// The options of the socket.
    pub(crate) fn option(&self) -> SockRef<'_> {
        SockRef::from(self.std())
    }

    /// Where timeouts and deadlines are kept.
    pub(crate) fn timeouts(&self) -> &Arc<Timeouts> {
        self.timeouts.get_or_init(Arc::default)
    }

    pub(crate) fn timeout(&self, direction: Direction) -> Option<Duration> {
        self.timeouts.get()?.of(direction).get()
    }

    /// Returns how long a transfer that begins to wait now may do so.
    #[inline]
    pub(crate) fn left(&self, direction: Direction) -> Option<Duration> {
        self.timeouts.get()?.of(direction).left()
    }

    pub(crate) fn try_clone(&self) -> io::Result<Socket<S>>
    where
        S: From<OwnedFd>,
    {
        let clone = S::from(self.fd().try_clone_to_owned()?);
        Ok(Socket { io: self.io.with_clone(clone), timeouts: Arc::clone(self.timeouts()).into() })
    }

    pub(crate) fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
        let of_kernel = refuse_zero(timeout)?.map(|timeout| timeout.max(SHORTEST));
        match direction {
            Direction::Read => self.option().set_read_timeout(of_kernel)?,
            Direction::Write => self.option().set_write_timeout(of_kernel)?,
        }
        // Nothing is to be done to remove a timeout while none was set.
        if timeout.is_some() || self.timeouts.get().is_some() {
            self.timeouts().of(direction).set(timeout);
        }
        Ok(())
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.option().set_nonblocking(nonblocking)?;
        self.io.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Runs a call that brings something here; waits as long as a read may.
    #[inline]
    pub(crate) fn receive<T>(&self, call: impl FnMut() -> io::Result<Attempt<T>>) -> io::Result<T> {
        self.io.run(Direction::Read, || self.left(Direction::Read), call)
    }

    /// Runs a call that takes something away; waits as long as a write may.
    #[inline]
    pub(crate) fn dispatch<T>(&self, call: impl FnMut() -> io::Result<Attempt<T>>) -> io::Result<T> {
        self.io.run(Direction::Write, || self.left(Direction::Write), call)
    }
}

/// Streams of bytes.
impl<S: Kind> Socket<S> {
    #[inline]
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.receive(|| sys::recv(self.fd(), buf, 0).map(|n| self.io.have_read(n, buf.len())))
    }

    /// Reads and leaves what it has read where it is; otherwise waits as a read does.
    pub(crate) fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.receive(|| sys::recv(self.fd(), buf, libc::MSG_PEEK).map(Attempt::Done))
    }

    pub(crate) fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match sys::total(bufs) {
            // Of `readv(2)`, which std calls, the socket does not even hear then.
            0 => {
                wait::charge();
                Ok(0)
            }
            len => self.receive(|| sys::recv_vectored(self.fd(), bufs).map(|n| self.io.have_read(n, len))),
        }
    }

    #[inline]
    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        let call = || sys::send(self.fd(), buf).map(|n| Attempt::written(n, buf.len()));
        match buf.is_empty() {
            // It may fail all the same.
            true => self.io.run_empty(Direction::Write, || self.left(Direction::Write), call),
            false => self.dispatch(call),
        }
    }

    pub(crate) fn write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match sys::total(bufs) {
            // As for a read.
            0 => {
                wait::charge();
                Ok(0)
            }
            len => self.dispatch(|| sys::send_vectored(self.fd(), bufs).map(|n| Attempt::written(n, len))),
        }
    }
}

impl<S: Kind> Wraps<S> for Socket<S> {
    /// The mode and the timeouts that std would obey are read from it.
    fn adopt(inner: S) -> Socket<S> {
        let socket = Socket::seen(inner);
        socket.io.set_nonblocking(socket.option().nonblocking().unwrap_or(false));
        socket
    }

    fn into_std(self) -> S {
        self.io.into_inner()
    }

    fn expose(&self) -> &S {
        self.std()
    }
}
