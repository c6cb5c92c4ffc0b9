//! Anonymous pipes, with the functions and methods of [`std::io::pipe`].

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::SockRef;

use crate::sys;
use crate::sys::Direction;
use crate::sys::file::{self, Nature, Place, nature};
use crate::waiting::attempt::Attempt;
use crate::waiting::convert::{Wraps, reads, writes};
use crate::waiting::descriptor::Descriptor;
use crate::waiting::stream_file::StreamFile;
use crate::waiting::timeouts::{Timeout, deadline_methods};

/// Makes an anonymous pipe: [`std::io::pipe`], for tasks.
///
/// The reader gets the bytes that are written to the writer. Once all writers are dropped, here and in
/// other processes, a read returns 0. Once all readers are dropped, a write fails with `BrokenPipe`.
/// Children inherit neither end, unless it is set as their input or output.
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
    Ok((PipeReader(PipeEnd::fresh(reader)), PipeWriter(PipeEnd::fresh(writer))))
}

/// The reading end of a pipe: [`std::io::PipeReader`], for tasks.
///
/// A read puts the task to sleep, never its worker; a plain thread blocks. Any number of tasks may
/// read at once, through `&PipeReader` or a clone; they compete. A reader made from the descriptor of
/// a terminal or a plain file works as in std: it waits for a terminal, and reads a plain file as a
/// [`File`](crate::fs::File) does.
///
/// # Cancellation
///
/// A read that has to wait is a cancellation point; it has taken nothing then.
///
/// # Differences from std
///
/// Linux before 6.4 cannot read from a pipe without waiting. There the first use makes the descriptor
/// non-blocking, until it is converted to std. A process that shares it sees `WouldBlock`. So does
/// std, if a clone here goes on reading. A handle made from the raw descriptor meanwhile takes over
/// that mode and does not wait; make a second handle by `try_clone`. Deadlines are additions.
///
/// # Examples
///
/// ```
/// use std::io::{ErrorKind, Read, Write};
/// use std::time::Instant;
/// use fibra_io::io::pipe;
///
/// let (reader, writer) = pipe()?;
/// let (mut also_reads, mut also_writes) = (reader.try_clone()?, writer.try_clone()?);
/// let now = Some(Instant::now());
/// reader.set_read_deadline(now);
/// writer.set_write_deadline(now);
/// assert_eq!((also_reads.read_deadline(), also_writes.write_deadline()), (now, now));
/// assert_eq!(also_reads.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
/// assert_eq!(also_writes.write(b"there is room")?, 13);
/// assert_eq!(also_reads.read(&mut [0; 32])?, 13);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct PipeReader(pub(crate) PipeEnd<io::PipeReader>);

/// The end of a pipe that is written to: [`std::io::PipeWriter`], for tasks.
///
/// Writing puts the task to sleep while the pipe is full, never the thread; in a plain thread it
/// blocks it. What several tasks write may interleave, but for pieces of at most `PIPE_BUF` bytes
/// (4096 on Linux).
///
/// # Cancellation
///
/// A write that has to wait for room is a cancellation point; what was written before stays written.
///
/// # Differences from std
///
/// As for [`PipeReader`].
pub struct PipeWriter(pub(crate) PipeEnd<io::PipeWriter>);

reads!(PipeReader);
writes!(PipeWriter);
deadline_methods!(read PipeReader: end => end.0.limit());
deadline_methods!(write PipeWriter: end => end.0.limit());

impl PipeReader {
    /// Makes a second handle of this end, with a descriptor of its own.
    ///
    /// Both share the deadline.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<PipeReader> {
        self.0.try_clone().map(PipeReader)
    }
}

impl PipeWriter {
    /// Makes a second handle of this end, with a descriptor of its own.
    ///
    /// Both share the deadline.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<PipeWriter> {
        self.0.try_clone().map(PipeWriter)
    }
}

/// Either end of a pipe, or another file under the name of one, with which std works.
pub(crate) enum PipeEnd<S: AsFd> {
    Pipe(Pipe<S>),
    /// A file on a disk, a terminal or a device.
    File(StreamFile<S>),
}

impl<S: AsFd> PipeEnd<S> {
    fn fresh(inner: S) -> PipeEnd<S> {
        PipeEnd::Pipe(Pipe { io: Descriptor::new(inner, false), shared: Arc::default() })
    }

    fn try_clone(&self) -> io::Result<PipeEnd<S>>
    where
        S: From<OwnedFd>,
    {
        let clone = S::from(self.std().as_fd().try_clone_to_owned()?);
        Ok(match self {
            PipeEnd::Pipe(pipe) => {
                PipeEnd::Pipe(Pipe { io: pipe.io.with_clone(clone), shared: Arc::clone(&pipe.shared) })
            }
            PipeEnd::File(file) => PipeEnd::File(file.with_clone(clone)),
        })
    }

    pub(crate) fn std(&self) -> &S {
        match self {
            PipeEnd::Pipe(pipe) => pipe.io.inner(),
            PipeEnd::File(file) => file.std(),
        }
    }

