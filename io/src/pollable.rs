//! `Pollable`: makes any descriptor awaitable.
//!
//! The reactor knows a private duplicate of the user's descriptor. An epoll registration belongs to a
//! number and its open file. `AsFd` promises neither that the number stays equal nor that it stays
//! open between two calls. With the user's number registered, a library that reopens its connection
//! could cause the deregistration of a socket of another owner. With a private number, safe code
//! cannot reach the registrations of other owners, and several owners may register one open file.
//!
//! Rejected: the user's number, checked before each use. It spares a descriptor. But it misses a file
//! reopened under an equal number, and two owners of one file exclude each other.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use fibra_runtime::time::deadline;
use fibra_runtime::wait;

use crate::reactor;
use crate::sys;
use crate::sys::Direction;
use crate::waiting::descriptor::Descriptor;

/// Makes any descriptor awaitable: of a C library, an `eventfd`, a device.
///
/// A waiting task sleeps and its worker goes on; a plain thread blocks. Any number of tasks and threads
/// may wait for one descriptor, in both directions. An edge wakes all waiters of that direction.
///
/// Make the descriptor non-blocking if calls on it must not block the thread: after a wait another
/// reader may come first. [`read_with`](Pollable::read_with) and
/// [`write_with`](Pollable::write_with) wait and try again then.
///
/// A wait is for the file that `T` had open when this was made, by a duplicate of its descriptor. So a
/// `Pollable` costs one more descriptor. The file stays open until the `Pollable` is dropped, even if
/// `T` closes it before. A library that opens another descriptor needs another `Pollable`; a wait
/// fails if the number of `T` has changed.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use fibra_io::Pollable;
///
/// let (mut theirs, ours) = UnixStream::pair()?;
/// ours.set_nonblocking(true)?;
/// let ours = Pollable::new(ours)?;
/// assert!(!ours.wait_readable_timeout(std::time::Duration::from_millis(1))?);
/// theirs.write_all(b"ready")?;
/// ours.wait_readable()?;
/// let mut buf = [0; 8];
/// assert_eq!(ours.read_with(|mut ours| ours.read(&mut buf))?, 5);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Writes, time limits, and the value itself:
///
/// ```
/// use std::io::Write;
/// use std::os::unix::net::UnixStream;
/// use std::time::{Duration, Instant};
/// use fibra_io::Pollable;
///
/// let (theirs, ours) = UnixStream::pair()?;
/// ours.set_nonblocking(true)?;
/// let mut ours = Pollable::new(ours)?;
/// let limit = Duration::from_millis(1);
/// assert!(!ours.wait_readable_deadline(Instant::now() + limit)?);
/// ours.wait_writable()?;
/// assert!(ours.wait_writable_timeout(limit)? && ours.wait_writable_deadline(Instant::now())?);
/// assert_eq!(ours.write_with(|mut ours| ours.write(b"bytes"))?, 5);
///
/// assert!(ours.inner().peer_addr()?.is_unnamed());
/// ours.inner_mut().flush()?;
/// drop(theirs);
/// assert!(ours.into_inner().write(b"more").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pollable<T> {
    /// Before `inner`, so that it is deregistered and closed first.
    io: Descriptor<OwnedFd>,
    /// The number that `inner` had.
    number: RawFd,
    inner: T,
}

impl<T: AsFd> Pollable<T> {
    /// Takes something that has an open descriptor, to wait for.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is nothing that can be waited for, as plain files and directories,
    /// which are always ready; and when the process has no descriptor left.
    pub fn new(inner: T) -> io::Result<Pollable<T>> {
        let number = inner.as_fd().as_raw_fd();
        let own = inner.as_fd().try_clone_to_owned()?;
        reactor::check(own.as_raw_fd()).map_err(explain)?;
        Ok(Pollable { io: Descriptor::new(own, false), number, inner })
    }

    /// Waits until a read finds something: data, the end, an error.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point; a call that need not wait is none.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if `T` has another descriptor by now than when it was made awaitable;
    /// `TimedOut` where it would have to wait in a task that unwinds from a cancellation, or in
    /// destructors that end a cancelled task; and when there is no memory for a wait.
    pub fn wait_readable(&self) -> io::Result<()> {
        self.wait(Direction::Read, None).map(drop)
    }

