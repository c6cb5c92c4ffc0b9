//! Sockets as arms of a `select!`.
//!
//! ```text
//!   the reactor's edge ──▶ waker ── set ──▶ the event of that direction ──▶ each select that waits for it
//! ```
//!
//! The reactor knows no queues and a select no descriptors, so an event stands between them. Nothing waits in between: the worker
//! that fetches the edge sets the event.
//!
//! Rejected: a helper task that waits and sets the event. It takes a stack and two more switches for each edge, and has
//! to be ended wherever its owner is dropped.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use fibra_io::DescriptorWatch;
use fibra_runtime::time::{Hold, try_hold};
use fibra_sync::ManualResetEvent;

/// Lets a `select!` wait for a socket, a listener, a pipe, or any other descriptor.
///
/// [`readable`](Readiness::readable) and [`writable`](Readiness::writable) return an event for a `wait` case. Call them in the
/// case itself: each call looks at the descriptor again. Until the event is set, further calls cost no system call.
///
/// The case does not read. Its body does, and may read as much or as little as it likes. As after any such wait, a read may find
/// nothing: another reader was faster, a datagram was damaged, or, where tasks of several workers share one, the event was set
/// late. A body that must not wait reads in non-blocking mode, and goes back to the select at `WouldBlock`.
///
/// It owns a duplicate of the descriptor, so the socket stays open until both are dropped.
///
/// [Virtual time](crate::time#virtual-time) is held while it exists.
///
/// The system does not report everything: no room in a Unix socket that was shut down while it was full, for one. A wait
/// for such a thing needs a `default(timeout)`.
///
/// Any number of tasks, threads and futures may share one. The calls need a task of a runtime with I/O. In a plain thread
/// they work as well while a runtime runs that has called them before.
///
/// # Examples
/// A connection that relays what a channel brings, and counts what its peer sends:
/// ```
/// use fibra::net::{TcpListener, TcpStream};
/// use fibra::{Readiness, select, sync::channel};
/// use std::io::{Read, Write};
///
/// fn serve(mut stream: TcpStream, news: channel::Receiver<&str>) -> std::io::Result<usize> {
///     let ready = Readiness::new(&stream)?;
///     let (mut buffer, mut total) = ([0; 1024], 0);
///     loop {
///         select! {
///             wait(ready.readable()?) => match stream.read(&mut buffer)? {
///                 0 => return Ok(total),
///                 n => total += n,
///             },
///             recv(news) -> item => match item {
///                 Ok(item) => stream.write_all(item.as_bytes())?,
///                 Err(_) => return Ok(total),
///             },
///         }
///     }
/// }
///
/// # fibra::run(|| -> std::io::Result<()> {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(listener.local_addr()?)?;
/// let (server, _) = listener.accept()?;
/// let (sender, news) = channel::unbounded();
/// let server = fibra::spawn(move || serve(server, news));
/// sender.send("news").unwrap();
/// let mut bytes = [0; 4];
/// client.read_exact(&mut bytes)?;
/// assert_eq!(&bytes, b"news");
/// client.write_all(b"thanks")?;
/// drop(client);
/// assert_eq!(server.join().unwrap()?, 6);
/// # Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Readiness {
    readable: Arc<Event>,
    writable: Arc<Event>,
    watch: DescriptorWatch,
    /// A select that waits for an event is not seen to wait for the system.
    _hold: Option<Hold>,
}

impl Readiness {
    /// Duplicates the descriptor, and registers it with the reactor of the caller's worker.
    ///
    /// # Errors
    /// Returns `InvalidInput` if it cannot be waited for, as plain files and directories, which are always ready; `Unsupported`
    /// outside the tasks of a runtime with I/O; the system's error if it refuses a descriptor or the registration.
    pub fn new(of: impl AsFd) -> io::Result<Readiness> {
        let watch = DescriptorWatch::new(of)?;
        Ok(Readiness { readable: Arc::default(), writable: Arc::default(), watch, _hold: try_hold() })
    }

    /// Returns an event that is set once a read finds something: data, a connection, the end, an error.
    ///
    /// It is set already if the look of this call finds the descriptor so, and unset otherwise. Does not wait, and is no
    /// cancellation point.
    ///
    /// An event that is kept instead stays set, also after everything was read. The next call resets it.
    ///
    /// # Errors
    /// Returns the system's error if it refuses the registration with the reactor of the caller's worker; `Unsupported` outside
    /// the tasks of a runtime with I/O, once no runtime runs that this was used in.
    ///
    /// # Examples
    /// ```
    /// use std::io::Write;
    /// use std::time::Duration;
    /// # fibra::run(|| -> std::io::Result<()> {
    /// let (receiver, mut sender) = fibra::io::pipe()?;
    /// let ready = fibra::Readiness::new(&receiver)?;
    /// assert!(!ready.readable()?.is_set());
    /// sender.write_all(b"bytes")?;
    /// fibra::select! {
    ///     wait(ready.readable()?) => println!("a read would not wait"),
    ///     default(Duration::from_secs(60)) => unreachable!(),
    /// }
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn readable(&self) -> io::Result<&ManualResetEvent> {
        self.readable.look(|context| self.watch.poll_readable(context))
    }

    /// Returns an event that is set once a write finds room, or an error.
    ///
    /// See [`readable`](Readiness::readable).
    ///
    /// # Errors
    /// Returns the errors of [`readable`](Readiness::readable).
    ///
    /// # Examples
    /// ```
    /// # fibra::run(|| -> std::io::Result<()> {
    /// let (_receiver, sender) = fibra::io::pipe()?;
    /// let ready = fibra::Readiness::new(&sender)?;
    /// assert!(ready.writable()?.is_set());
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn writable(&self) -> io::Result<&ManualResetEvent> {
        self.writable.look(|context| self.watch.poll_writable(context))
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Readiness");
        shown.field("readable", &self.readable.0).field("writable", &self.writable.0).finish_non_exhaustive()
    }
}

/// The event of one direction.
struct Event(ManualResetEvent);

impl Event {
    /// Brings the event up to date with the descriptor.
    fn look(
        self: &Arc<Self>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> io::Result<&ManualResetEvent> {
        // Before the look: what comes after it sets the event.
        self.0.reset();
        if let Poll::Ready(outcome) = poll(&mut Context::from_waker(&Waker::from(Arc::clone(self)))) {
            // After an error too: no waker is left, and the others that wait have to look for themselves.
            self.0.set();
            outcome?;
        }
        Ok(&self.0)
    }
}

impl Default for Event {
    fn default() -> Event {
        Event(ManualResetEvent::new(false))
    }
}

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.0.set();
    }
}
