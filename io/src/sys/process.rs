//! What child processes need.
//!
//! What a backend owes: a descriptor that is readable once a process has ended, or the answer that there is none
//! ([`open_pidfd`]).

use std::os::fd::OwnedFd;

/// Opens a descriptor of a child that has not been waited for, so that its number is still its own. None where the system
/// has no such thing or no descriptor left.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_pidfd(id: u32) -> Option<OwnedFd> {
    use std::os::fd::FromRawFd;

    use libc::c_int;

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