    /// Waits at most `timeout` until it is readable; returns true if it is.
    ///
    /// # Errors
    ///
    /// As [`wait_readable`](Pollable::wait_readable).
    pub fn wait_readable_timeout(&self, timeout: Duration) -> io::Result<bool> {
        self.wait(Direction::Read, deadline(timeout))
    }

    /// Waits at most until `deadline` until it is readable; returns true if it is.
    ///
    /// # Errors
    ///
    /// As [`wait_readable`](Pollable::wait_readable).
    pub fn wait_readable_deadline(&self, deadline: Instant) -> io::Result<bool> {
        self.wait(Direction::Read, Some(deadline))
    }

    /// Waits until a write finds room, or an error.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point; a call that need not wait is none.
    ///
    /// # Errors
    ///
    /// As [`wait_readable`](Pollable::wait_readable).
    pub fn wait_writable(&self) -> io::Result<()> {
        self.wait(Direction::Write, None).map(drop)
    }

    /// Waits at most `timeout` until it is writable; returns true if it is.
    ///
    /// # Errors
    ///
    /// As [`wait_readable`](Pollable::wait_readable).
    pub fn wait_writable_timeout(&self, timeout: Duration) -> io::Result<bool> {
        self.wait(Direction::Write, deadline(timeout))
    }

    /// Waits at most until `deadline` until it is writable; returns true if it is.
    ///
    /// # Errors
    ///
    /// As [`wait_readable`](Pollable::wait_readable).
    pub fn wait_writable_deadline(&self, deadline: Instant) -> io::Result<bool> {
        self.wait(Direction::Write, Some(deadline))
    }

    /// Runs `read`, and again when the descriptor is readable after a `WouldBlock`.
    ///
    /// An interrupted call is made again.
    ///
    /// `read` must not block, so the descriptor has to be non-blocking. A call that fails with
    /// `WouldBlock` while the descriptor is readable is run again and again; other tasks go on
    /// meanwhile.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point, and so is each attempt but the first.
    ///
    /// # Errors
    ///
    /// Those of `read` other than `WouldBlock` and `Interrupted`, and those of
    /// [`wait_readable`](Pollable::wait_readable).
    pub fn read_with<R>(&self, read: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.run(Direction::Read, read)
    }

    /// Runs `write`, and again when the descriptor is writable after a `WouldBlock`.
    ///
    /// An interrupted call is made again.
    ///
    /// # Errors
    ///
    /// As [`read_with`](Pollable::read_with).
    pub fn write_with<R>(&self, write: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.run(Direction::Write, write)
    }

    fn run<R>(&self, direction: Direction, mut call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        loop {
            match call(&self.inner) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(direction, None)?;
                    wait::checkpoint();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => {
                    wait::charge();
                    return outcome;
                }
            }
        }
    }

    /// True once that direction is ready, false once the deadline is reached.
    ///
    /// What it waits for is asked of the kernel: what users do with the descriptor, and how far
    /// they get, is not known here.
    fn wait(&self, direction: Direction, deadline: Option<Instant>) -> io::Result<bool> {
        if self.inner.as_fd().as_raw_fd() != self.number {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this has another descriptor than the one that was made awaitable",
            ));
        }
        let ready = self.io.run_until(direction, deadline, || sys::look(self.io.fd(), direction))?;
        Ok(ready.is_some())
    }
}

impl<T> Pollable<T> {
    /// What was made awaitable.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Returns the value for changes.
    ///
    /// Waits stay with the descriptor that it had when it was made awaitable.
    pub fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Ends the waiting and gives back what was made awaitable.
    pub fn into_inner(self) -> T {
        let Pollable { io, inner, .. } = self;
        drop(io);
        inner
    }
}

impl<T: AsFd> AsFd for Pollable<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<T: AsRawFd> AsRawFd for Pollable<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for Pollable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pollable").field(&self.inner).finish()
    }
}

/// Says what the kernel means by that number.
pub(crate) fn explain(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EPERM) => io::Error::new(
            io::ErrorKind::InvalidInput,
            "this descriptor cannot be waited for: it is a plain file, a directory, or something else that is always ready",
        ),
        _ => error,
    }
}
