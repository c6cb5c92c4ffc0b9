//! A terminal for a test.

use std::os::fd::FromRawFd;

use fibra_io::fs::File;

/// The typing end, and the terminal as its programs have it.
pub(crate) fn terminal() -> (std::fs::File, File) {
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both numbers are written, the rest is left to the system.
    assert_eq!(unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) }, 0);
    // SAFETY: the descriptors were made just now, and have no other owner.
    unsafe { (std::fs::File::from_raw_fd(master), File::from_raw_fd(slave)) }
}
