//! Sockets of the Unix family, as in [`std::os::unix::net`].

#![forbid(unsafe_code)]

mod address;
mod connect;
mod datagram;
mod listener;
pub(crate) mod probe;
mod stream;

pub use std::os::unix::net::SocketAddr;

pub use self::datagram::UnixDatagram;
pub use self::listener::{Incoming, UnixListener};
pub use self::stream::{UCred, UnixStream};
