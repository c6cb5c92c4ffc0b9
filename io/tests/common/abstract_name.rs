//! Names for the Unix family that are no paths.

use std::sync::atomic::{AtomicUsize, Ordering};

use fibra_io::os::linux::net::SocketAddrExt;
use fibra_io::os::unix::net::SocketAddr;

/// A name without another user.
pub(crate) fn abstract_address() -> SocketAddr {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    SocketAddr::from_abstract_name(format!("fibra {} {number}", std::process::id())).unwrap()
}
