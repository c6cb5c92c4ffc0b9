//! Addresses without a listener.

use std::net::SocketAddr;
use std::sync::LazyLock;

/// An address without a listener, now and later: it is bound. An address that was only given up could have a new owner by now,
/// even the client of the test.
pub(crate) fn refused() -> SocketAddr {
    static BOUND: LazyLock<(socket2::Socket, SocketAddr)> = LazyLock::new(|| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, address)
    });
    BOUND.1
}
