//! `Async`: a socket or a pipe of this crate that futures poll.
//!
//! ```text
//!   Async ── polled, site ──▶ Site {what is waited for}: one method for each operation, a system call that does not wait
//!                        │
//!                        ▼
//!                      Watch: tries it, and keeps the waker where the reactor, or a notification, finds it
//! ```
//!
//! Polls keep their waiter in the `Async`; the `async` functions keep it in their future.

mod detour;
mod endpoints;
#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "hyper")]
mod hyper_io;
mod listen;
mod messages;
mod recheck;
#[cfg(feature = "tokio-io")]
mod tokio_io;
mod watch;

use std::fmt;
use std::io;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::task::{Context, Poll};

use fibra_runtime::driver;

pub use self::endpoints::{Datagram, Endpoint, Listener, Reader, Writer};

use self::detour::Detour;
use self::endpoints::{Reads, Writes};
use self::watch::Watch;
use crate::reactor::Handle;
use crate::sys::Direction;

/// A socket or a pipe of this crate for crates that are written for `async`.
///
/// | endpoint | methods and traits |
/// | --- | --- |
/// | a [reader](Reader): streams, the reading ends of pipes | `AsyncRead` of tokio and of futures-rs, `Read` of hyper, each with the feature of that name |
/// | a [writer](Writer): streams, the writing ends of pipes | `AsyncWrite` of tokio and of futures-rs, `Write` of hyper, each with the feature of that name |
/// | a [listener](Listener) | [`accept`](Async::accept), and a poll of it |
/// | a [datagram socket](Datagram) | [`recv`](Async::recv), [`recv_from`](Async::recv_from), [`send`](Async::send), [`send_to`](Async::send_to), and polls of them |
///
/// A poll that would have to wait returns `Pending` and keeps the waker. There is one waker for each
/// direction, so one task may read while another one writes. The reactor calls the waker; no task
/// sleeps in between. Only the first wait in a direction allocates. The `async` functions borrow the
/// `Async` and keep a waker for each call, so any number of calls may go on at once.
///
/// # Where it may be polled
/// Anywhere: in tasks of any worker, on plain threads, by executors of other crates. But a reactor
/// must know the socket. In a task it is the reactor of the task's worker. Elsewhere it is the
/// reactor where the socket has waited before. A new socket there takes the reactor of the worker on
/// which the `Async` was made, or of the listener that accepted it. That worker wakes the future only
/// between its tasks, so a task that computes delays the wake. Without a live reactor, polls that
/// would have to wait fail with [`Unsupported`](io::ErrorKind::Unsupported). A
/// [`DuplexStream`](crate::io::DuplexStream) needs no reactor.
///
/// The system does not report that a full `UnixStream` or `UnixDatagram` was shut down. So a poll
/// that has to wait to write there is woken four times a second, to look again.
///
/// # Cancellation
/// Dropping a future loses nothing: data that has come stays for the next call. A poll is no
/// cancellation point; the [`block_on`](fibra_runtime::block_on) around it is.
///
/// # Differences from the socket
/// Timeouts and `set_nonblocking` mean nothing here. The writing end of a pipe ends when the `Async`
/// is dropped, not when it is shut down or closed. A plain file in a pipe's type is read and written
/// as by ordinary code: the task or the thread waits for the disk inside the poll.
///
/// # Fairness
/// A poll whose task has used up its budget wakes itself and returns `Pending`. Other tasks run
/// before `block_on` polls again.
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
    waits: Waits,
    /// The reactor of the worker that this was made on.
    origin: Option<Arc<Handle>>,
    socket: S,
}

impl<S: Endpoint> Async<S> {
    /// Takes a socket or one end of a pipe.
    pub fn new(socket: S) -> Async<S> {
        Async::of_origin(socket, || None)
    }

    /// Makes an adapter that registers with `origin` where no other reactor knows the socket.
    fn of_origin(socket: S, origin: impl FnOnce() -> Option<Arc<Handle>>) -> Async<S> {
        let origin = driver::current::<Handle>().or_else(origin);
        Async { waits: Waits::new(), origin, socket }
    }

    /// Returns the socket, for its options, and for other uses.
    pub fn get_ref(&self) -> &S {
        &self.socket
    }

    /// Returns the socket.
    pub fn into_inner(self) -> S {
        self.socket
    }

    /// Returns the site of a future, which has waiters of its own.
    fn site<'a>(&'a self, waits: &'a mut Waits) -> Site<'a, S> {
        Site { socket: &self.socket, origin: self.origin.as_ref(), waits }
    }

    /// Returns the site of a poll.
    fn polled(&mut self) -> Site<'_, S> {
        Site { socket: &self.socket, origin: self.origin.as_ref(), waits: &mut self.waits }
    }
}

impl<S: Endpoint> From<S> for Async<S> {
    fn from(socket: S) -> Async<S> {
        Async::new(socket)
    }
}

impl<S: fmt::Debug> fmt::Debug for Async<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Async").field(&self.socket).finish()
    }
}

/// Waiters of one `Async`, kept from one poll to the next.
struct Waits {
    reads: Watch,
    writes: Watch,
    /// Of a writer, for the queue of a receiver.
    detour: Option<Box<Detour>>,
}

impl Waits {
    fn new() -> Waits {
        Waits { reads: Watch::new(Direction::Read), writes: Watch::new(Direction::Write), detour: None }
    }
}

/// What is waited for, with the waiters. The operations are its methods; each is what the poll and
/// the `async` function of its name have in common.
struct Site<'a, S> {
    socket: &'a S,
    origin: Option<&'a Arc<Handle>>,
    waits: &'a mut Waits,
}

impl<S: Reader> Site<'_, S> {
    /// Fills the begin of `buf`, as far as the count tells; makes nothing uninitialized.
    #[cfg(any(feature = "hyper", feature = "tokio-io"))]
    fn read(&mut self, context: &mut Context<'_>, buf: &mut [MaybeUninit<u8>]) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        self.waits.reads.run(inner, self.origin, context, || inner.try_read(buf))
    }

    #[cfg(feature = "futures-io")]
    fn read_vectored(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [io::IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        self.waits.reads.run(inner, self.origin, context, || inner.try_read_vectored(bufs))
    }
}

impl<S: Writer> Site<'_, S> {
    fn write(&mut self, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        self.waits.writes.run(inner, self.origin, context, || inner.try_write(buf))
    }

    fn write_vectored(
        &mut self,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        self.waits.writes.run(inner, self.origin, context, || inner.try_write_vectored(bufs))
    }

    /// Ends the direction.
    fn end(&self) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.inner().end())
    }
}

/// One world's trait of writing. They differ in what the end is called, and in whether one asks for
/// vectored writes.
macro_rules! polled_writes {
    ($writes:ident, ending by $end:ident $(, $is_vectored:ident)?) => {
        impl<S: Writer + Unpin> $writes for Async<S> {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.polled().write(context, buf)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.polled().write_vectored(context, bufs)
            }

            $(fn $is_vectored(&self) -> bool {
                true
            })?

            fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn $end(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.polled().end()
            }
        }
    };
}

use polled_writes;
