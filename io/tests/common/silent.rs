//! What answers no connection.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An address that answers no client: a listener with a full queue.
pub(crate) struct Silent {
    pub(crate) listener: socket2::Socket,
    pub(crate) queue: Vec<TcpStream>,
    pub(crate) address: SocketAddr,
}

impl Silent {
    pub(crate) fn new() -> Silent {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut silent = Silent { listener, queue: Vec::new(), address };
        silent.fill();
        silent
    }

    /// Connects until no answer comes. On a busy machine the first answer may come late, to a
    /// client that has left.
    fn fill(&mut self) {
        loop {
            match TcpStream::connect_timeout(&self.address, Duration::from_millis(50)) {
                Ok(stream) => self.queue.push(stream),
                Err(_) if self.queue.is_empty() => self.empty(),
                Err(_) => return,
            }
        }
    }

    /// Accepts the clients that have left.
    fn empty(&self) {
        self.listener.set_nonblocking(true).unwrap();
        while self.listener.accept().is_ok() {}
        self.listener.set_nonblocking(false).unwrap();
    }
}
