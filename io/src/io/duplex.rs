//! `duplex`: a connection in memory, of two ends.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fibra_runtime::time;
use fibra_runtime::wait;

#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
use crate::readiness::source::Source;
use crate::sys::Direction;
use crate::waiting::convert::{reads_through, writes_by_reference};
use crate::waiting::manual::ManualSource;
use crate::waiting::timeouts::{Timeout, Timeouts, deadline_methods, refuse_zero};

/// Makes two connected streams: each reads what its peer writes.
///
/// Each direction keeps up to `capacity` bytes. A writer that finds no room waits.
///
/// # Panics
///
/// If the capacity is zero: nothing would ever get through.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
///
/// let (mut here, mut there) = fibra_io::io::duplex(1024);
/// here.write_all(b"hello")?;
/// drop(here);
/// let mut text = String::new();
/// there.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn duplex(capacity: usize) -> (DuplexStream, DuplexStream) {
    assert!(capacity > 0, "a duplex stream of capacity 0 would never let a byte through");
    let (one, other) = (Arc::new(Pipe::new(capacity)), Arc::new(Pipe::new(capacity)));
    let here = DuplexStream::new(Arc::clone(&one), Arc::clone(&other));
    (here, DuplexStream::new(other, one))
}

/// One end of a connection in memory; made by [`duplex`](fn@duplex).
///
/// It behaves as a socket does.
///
/// Dropping it closes it: the peer reads the bytes written before, then the end of the stream, and its
/// writes fail with `BrokenPipe`. Any number of tasks and plain threads may read and write one end
/// through `&DuplexStream`.
///
/// # Fairness
///
/// As of a [`TcpStream`](crate::net::TcpStream): all waiters wake, and compete.
///
/// # Cancellation
///
/// Every wait is a cancellation point. In a cancelled task that unwinds, or runs its last destructors,
/// an operation that would have to wait fails with `TimedOut`.
///
/// # Examples
///
/// ```
/// use std::io::{ErrorKind, Read, Write};
/// use std::net::Shutdown;
/// use std::time::{Duration, Instant};
///
/// let (mut here, mut there) = fibra_io::io::duplex(4);
/// let limit = Some(Duration::from_millis(1));
/// here.set_read_timeout(limit)?;
/// here.set_write_timeout(limit)?;
/// assert_eq!((here.read_timeout()?, here.write_timeout()?), (limit, limit));
/// assert_eq!(here.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// let now = Some(Instant::now());
/// here.set_read_deadline(now);
/// here.set_write_deadline(now);
/// assert_eq!((here.read_deadline(), here.write_deadline()), (now, now));
/// here.write_all(b"full")?;
/// assert_eq!(here.write(b"!").unwrap_err().kind(), ErrorKind::WouldBlock);
/// here.shutdown(Shutdown::Write)?;
/// let mut text = String::new();
/// there.read_to_string(&mut text)?;
/// assert_eq!(text, "full");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct DuplexStream {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    timeouts: Timeouts,
}

impl DuplexStream {
    fn new(incoming: Arc<Pipe>, outgoing: Arc<Pipe>) -> DuplexStream {
        DuplexStream { incoming, outgoing, timeouts: Timeouts::default() }
    }

    /// Ends one direction of the connection or both.
    ///
    /// Its waiters, at either end, wake: a reader reads the end of the stream, a writer gets an
    /// error. After `Shutdown::Read`, what was not read yet is gone.
    ///
    /// # Errors
    ///
    /// None; the type is that of a socket.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Write {
            self.incoming.end(true);
        }
        if how != Shutdown::Read {
            self.outgoing.end(false);
        }
        Ok(())
    }

    /// Sets how long a read waits for data; `None`, the default, is for ever.
    ///
    /// A read that has waited that long fails with `WouldBlock`, as that of a socket.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the timeout is zero.
    pub fn set_read_timeout(&self, dur: Option<Duration>) -> io::Result<()> {
        self.timeouts.of(Direction::Read).set(refuse_zero(dur)?);
        Ok(())
    }

    /// Sets how long a write waits for room; `None`, the default, is for ever.
    ///
    /// A write that has waited that long fails with `WouldBlock`, as that of a socket.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the timeout is zero.
    pub fn set_write_timeout(&self, dur: Option<Duration>) -> io::Result<()> {
        self.timeouts.of(Direction::Write).set(refuse_zero(dur)?);
        Ok(())
    }

    /// Returns the read timeout.
    ///
    /// # Errors
    ///
    /// None; the type is that of a socket.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.timeouts.of(Direction::Read).get())
    }

    /// Returns the write timeout.
    ///
    /// # Errors
    ///
    /// None; the type is that of a socket.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.timeouts.of(Direction::Write).get())
    }
}

