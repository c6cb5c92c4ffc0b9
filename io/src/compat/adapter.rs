//! Our sockets, polled.

#![expect(
    private_interfaces,
    private_bounds,
    reason = "nobody else can name the trait that has the private types in it"
)]

use std::fmt;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use fibra_runtime::driver;

use super::watch::Watch;
use crate::descriptor::Descriptor;
use crate::net::socket::{self as net, Kind};
use crate::net::{TcpStream, UnixStream};
use crate::op::Attempt;
use crate::reactor::Handle;
use crate::readiness::{Direction, Edge};
use crate::sys;

/// Is a socket that [`Async`] can poll: [`TcpStream`] or [`UnixStream`].
pub trait Socket: Sealed {}

/// Keeps the trait ours.
pub trait Sealed {
    /// What std has for the same.
    type Inner: Kind;

    #[doc(hidden)]
    fn inner(&self) -> &net::Socket<Self::Inner>;
}

macro_rules! sockets {
    ($($ours:ty: $std:ty,)+) => {$(
        impl Socket for $ours {}

        impl Sealed for $ours {
            type Inner = $std;

            fn inner(&self) -> &net::Socket<Self::Inner> {
                &self.0
            }
        }
    )+};
}

sockets! {
    TcpStream: std::net::TcpStream,
    UnixStream: std::os::unix::net::UnixStream,
}

/// A socket of ours with the traits of crates that are written for `async`: `AsyncRead` and `AsyncWrite` of tokio and of
/// futures-rs, `Read` and `Write` of hyper, each with the feature of that name.
///
/// A poll that would have to wait returns `Pending` and keeps the waker, one for each direction, so that one task may read
/// while another one writes. The reactor calls it; nobody sleeps in between, and nothing is allocated but at the first wait in
/// a direction.
///
/// # Where it may be polled
/// Anywhere: in tasks of any worker, on plain threads, by executors of other crates. Some reactor has to hear of the socket,
/// though. In a task it is that of the task's worker; elsewhere it is the one where the socket has waited before, or that of
/// the worker on which the `Async` was made. If there is none, or its runtime has ended, polls that would have to wait fail
/// with [`Unsupported`](io::ErrorKind::Unsupported).
///
/// The system tells no poller that a full `UnixStream` was shut down. So a poll that has to wait to write into one is woken four
/// times a second, to look again.
///
/// # Differences from the socket
/// Timeouts and `set_nonblocking` mean nothing here. A poll is no cancellation point; the
/// [`block_on`](fibra_runtime::block_on) around it is.
///
/// # Fairness
/// A poll that has something to do while its task has used up its turn wakes itself and returns `Pending`, which lets others
/// run before `block_on` polls again.
///
/// # Examples
/// ```
/// # #[cfg(feature = "futures-io")] {
/// use std::future::poll_fn;
/// use std::io::Write;
/// use std::pin::Pin;
/// use fibra_io::compat::Async;
/// use fibra_io::net::{TcpListener, TcpStream};
/// use futures_io::AsyncRead;
///
/// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
/// # runtime.run(|| -> std::io::Result<()> {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(listener.local_addr()?)?;
/// let mut server = Async::new(listener.accept()?.0);
/// fibra_runtime::spawn(move || client.write_all(b"hello"));
/// let mut buf = [0; 5];
/// let count = fibra_runtime::block_on(poll_fn(|cx| Pin::new(&mut server).poll_read(cx, &mut buf)))?;
/// assert_eq!(&buf[..count], b"hello");
/// # Ok(())
/// # })?;
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Async<S> {
    /// Before the socket: they leave its lists before it closes.
    reads: Watch,
    writes: Watch,
    /// Of the worker that this was made on.
    origin: Option<Arc<Handle>>,
    socket: S,
}

impl<S: Socket> Async<S> {
    /// Takes a socket.
    pub fn new(socket: S) -> Async<S> {
        let (reads, writes) = (Watch::new(Direction::Read), Watch::new(Direction::Write));
        Async { reads, writes, origin: driver::current::<Handle>(), socket }
    }

    /// The socket, for its options, and for whoever reads or writes beside.
    pub fn get_ref(&self) -> &S {
        &self.socket
    }

    /// Gives the socket back.
    pub fn into_inner(self) -> S {
        self.socket
    }

