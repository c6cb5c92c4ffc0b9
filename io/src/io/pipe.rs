//! Anonymous pipes: std's functions and methods, one by one.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::SockRef;

use crate::convert::{Wraps, reads, writes};
use crate::descriptor::Descriptor;
use crate::op::Attempt;
use crate::readiness::Direction;
use crate::sys::pipe::{self as call, Nowait};

/// Makes an anonymous pipe: [`std::io::pipe`], for tasks.
///
/// What is written into the one end is read from the other. Once all writers are dropped, here and in other processes, a read
/// gives the end; once all readers are, a write fails with `BrokenPipe`. Children inherit neither end, unless one is
/// given to them as their input or output.
///
/// # Errors
///
/// When the process has no descriptor left.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use fibra_io::io::pipe;
///
/// let (mut reader, mut writer) = pipe()?;
/// writer.write_all(b"hello")?;
/// drop(writer);
/// let mut text = String::new();
/// reader.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    Ok((PipeReader(PipeEnd::new(reader, false)), PipeWriter(PipeEnd::new(writer, false))))
}

/// Is the end of a pipe that is read from: [`std::io::PipeReader`], for tasks.
///
/// Reading puts the task to sleep, never the thread; in a plain thread it blocks it. Any number of tasks may read at once,
/// through `&PipeReader` or a clone; they compete.
///
/// # Differences from std
///
/// On systems that know no way to read from a pipe without waiting (Linux before 6.4), the descriptor is in non-blocking mode
/// once it has been used, until it leaves for std. A process that shares it then sees `WouldBlock`.
pub struct PipeReader(pub(crate) PipeEnd<io::PipeReader>);

/// Is the end of a pipe that is written to: [`std::io::PipeWriter`], for tasks.
///
/// Writing puts the task to sleep while the pipe is full, never the thread; in a plain thread it blocks it. What several
/// tasks write may interleave, but for pieces of at most `PIPE_BUF` bytes (4096 on Linux).
///
/// # Differences from std
///
/// As for [`PipeReader`].
pub struct PipeWriter(pub(crate) PipeEnd<io::PipeWriter>);

reads!(PipeReader);
writes!(PipeWriter);

impl PipeReader {
    /// Makes a second handle of the same end, with a descriptor of its own.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<PipeReader> {
        self.0.try_clone().map(PipeReader)
    }
}

impl PipeWriter {
    /// Makes a second handle of the same end, with a descriptor of its own.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<PipeWriter> {
        self.0.try_clone().map(PipeWriter)
    }
}

impl From<PipeReader> for Stdio {
    fn from(reader: PipeReader) -> Stdio {
        io::PipeReader::from(reader).into()
    }
}

impl From<PipeWriter> for Stdio {
    fn from(writer: PipeWriter) -> Stdio {
        io::PipeWriter::from(writer).into()
    }
}

/// Either end. A read that fills a part of its buffer proves nothing, since a pipe may keep packets; the system is always
/// asked.
pub(crate) struct PipeEnd<S: AsFd> {
    io: Descriptor<S>,
    /// True once a call was refused for its flag: from then on the mode is set before each, since clones share it.
    by_mode: AtomicBool,
}

impl<S: AsFd> PipeEnd<S> {
    fn new(inner: S, nonblocking: bool) -> PipeEnd<S> {
        PipeEnd { io: Descriptor::new(inner, nonblocking), by_mode: AtomicBool::new(false) }
    }

    fn try_clone(&self) -> io::Result<PipeEnd<S>>
    where
        S: From<OwnedFd>,
    {
        let clone = S::from(self.io.fd().try_clone_to_owned()?);
        let by_mode = AtomicBool::new(self.is_by_mode());
        Ok(PipeEnd { io: Descriptor::new(clone, self.io.is_nonblocking()), by_mode })
    }

    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(buf)])
    }

    pub(crate) fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut read = |fd: BorrowedFd<'_>, nowait| call::read_vectored(fd, bufs, nowait);
        self.io.run(Direction::Read, || None, || self.attempt(&mut read))
    }

    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    pub(crate) fn write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut write = |fd: BorrowedFd<'_>, nowait| call::write_vectored(fd, bufs, nowait);
        self.io.run(Direction::Write, || None, || self.attempt(&mut write))
    }

    /// One transfer that does not wait.
    fn attempt(
        &self,
        transfer: &mut impl FnMut(BorrowedFd<'_>, Nowait) -> io::Result<usize>,
    ) -> io::Result<Attempt<usize>> {
        if !self.is_by_mode() {
            match transfer(self.io.fd(), Nowait::BEST) {
                // Relaxed: see `is_by_mode`.
                Err(error) if call::is_flag_unknown(&error) => self.by_mode.store(true, Ordering::Relaxed),
                outcome => return outcome.map(Attempt::Done),
            }
        }
        SockRef::from(self.io.inner()).set_nonblocking(true)?;
        transfer(self.io.fd(), Nowait::Mode).map(Attempt::Done)
    }

    fn is_by_mode(&self) -> bool {
        // Relaxed: who misses that it was set finds out by itself.
        Nowait::BEST == Nowait::Mode || self.by_mode.load(Ordering::Relaxed)
    }
}

impl<S: AsFd> Wraps<S> for PipeEnd<S> {
    /// The mode that std would obey is read from it.
    fn adopt(inner: S) -> PipeEnd<S> {
        let nonblocking = SockRef::from(&inner).nonblocking().unwrap_or(false);
        PipeEnd::new(inner, nonblocking)
    }

    fn into_std(self) -> S {
        if self.is_by_mode() {
            // It fails only on what is no open descriptor, and then there is nothing to put into a mode.
            let _ = SockRef::from(self.io.inner()).set_nonblocking(self.io.is_nonblocking());
        }
        self.io.into_inner()
    }

    fn expose(&self) -> &S {
        self.io.inner()
    }
}

impl<S: AsFd + fmt::Debug> fmt::Debug for PipeEnd<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}
