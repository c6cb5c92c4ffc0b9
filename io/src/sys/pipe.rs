//! Transfers of pipes that do not wait. They are no sockets, so `MSG_DONTWAIT` is not for them.
//!
//! Linux has a flag of its own for it, `RWF_NOWAIT`, which pipes know since 6.4. Where it is unknown, the descriptor has to be
//! in non-blocking mode.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use super::file;
#[cfg(target_os = "linux")]
use super::file::Place;

/// By what a transfer is kept from waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nowait {
    /// By a flag of the call.
    #[cfg(target_os = "linux")]
    Flag,
    /// By the mode that the descriptor is in.
    Mode,
}

impl Nowait {
    /// What to try first.
    #[cfg(target_os = "linux")]
    pub(crate) const BEST: Nowait = Nowait::Flag;
    #[cfg(not(target_os = "linux"))]
    pub(crate) const BEST: Nowait = Nowait::Mode;
}

/// True if the call was refused because the system, or this descriptor, does not know the flag.
pub(crate) fn is_flag_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Reads into several buffers in turn.
pub(crate) fn read_vectored(
    fd: BorrowedFd<'_>,
    bufs: &mut [IoSliceMut<'_>],
    nowait: Nowait,
) -> io::Result<usize> {
    match nowait {
        #[cfg(target_os = "linux")]
        Nowait::Flag => file::read_nowait(fd, bufs, Place::Position),
        Nowait::Mode => file::read(fd, bufs),
    }
}

/// Writes from several buffers in turn.
pub(crate) fn write_vectored(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>], nowait: Nowait) -> io::Result<usize> {
    match nowait {
        #[cfg(target_os = "linux")]
        Nowait::Flag => file::write_nowait(fd, bufs),
        Nowait::Mode => file::write(fd, bufs),
    }
}
