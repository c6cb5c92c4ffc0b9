//! Transfers of pipes that do not wait. They are no sockets, so `MSG_DONTWAIT` is not for them.
//!
//! Linux has a flag of its own for it, `RWF_NOWAIT`, which pipes know since 6.4. Where it is unknown, the descriptor has to be
//! in non-blocking mode.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
use super::file::Place;
use super::file::{self, Room};

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

/// Returns true if the call was refused because the system, or this descriptor, does not know the flag.
pub(crate) fn is_flag_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Reads what is there.
pub(crate) fn read(fd: BorrowedFd<'_>, room: &mut (impl Room + ?Sized), nowait: Nowait) -> io::Result<usize> {
    match nowait {
        #[cfg(target_os = "linux")]
        Nowait::Flag => file::read_nowait(fd, room, Place::Position),
        Nowait::Mode => file::read(fd, room),
    }
}

/// Writes from several buffers in turn what there is room for.
pub(crate) fn write(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>], nowait: Nowait) -> io::Result<usize> {
    match nowait {
        #[cfg(target_os = "linux")]
        Nowait::Flag => file::write_nowait(fd, bufs),
        Nowait::Mode => file::write(fd, bufs),
    }
}
