//! System calls for child processes.
//!
//! What a backend owes: a descriptor that is readable once a process has ended, or the answer that there is none
//! ([`open_pidfd`]).

#![forbid(unsafe_code)]

use std::os::fd::OwnedFd;

/// Opens a descriptor of a child that has not been waited for, so that its number is still its own. None where the system
/// has no such thing or no descriptor left.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_pidfd(id: u32) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let pid = Pid::from_raw(id.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn open_pidfd(_id: u32) -> Option<OwnedFd> {
    None
}
