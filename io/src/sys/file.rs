//! Reading and writing open files of any kind. What is Linux-only answers `Unsupported` elsewhere.
//!
//! What a backend owes:
//!
//! * transfers at the file's own position, which may block the thread ([`read`], [`write`](fn@write));
//! * the same without waiting for the disk or for the other end, or the answer that this cannot be
//!   had ([`read_nowait`], [`write_nowait`], [`is_refusal`]);
//! * what a descriptor stands for ([`nature`]), and so whether calls on it may never end
//!   ([`Nature::is_endless`]);
//! * copying within the kernel ([`copy_range`]).

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use rustix::fs::{Dev, FileType, fstat, tell};
#[cfg(target_os = "linux")]
use rustix::io::ReadWriteFlags;

/// The most that a write into a FIFO of which `poll` says that it has room takes without blocking;
/// POSIX has all of it go into one page.
pub(crate) const ROOM: usize = 4096;

/// Reads at the file's position. May block the thread.
pub(crate) fn read(fd: BorrowedFd<'_>, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    Ok(rustix::io::readv(fd, bufs)?)
}

/// Writes at the file's position. May block the thread.
pub(crate) fn write(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(rustix::io::writev(fd, bufs)?)
}

/// Where a call that does not wait begins.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// At the file's own position, which moves on.
    Position,
    /// So many bytes after the begin of the file.
    Offset(u64),
}

/// Reads what can be had without waiting: from a file what is in memory, from a FIFO what was
/// written. `WouldBlock` if there is nothing yet.
#[cfg(target_os = "linux")]
pub(crate) fn read_nowait(
    fd: BorrowedFd<'_>,
    bufs: &mut [IoSliceMut<'_>],
    place: Place,
) -> io::Result<usize> {
    let offset = match place {
        Place::Position => AT_POSITION,
        // The system refuses all that large.
        Place::Offset(offset) => offset.min(AT_POSITION - 1),
    };
    Ok(rustix::io::preadv2(fd, bufs, offset, ReadWriteFlags::NOWAIT)?)
}

/// Writes what there is room for without waiting.
#[cfg(target_os = "linux")]
pub(crate) fn write_nowait(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(rustix::io::pwritev2(fd, bufs, AT_POSITION, ReadWriteFlags::NOWAIT)?)
}

/// The offset that stands for the file's own position.
#[cfg(target_os = "linux")]
const AT_POSITION: u64 = u64::MAX;

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_nowait(_: BorrowedFd<'_>, _: &mut [IoSliceMut<'_>], _: Place) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn write_nowait(_: BorrowedFd<'_>, _: &[IoSlice<'_>]) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Returns true unless there are more bytes in the file than those before `place`. Waits for nothing.
pub(crate) fn is_at_end(fd: BorrowedFd<'_>, place: Place) -> bool {
    let before = match place {
        Place::Position => tell(fd).unwrap_or(0),
        Place::Offset(offset) => offset,
    };
    fstat(fd).is_ok_and(|status| u64::try_from(status.st_size).is_ok_and(|size| before >= size))
}

/// Returns true if the system, or the file system, does not have the call or the flag.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EPERM | libc::EXDEV)
    )
}

/// The numbers of the device that a file lies on and of itself.
pub(crate) type Identity = (Dev, u64);

/// Tells which file is open; none where that cannot be asked.
pub(crate) fn identity(fd: BorrowedFd<'_>) -> Option<Identity> {
    fstat(fd).ok().map(|status| (status.st_dev, status.st_ino))
}

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Something on a disk. A block device counts as one.
    Disk,
    /// A FIFO, or an anonymous pipe.
    Pipe,
    Socket,
    /// A terminal, another device, a descriptor of something else.
    Other,
}

impl Nature {
    /// Returns true if a call on the file may never end: it is a terminal, a FIFO, a socket, not
    /// something on a disk.
    pub(crate) fn is_endless(self) -> bool {
        self != Nature::Disk
    }

    /// True if a wait to write is not told of all that ends it: it may be a socket of the Unix
    /// family, of which neither `poll` nor `epoll` says that it was shut down while it was full,
    /// though Linux wakes a blocking `write`.
    pub(crate) fn keeps_shutdown_from_writers(self) -> bool {
        self == Nature::Socket
    }
}

/// Tells what is open. What cannot be asked is taken for something on a disk.
pub(crate) fn nature(fd: BorrowedFd<'_>) -> Nature {
    match fstat(fd).map(|status| FileType::from_raw_mode(status.st_mode)) {
        Ok(FileType::Fifo) => Nature::Pipe,
        Ok(FileType::Socket) => Nature::Socket,
        Ok(FileType::CharacterDevice | FileType::Unknown) => Nature::Other,
        _ => Nature::Disk,
    }
}

/// Copies up to `len` bytes from one file to another, both at their positions, without bringing
/// them into the process.
#[cfg(target_os = "linux")]
pub(crate) fn copy_range(from: BorrowedFd<'_>, to: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
    Ok(rustix::fs::copy_file_range(from, None, to, None, len)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_range(_: BorrowedFd<'_>, _: BorrowedFd<'_>, _: usize) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}
