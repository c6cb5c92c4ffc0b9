//! Transfers of pipes that do not wait. They are no sockets, so `MSG_DONTWAIT` is not for them.
//!
//! Linux has a flag of its own for it, `RWF_NOWAIT`, which pipes know since 6.4. Where it is unknown, the descriptor has to be
//! in non-blocking mode.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

use super::{MAX_BUFFERS, transferred};

/// "At the descriptor's own position", of which a pipe has none.
#[cfg(target_os = "linux")]
const NO_OFFSET: libc::off_t = -1;

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
    let (vector, count) = (bufs.as_mut_ptr().cast::<libc::iovec>().cast_const(), count(bufs.len()));
    // SAFETY: the descriptor is borrowed, so it is open; `IoSliceMut` is guaranteed to have the layout of `iovec`; the
    // vector has `count` entries, each of them a buffer that is writable for its length, and all outlive the call.
    transferred(unsafe {
        match nowait {
            #[cfg(target_os = "linux")]
            Nowait::Flag => libc::preadv2(fd.as_raw_fd(), vector, count, NO_OFFSET, libc::RWF_NOWAIT),
            Nowait::Mode => libc::readv(fd.as_raw_fd(), vector, count),
        }
    })
}

/// Writes from several buffers in turn.
pub(crate) fn write_vectored(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>], nowait: Nowait) -> io::Result<usize> {
    let (vector, count) = (bufs.as_ptr().cast::<libc::iovec>(), count(bufs.len()));
    // SAFETY: as above, of `IoSlice` and buffers that are readable.
    transferred(unsafe {
        match nowait {
            #[cfg(target_os = "linux")]
            Nowait::Flag => libc::pwritev2(fd.as_raw_fd(), vector, count, NO_OFFSET, libc::RWF_NOWAIT),
            Nowait::Mode => libc::writev(fd.as_raw_fd(), vector, count),
        }
    })
}

fn count(bufs: usize) -> c_int {
    // At most a thousand and some, which fits.
    bufs.min(MAX_BUFFERS) as c_int
}
