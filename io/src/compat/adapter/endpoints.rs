//! The types of this crate that an `Async` polls, and the calls that poll them.
//!
//! The public traits say what a type can do. A private trait names the inner value of each type,
//! which implements the calls: once for all sockets, and once for all pipes. No call waits: it fails
//! with `WouldBlock`, and an event of the source makes another try worthwhile.

#![expect(private_bounds, reason = "the parts of the types are private")]

use std::io::{self, IoSlice, IoSliceMut};
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::io::{DuplexStream, PipeEnd, PipeReader, PipeWriter};
use crate::net::acceptor::Acceptor;
use crate::net::datagram::Family;
use crate::net::socket::{self as net, Kind};
use crate::net::{SocketAddr, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use crate::os::unix::net::SocketAddr as UnixAddress;
use crate::process::{ChildStderr, ChildStdin, ChildStdout};
use crate::readiness::source::Source;
use crate::sys;
use crate::sys::Direction;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
use crate::sys::recv_uninit;
use crate::waiting::attempt::Attempt;
use crate::waiting::descriptor::Descriptor;
use crate::waiting::registration::Registered;

/// A type of this crate that an [`Async`](super::Async) polls.
///
/// It is a [`Reader`], a [`Writer`], a [`Listener`] or a [`Datagram`] socket.
pub trait Endpoint: Sealed {}

/// An [`Endpoint`] that bytes are read from.
///
/// These are [`TcpStream`], [`UnixStream`], [`PipeReader`], [`ChildStdout`], [`ChildStderr`] and
/// [`DuplexStream`].
pub trait Reader: Endpoint + Sealed<Inner: Reads> {}

/// An [`Endpoint`] that bytes are written to.
///
/// These are [`TcpStream`], [`UnixStream`], [`PipeWriter`], [`ChildStdin`] and [`DuplexStream`].
pub trait Writer: Endpoint + Sealed<Inner: Writes> {}

/// An [`Endpoint`] that accepts connections: [`TcpListener`] and [`UnixListener`].
pub trait Listener:
    Endpoint + Accepts<Accepted = (<Self as Listener>::Stream, <Self as Listener>::Address)>
{
    /// One connection.
    type Stream: Endpoint;
    /// Where it comes from.
    type Address;
}

/// An [`Endpoint`] for messages: [`UdpSocket`] and [`UnixDatagram`].
pub trait Datagram: Endpoint + Sealed<Inner = net::Socket<<Self as Datagram>::Family>> {
    /// The address of a sender or a receiver.
    type Address;
    #[doc(hidden)]
    type Family: Family<Address = <Self as Datagram>::Address>;
}

/// Keeps the traits ours.
pub(super) trait Sealed {
    /// What has the calls.
    type Inner: Polls;

    fn inner(&self) -> &Self::Inner;
}

/// Tells how a waiter hears of a direction.
pub(super) struct EventSource<'a> {
    pub(super) source: &'a Arc<Source>,
    /// What a reactor has to know of it. None: it needs none, as it is rung by hand.
    pub(super) registered: Option<(&'a Registered, BorrowedFd<'a>)>,
    /// Not all is told: see `recheck.rs`.
    pub(super) rechecks: bool,
}

impl<'a> EventSource<'a> {
    pub(super) fn of<T: AsFd>(io: &'a Descriptor<T>, direction: Direction) -> EventSource<'a> {
        EventSource {
            source: io.source(),
            registered: Some((io.registered(), io.fd())),
            rechecks: io.rechecks(direction),
        }
    }
}

/// Can be waited for.
pub(super) trait Polls {
    fn events(&self, direction: Direction) -> EventSource<'_>;
}

/// Can be read from.
///
/// # Safety
///
/// A read of so many bytes has initialized the first so many of the buffer, and has made nothing
/// uninitialized.
pub(super) unsafe trait Reads: Polls {
    fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<usize>>;

    /// Reads into a buffer, which it initializes first.
    #[cfg(any(feature = "hyper", feature = "tokio-io"))]
    fn try_read(&self, buf: &mut [MaybeUninit<u8>]) -> io::Result<Attempt<usize>> {
        let len = buf.len().min(INITIALIZED_MAX);
        let buf = &mut buf[..len];
        buf.fill(MaybeUninit::new(0));
        // SAFETY: it was just initialized.
        let buf = unsafe { buf.assume_init_mut() };
        self.try_read_vectored(&mut [IoSliceMut::new(buf)])
    }
}

/// The most bytes that one read initializes: what a pipe holds.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
const INITIALIZED_MAX: usize = 64 << 10;

/// Can be written to.
pub(super) trait Writes: Polls {
    fn try_write(&self, buf: &[u8]) -> io::Result<Attempt<usize>>;

    fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<usize>> {
        self.try_write(bufs.iter().find(|buf| !buf.is_empty()).map_or(&[], |buf| &**buf))
    }

    /// Ends this direction, if it can end before the socket is dropped.
    fn end(&self) -> io::Result<()>;
}

/// Can be accepted from.
pub(super) trait Accepts {
    type Accepted;

    fn try_accept(&self) -> io::Result<Self::Accepted>;
}

impl<S: Kind> Polls for net::Socket<S> {
    fn events(&self, direction: Direction) -> EventSource<'_> {
        EventSource::of(self.io(), direction)
    }
}