    #[cfg(feature = "futures-io")]
    pub(super) fn poll_recv(&mut self, buf: &mut [u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let len = buf.len();
        let mut call =
            |fd: BorrowedFd<'_>| sys::recv(fd, buf, 0).map(|n| net::Socket::<S::Inner>::have_read(n, len));
        poll(&self.socket, &mut self.reads, self.origin.as_ref(), context, &mut call)
    }

    #[cfg(feature = "futures-io")]
    pub(super) fn poll_recv_vectored(
        &mut self,
        bufs: &mut [io::IoSliceMut<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let len = sys::total(bufs.iter().map(|buf| buf.len()));
        let mut call = |fd: BorrowedFd<'_>| {
            sys::recv_vectored(fd, bufs).map(|n| net::Socket::<S::Inner>::have_read(n, len))
        };
        poll(&self.socket, &mut self.reads, self.origin.as_ref(), context, &mut call)
    }

    /// Fills the begin of `buf`, as far as the count tells.
    #[cfg(any(feature = "hyper", feature = "tokio-io"))]
    pub(super) fn poll_recv_uninit(
        &mut self,
        buf: &mut [std::mem::MaybeUninit<u8>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let len = buf.len();
        let mut call = |fd: BorrowedFd<'_>| {
            sys::recv_uninit(fd, buf).map(|n| net::Socket::<S::Inner>::have_read(n, len))
        };
        poll(&self.socket, &mut self.reads, self.origin.as_ref(), context, &mut call)
    }

    pub(super) fn poll_send(&mut self, buf: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut call = |fd: BorrowedFd<'_>| sys::send(fd, buf).map(|n| Attempt::written(n, buf.len()));
        poll(&self.socket, &mut self.writes, self.origin.as_ref(), context, &mut call)
    }

    pub(super) fn poll_send_vectored(
        &mut self,
        bufs: &[IoSlice<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let len = sys::total(bufs.iter().map(|buf| buf.len()));
        let mut call = |fd: BorrowedFd<'_>| sys::send_vectored(fd, bufs).map(|n| Attempt::written(n, len));
        poll(&self.socket, &mut self.writes, self.origin.as_ref(), context, &mut call)
    }

    /// Ends our direction; a connection that has ended already is no error.
    pub(super) fn shut_down(&self) -> io::Result<()> {
        match self.socket.inner().option().shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }
}

/// Tries `call`, and leaves the waker where the reactor finds it if it would have to wait.
fn poll<S: Socket>(
    socket: &S,
    watch: &mut Watch,
    origin: Option<&Arc<Handle>>,
    context: &mut Context<'_>,
    call: &mut impl FnMut(BorrowedFd<'_>) -> io::Result<Attempt<usize>>,
) -> Poll<io::Result<usize>> {
    if watch.gives_way() {
        context.waker().wake_by_ref();
        return Poll::Pending;
    }
    let io = socket.inner().io();
    loop {
        if let Some(outcome) = io.attempt(watch.direction(), &mut || call(io.fd())) {
            return Poll::Ready(outcome);
        }
        if let Err(error) = attach(io, origin) {
            // Nobody will tell when there is something: the next poll has to look for itself.
            io.source().readiness().edge(Edge::new().ready(watch.direction(), true));
            return Poll::Ready(Err(error));
        }
        if watch.poll(io.source(), context).is_pending() {
            if io.rechecks(watch.direction()) {
                io.source().watch();
            }
            return Poll::Pending;
        }
    }
}

/// Sees to it that a reactor hears of the descriptor.
fn attach<T: AsFd>(io: &Descriptor<T>, origin: Option<&Arc<Handle>>) -> io::Result<()> {
    if driver::with_current(|here: &Handle| io.source().is_at_home(here)) == Some(true) {
        return Ok(());
    }
    let fd = io.fd().as_raw_fd();
    match driver::current::<Handle>() {
        Some(here) => io.source().attach(fd, &here),
        None => io.source().attach_from_afar(fd, origin),
    }
}

impl<S: Socket> From<S> for Async<S> {
    fn from(socket: S) -> Async<S> {
        Async::new(socket)
    }
}

impl<S: fmt::Debug> fmt::Debug for Async<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Async").field(&self.socket).finish()
    }
}

/// One world's trait of writing. They differ in what the end is called, and in whether one asks for vectored writes.
macro_rules! polled_writes {
    ($writes:ident, ending by $end:ident $(, $is_vectored:ident)?) => {
        impl<S: Socket + Unpin> $writes for Async<S> {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.poll_send(buf, context)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.poll_send_vectored(bufs, context)
            }

            $(fn $is_vectored(&self) -> bool {
                true
            })?

            fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn $end(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.shut_down())
            }
        }
    };
}

pub(super) use polled_writes;
