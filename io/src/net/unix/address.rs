//! Converts between std's address, whose fields are private, and the address of system calls.

#![forbid(unsafe_code)]

use std::io;
use std::os::unix::net::SocketAddr;

use socket2::SockAddr;

use self::abstracts::{abstract_name, from_abstract_name, to_abstract};

/// For a system call.
pub(super) fn to_raw(address: &SocketAddr) -> io::Result<SockAddr> {
    match (address.as_pathname(), abstract_name(address)) {
        (Some(path), _) => SockAddr::unix(path),
        (None, Some(name)) => from_abstract_name(name),
        (None, None) => SockAddr::unix(""),
    }
}

/// From a system call. A path that fills the address to its last byte has no place in std's type;
/// its owner is unnamed.
pub(super) fn to_std(raw: &SockAddr) -> io::Result<SocketAddr> {
    match (raw.as_pathname(), raw.as_abstract_namespace()) {
        (Some(path), _) => SocketAddr::from_pathname(path).or_else(|_too_long| unnamed()),
        (None, Some(name)) => to_abstract(name),
        (None, None) => unnamed(),
    }
}

/// An empty path is no path.
fn unnamed() -> io::Result<SocketAddr> {
    SocketAddr::from_pathname("")
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod abstracts {
    #[cfg(target_os = "android")]
    use std::os::android::net::SocketAddrExt;
    #[cfg(target_os = "linux")]
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::SocketAddr;
    use std::{ffi, io};

    use socket2::SockAddr;

    pub(super) fn abstract_name(address: &SocketAddr) -> Option<&[u8]> {
        address.as_abstract_name()
    }

    /// A path that begins with a zero is what socket2 takes an abstract name for.
    pub(super) fn from_abstract_name(name: &[u8]) -> io::Result<SockAddr> {
        let path = [b"\0", name].concat();
        SockAddr::unix(ffi::OsStr::from_bytes(&path))
    }

    pub(super) fn to_abstract(name: &[u8]) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(name)
    }
}

/// Where there are none.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod abstracts {
    use std::io;
    use std::os::unix::net::SocketAddr;

    use socket2::SockAddr;

    pub(super) fn abstract_name(_address: &SocketAddr) -> Option<&[u8]> {
        None
    }

    pub(super) fn from_abstract_name(_name: &[u8]) -> io::Result<SockAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn to_abstract(_name: &[u8]) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
