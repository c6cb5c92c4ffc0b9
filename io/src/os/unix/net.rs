//! Sockets of the Unix family, at std's path. The types are in [`net`](crate::net) as well.

#![forbid(unsafe_code)]

pub use crate::net::unix::{Incoming, SocketAddr, UCred, UnixDatagram, UnixListener, UnixStream};
