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

/// A handler with `SA_SIGINFO`.
pub(crate) type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Sets a handler of the signal.
///
/// It runs on the alternate stack of its thread, with the signal blocked: a fault in it ends the process.
///
/// # Errors
/// What the system says.
///
/// # Safety
/// The handler is async-signal-safe.
pub(crate) unsafe fn handle_by(signal: libc::c_int, handler: Handler) -> io::Result<()> {
    let mut action = no_action();
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that the flags tell, and is async-signal-safe by the contract.
    unsafe { change(signal, Some(&action)) }.map(drop)
}

/// Runs a part of a handler, and leaves `errno` to the interrupted code as it was. Async-signal-safe.
pub(crate) fn keeping_errno(f: impl FnOnce()) {
    #[cfg(any(target_os = "illumos", target_os = "solaris"))]
    use libc::___errno as errno;
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    use libc::__errno as errno;
    #[cfg(any(target_os = "linux", target_os = "dragonfly"))]
    use libc::__errno_location as errno;
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    use libc::__error as errno;

    // SAFETY: no precondition; the place is this thread's own, and lasts as long.
    let (place, kept) = unsafe { (errno(), *errno()) };
    f();
    // SAFETY: as above.
    unsafe { *place = kept };
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
