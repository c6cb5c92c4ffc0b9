//! What answers no connection.

use std::net::SocketAddr;
use std::time::Duration;

/// An address that answers nobody: a listener whose queue is full.
pub(crate) struct Silent {
    pub(crate) listener: socket2::Socket,
    pub(crate) queue: Vec<std::net::TcpStream>,
    pub(crate) address: SocketAddr,
}

impl Silent {
    pub(crate) fn new() -> Silent {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
            queue.push(stream);
        }
        Silent { listener, queue, address }
    }
}