    /// How long its transfers wait.
    pub(crate) fn limit(&self) -> &Timeout {
        match self {
            PipeEnd::Pipe(pipe) => &pipe.shared.limit,
            PipeEnd::File(file) => file.limit(),
        }
    }

    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(buf)])
    }

    pub(crate) fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            PipeEnd::Pipe(pipe) => {
                let is_empty = sys::total(bufs) == 0;
                pipe.run(Direction::Read, is_empty, |fd, by_mode| read(fd, bufs, by_mode))
            }
            PipeEnd::File(file) => file.read(bufs),
        }
    }

    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    pub(crate) fn write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            PipeEnd::Pipe(pipe) => {
                let is_empty = sys::total(bufs) == 0;
                pipe.run(Direction::Write, is_empty, |fd, by_mode| write(fd, bufs, by_mode))
            }
            PipeEnd::File(file) => file.write(bufs),
        }
    }
}

/// Calls that do not wait. A file on a disk is always ready, and there they are the ordinary ones.
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
impl<S: AsFd> PipeEnd<S> {
    pub(crate) fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<usize>> {
        match self {
            PipeEnd::Pipe(pipe) => pipe.attempt(&mut |fd, by_mode| read(fd, bufs, by_mode)),
            PipeEnd::File(file) => file.try_read(bufs),
        }
    }

    pub(crate) fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<usize>> {
        match self {
            PipeEnd::Pipe(pipe) => pipe.attempt(&mut |fd, by_mode| write(fd, bufs, by_mode)),
            PipeEnd::File(file) => file.try_write(bufs),
        }
    }

    pub(crate) fn io(&self) -> &Descriptor<S> {
        match self {
            PipeEnd::Pipe(pipe) => &pipe.io,
            PipeEnd::File(file) => file.io(),
        }
    }
}

impl<S: AsFd> Wraps<S> for PipeEnd<S> {
    /// The mode that std would obey is read from it.
    fn adopt(inner: S) -> PipeEnd<S> {
        let nature = nature(inner.as_fd());
        if matches!(nature, Nature::Disk | Nature::Other) {
            return PipeEnd::File(StreamFile::adopt(inner));
        }
        let nonblocking = SockRef::from(&inner).nonblocking().unwrap_or(false);
        let io = Descriptor::new(inner, nonblocking).recheck_writes(nature.keeps_shutdown_from_writers());
        PipeEnd::Pipe(Pipe { io, shared: Arc::default() })
    }

    fn into_std(self) -> S {
        match self {
            PipeEnd::Pipe(pipe) => pipe.into_std(),
            PipeEnd::File(file) => file.into_std(),
        }
    }

    fn expose(&self) -> &S {
        self.std()
    }
}

/// What can be waited for. A read that fills a part of its buffer proves nothing, since a pipe may
/// keep packets; the system is always asked.
pub(crate) struct Pipe<S: AsFd> {
    io: Descriptor<S>,
    /// What clones have in common.
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// True once a call was refused for its flag: from then on each is made by the mode.
    by_mode: AtomicBool,
    limit: Timeout,
}

impl<S: AsFd> Pipe<S> {
    /// Runs a transfer until it moves something, unless there is nothing to be moved, and waits in between.
    fn run(
        &self,
        direction: Direction,
        is_empty: bool,
        mut transfer: impl FnMut(BorrowedFd<'_>, bool) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let (left, call) = (|| self.shared.limit.left(), || self.attempt(&mut transfer));
        match is_empty {
            true => self.io.run_empty(direction, left, call),
            false => self.io.run(direction, left, call),
        }
    }

    /// Makes one transfer that does not wait: by the flag, or by the mode where the flag is unknown.
    ///
    /// The mode is set before each call, and the handle that leaves for std restores it. It is not
    /// lent for one call: a handle that was made separately would lose it in the midst of its own.
    fn attempt(
        &self,
        transfer: &mut impl FnMut(BorrowedFd<'_>, bool) -> io::Result<usize>,
    ) -> io::Result<Attempt<usize>> {
        let fd = self.io.fd();
        if !self.is_by_mode() {
            match transfer(fd, false) {
                // Relaxed: see `is_by_mode`.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {
                    self.shared.by_mode.store(true, Ordering::Relaxed)
                }
                outcome => return outcome.map(Attempt::Done),
            }
        }
        SockRef::from(&fd).set_nonblocking(true)?;
        transfer(fd, true).map(Attempt::Done)
    }

    fn is_by_mode(&self) -> bool {
        // Relaxed: a call that misses that it was set finds out by itself.
        self.shared.by_mode.load(Ordering::Relaxed)
    }

    fn into_std(self) -> S {
        if self.is_by_mode() {
            // It fails only on what is no open descriptor, and then there is nothing to put into a mode.
            let _ = SockRef::from(self.io.inner()).set_nonblocking(self.io.is_nonblocking());
        }
        self.io.into_inner()
    }
}

/// Reads what is there: by the mode of the descriptor, or by the flag of Linux, `RWF_NOWAIT`.
///
/// Pipes know the flag since Linux 6.4. They are no sockets, so `MSG_DONTWAIT` is not for them.
fn read(fd: BorrowedFd<'_>, bufs: &mut [IoSliceMut<'_>], by_mode: bool) -> io::Result<usize> {
    match by_mode {
        true => file::read(fd, bufs),
        false => file::read_nowait(fd, bufs, Place::Position),
    }
}

/// Writes from several buffers in turn what there is room for, as [`read`] reads.
fn write(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>], by_mode: bool) -> io::Result<usize> {
    match by_mode {
        true => file::write(fd, bufs),
        false => file::write_nowait(fd, bufs),
    }
}
