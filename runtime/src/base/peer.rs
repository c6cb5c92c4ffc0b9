//! The other ends of connections, for reports.

use std::net::SocketAddr;

/// Returns the address that a socket is connected to. `None` for other descriptors, also for a number that is none.
///
/// The number may come to stand for another socket at any time.
#[cfg(unix)]
pub(crate) fn of(descriptor: i32) -> Option<SocketAddr> {
    use std::os::fd::BorrowedFd;

    if descriptor < 0 {
        return None;
    }
    // SAFETY: it is not -1. The kernel refuses a number that stands for nothing, and the call only asks.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    rustix::net::getpeername(descriptor).ok()??.try_into().ok()
}

#[cfg(not(unix))]
pub(crate) fn of(_descriptor: i32) -> Option<SocketAddr> {
    None
}
