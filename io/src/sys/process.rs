//! What child processes need.
//!
//! What a backend owes: a descriptor that is readable once a process has ended, or the answer that there is none
//! ([`open_pidfd`]); and a wait for any of several descriptors ([`wait_any`]).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

/// Opens a descriptor of a child that has not been waited for, so that its number is still its own. None where the system
/// has no such thing or no descriptor left.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_pidfd(id: u32) -> Option<OwnedFd> {
    use std::os::fd::FromRawFd;

    let id = libc::pid_t::try_from(id).ok()?;
    // SAFETY: two integers go in; the call touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    let fd = c_int::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the call has succeeded, so this is a new descriptor, which nobody else has. It is close-on-exec from the start.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn open_pidfd(_id: u32) -> Option<OwnedFd> {
    None
}

/// Blocks the thread until one of the descriptors is readable or has an error to tell, or `timeout` has passed, or a signal
/// comes.
pub(crate) fn wait_any(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let entry = |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = fds.iter().map(entry).collect();
    let millis = timeout.map_or(-1, |timeout| c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX));
    // SAFETY: there are as many entries as is said, all of them writable, and they outlive the call.
    match unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, millis) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