deadline_methods!(read DuplexStream: stream => stream.timeouts.of(Direction::Read));
deadline_methods!(write DuplexStream: stream => stream.timeouts.of(Direction::Write));

impl Drop for DuplexStream {
    fn drop(&mut self) {
        self.incoming.end(true);
        self.outgoing.end(false);
    }
}

/// Calls that do not wait.
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
impl DuplexStream {
    /// Fills the begin of `buf`, as far as the count tells.
    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let taken = self.incoming.lock().take(buf);
        self.incoming.have_moved(Direction::Read, taken.unwrap_or_else(|| Err(ErrorKind::WouldBlock.into())))
    }

    pub(crate) fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        let put = self.outgoing.lock().put(buf, self.outgoing.capacity);
        self.outgoing.have_moved(Direction::Write, put.unwrap_or_else(|| Err(ErrorKind::WouldBlock.into())))
    }

    /// Where readers and writers wait.
    pub(crate) fn source(&self, direction: Direction) -> &Arc<Source> {
        match direction {
            Direction::Read => self.incoming.changes.source(),
            Direction::Write => self.outgoing.changes.source(),
        }
    }
}

impl Read for &DuplexStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.incoming.run(Direction::Read, self.timeouts.of(Direction::Read), |state| state.take(buf))
    }
}

impl Write for &DuplexStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let capacity = self.outgoing.capacity;
        self.outgoing
            .run(Direction::Write, self.timeouts.of(Direction::Write), |state| state.put(buf, capacity))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

reads_through!(DuplexStream: stream => &*stream);
writes_by_reference!(DuplexStream);

impl fmt::Debug for DuplexStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DuplexStream").field("capacity", &self.incoming.capacity).finish_non_exhaustive()
    }
}

/// One direction.
struct Pipe {
    capacity: usize,
    state: Mutex<State>,
    /// Readers wait for bytes, writers for room, and both for an end.
    changes: ManualSource,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    /// The writing end is closed: no more bytes.
    no_more: bool,
    /// True once the reading end is closed.
    unread: bool,
}

impl State {
    /// Takes out what there is and `buf` has room for. None: wait.
    fn take(&mut self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        if self.unread || (self.bytes.is_empty() && self.no_more) || buf.is_empty() {
            return Some(Ok(0));
        }
        // The ring may lie in two pieces; each read takes from the first.
        let first = self.bytes.read(buf).ok()?;
        let n = first + self.bytes.read(&mut buf[first..]).ok()?;
        (n > 0).then_some(Ok(n))
    }

    /// Puts in what there is room for. None: wait.
    fn put(&mut self, buf: &[u8], capacity: usize) -> Option<io::Result<usize>> {
        if self.unread || self.no_more {
            return Some(Err(ErrorKind::BrokenPipe.into()));
        }
        let n = buf.len().min(capacity - self.bytes.len());
        self.bytes.extend(&buf[..n]);
        (n > 0 || buf.is_empty()).then_some(Ok(n))
    }
}

impl Pipe {
    fn new(capacity: usize) -> Pipe {
        Pipe { capacity, state: Mutex::default(), changes: ManualSource::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries `step` until it gets on, and waits in between.
    fn run(
        &self,
        direction: Direction,
        timeout: &Timeout,
        mut step: impl FnMut(&mut State) -> Option<io::Result<usize>>,
    ) -> io::Result<usize> {
        let first = step(&mut self.lock());
        if let Some(outcome) = first {
            let outcome = self.have_moved(direction, outcome);
            // Last: the turn may end here, and the other end would hear of it only after the next.
            wait::charge();
            return outcome;
        }
        let deadline = timeout.left().and_then(time::deadline);
        let outcome = self.changes.wait_or_fail(direction, deadline, || step(&mut self.lock()))?;
        self.have_moved(direction, outcome.unwrap_or_else(|| Err(ErrorKind::WouldBlock.into())))
    }

    /// Tells the other end, if a read has made room, or a write has brought bytes.
    fn have_moved(&self, direction: Direction, outcome: io::Result<usize>) -> io::Result<usize> {
        if matches!(outcome, Ok(1..)) {
            self.changes.notify(match direction {
                Direction::Read => Direction::Write,
                Direction::Write => Direction::Read,
            });
        }
        outcome
    }

    /// Ends the direction, by its reader or by its writer.
    fn end(&self, by_reader: bool) {
        let unread = {
            let mut state = self.lock();
            match by_reader {
                true => state.unread = true,
                false => state.no_more = true,
            }
            // Freed without the lock.
            by_reader.then(|| std::mem::take(&mut state.bytes))
        };
        drop(unread);
        self.changes.notify(Direction::Read);
        self.changes.notify(Direction::Write);
    }
}
