//! TCP: a listener, a stream, and how a stream comes to be.

#![forbid(unsafe_code)]

mod connect;
mod connecting;
mod incoming;
mod keepalive;
mod listener;
mod race;
mod serve;
mod socket;
mod stream;

pub use self::incoming::{Incoming, IntoIncoming};
pub use self::keepalive::Keepalive;
pub use self::listener::TcpListener;
pub use self::socket::TcpSocket;
pub use self::stream::TcpStream;
