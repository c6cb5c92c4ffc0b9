//! Converts between std's address, whose fields are private, and the address of system calls.

#![forbid(unsafe_code)]

use std::io;
#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::SockAddr;

/// Converts an address for a system call.
pub(super) fn to_raw(address: &SocketAddr) -> io::Result<SockAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = address.as_abstract_name() {
        // socket2 takes a path that begins with a zero for an abstract name.
        let path = [b"\0", name].concat();
        return SockAddr::unix(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&path));
    }
    SockAddr::unix(address.as_pathname().unwrap_or(Path::new("")))
}

/// Converts the address that a system call has given.
///
/// A path that fills the address to its last byte has no place in std's type; its owner is unnamed,
/// which is an empty path.
pub(super) fn to_std(raw: &SockAddr) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = raw.as_abstract_namespace() {
        return SocketAddr::from_abstract_name(name);
    }
    let path = raw.as_pathname().unwrap_or(Path::new(""));
    SocketAddr::from_pathname(path).or_else(|_too_long| SocketAddr::from_pathname(""))
}