// SAFETY: the system has filled as many as it says.
unsafe impl<S: Kind> Reads for net::Socket<S> {
    #[cfg(any(feature = "hyper", feature = "tokio-io"))]
    fn try_read(&self, buf: &mut [MaybeUninit<u8>]) -> io::Result<Attempt<usize>> {
        recv_uninit(self.fd(), buf).map(|n| self.io().have_read(n, buf.len()))
    }

    fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<usize>> {
        let len = sys::total(bufs);
        let received = match bufs {
            [buf] => sys::recv(self.fd(), buf, 0),
            _ => sys::recv_vectored(self.fd(), bufs),
        };
        received.map(|n| self.io().have_read(n, len))
    }
}

impl<S: Kind> Writes for net::Socket<S> {
    fn try_write(&self, buf: &[u8]) -> io::Result<Attempt<usize>> {
        sys::send(self.fd(), buf).map(|n| Attempt::written(n, buf.len()))
    }

    fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<usize>> {
        let len = sys::total(bufs);
        sys::send_vectored(self.fd(), bufs).map(|n| Attempt::written(n, len))
    }

    /// A connection that has ended already is no error.
    fn end(&self) -> io::Result<()> {
        match self.option().shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }
}

impl<S: AsFd> Polls for PipeEnd<S> {
    fn events(&self, direction: Direction) -> EventSource<'_> {
        EventSource::of(self.io(), direction)
    }
}

// SAFETY: the system has filled as many as it says.
unsafe impl<S: AsFd> Reads for PipeEnd<S> {
    fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<usize>> {
        PipeEnd::try_read_vectored(self, bufs)
    }
}

impl<S: AsFd> Writes for PipeEnd<S> {
    fn try_write(&self, buf: &[u8]) -> io::Result<Attempt<usize>> {
        self.try_write_vectored(&[IoSlice::new(buf)])
    }

    fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<usize>> {
        PipeEnd::try_write_vectored(self, bufs)
    }

    /// It is the end of the descriptor that a reader hears of.
    fn end(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Polls for DuplexStream {
    fn events(&self, direction: Direction) -> EventSource<'_> {
        EventSource { source: self.source(direction), registered: None, rechecks: false }
    }
}

// SAFETY: it counts what it has copied.
unsafe impl Reads for DuplexStream {
    fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<usize>> {
        let first = bufs.iter_mut().find(|buf| !buf.is_empty()).map_or(&mut [][..], |buf| &mut **buf);
        self.try_read(first).map(Attempt::Done)
    }
}

impl Writes for DuplexStream {
    fn try_write(&self, buf: &[u8]) -> io::Result<Attempt<usize>> {
        DuplexStream::try_write(self, buf).map(Attempt::Done)
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl<L: AsFd> Polls for Acceptor<L> {
    fn events(&self, direction: Direction) -> EventSource<'_> {
        EventSource::of(self.io(), direction)
    }
}

/// Names the inner value of each type, and the traits that it implements.
macro_rules! endpoints {
    ($($ours:ty: $inner:ty $(, $can:ident)*;)+) => {$(
        impl Endpoint for $ours {}
        $(impl $can for $ours {})*

        impl Sealed for $ours {
            type Inner = $inner;

            fn inner(&self) -> &$inner {
                &self.0
            }
        }
    )+};
}

endpoints! {
    TcpStream: net::Socket<std::net::TcpStream>, Reader, Writer;
    UnixStream: net::Socket<std::os::unix::net::UnixStream>, Reader, Writer;
    PipeReader: PipeEnd<io::PipeReader>, Reader;
    PipeWriter: PipeEnd<io::PipeWriter>, Writer;
    ChildStdin: PipeEnd<std::process::ChildStdin>, Writer;
    ChildStdout: PipeEnd<std::process::ChildStdout>, Reader;
    ChildStderr: PipeEnd<std::process::ChildStderr>, Reader;
    TcpListener: Acceptor<std::net::TcpListener>;
    UnixListener: Acceptor<std::os::unix::net::UnixListener>;
    UdpSocket: net::Socket<std::net::UdpSocket>;
    UnixDatagram: net::Socket<std::os::unix::net::UnixDatagram>;
}

impl Endpoint for DuplexStream {}
impl Reader for DuplexStream {}
impl Writer for DuplexStream {}

impl Sealed for DuplexStream {
    type Inner = DuplexStream;

    fn inner(&self) -> &DuplexStream {
        self
    }
}

/// The listeners.
macro_rules! listeners {
    ($($ours:ty: $stream:ty, $address:ty;)+) => {$(
        impl Listener for $ours {
            type Stream = $stream;
            type Address = $address;
        }

        impl Accepts for $ours {
            type Accepted = ($stream, $address);

            fn try_accept(&self) -> io::Result<($stream, $address)> {
                self.try_accept()
            }
        }
    )+};
}

listeners! {
    TcpListener: TcpStream, SocketAddr;
    UnixListener: UnixStream, UnixAddress;
}

impl Datagram for UdpSocket {
    type Address = SocketAddr;
    type Family = std::net::UdpSocket;
}

impl Datagram for UnixDatagram {
    type Address = UnixAddress;
    type Family = std::os::unix::net::UnixDatagram;
}
