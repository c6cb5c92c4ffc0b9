//! The actions of signals.

use std::io;
use std::mem;
use std::ptr;

/// Returns an action with an empty mask and no flags.
pub(crate) fn no_action() -> libc::sigaction {
    // SAFETY: all-zero bytes are a valid `sigaction`.
    unsafe { mem::zeroed() }
}

/// Sets the action of the signal, if there is one to set, and returns the action before. Async-signal-safe.
///
/// # Errors
/// What the system says.
///
/// # Safety
/// A handler that is set is async-signal-safe, and has the signature that the flags tell.
pub(crate) unsafe fn change(
    signal: libc::c_int,
    to: Option<&libc::sigaction>,
) -> io::Result<libc::sigaction> {
    let mut previous = no_action();
    let to = to.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the new action is null or valid, by the contract its handler may run at any time; the old one is writable.
    let result = unsafe { libc::sigaction(signal, to, &mut previous) };
    if result == 0 { Ok(previous) } else { Err(io::Error::last_os_error()) }
}

/// Blocks the signal in the calling thread.
pub(crate) fn block(signal: libc::c_int) {
    let mut set = no_action().sa_mask;
    // SAFETY: the set is empty and writable; the set before is not asked for.
    unsafe {
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
}
