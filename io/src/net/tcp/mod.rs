//! TCP: a listener, a stream, and how a stream comes to be.

mod connect;
mod convert;
mod incoming;
mod listener;
mod race;
mod stream;

pub use self::incoming::{Incoming, IntoIncoming};
pub use self::listener::TcpListener;
pub use self::stream::TcpStream;
