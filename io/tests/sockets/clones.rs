//! What a clone of a socket takes over, and what is its own from then on.

use std::io::{self, ErrorKind, Read};

use crate::common::{everywhere, kind, pair};
use fibra_io::net::{TcpStream, UdpSocket};
use fibra_io::os::unix::net::{UnixDatagram, UnixStream};

/// A clone made while the socket was not to wait does not wait either, until it is told otherwise, and whatever the socket is told.
macro_rules! takes_the_mode_over {
    ($name:ident, $type:ty, $sockets:expr, $read:expr) => {
        #[test]
        fn $name() {
            everywhere(|| {
                let (socket, _peer) = $sockets;
                let read: fn(&$type) -> io::Result<usize> = $read;
                socket.set_nonblocking(true).unwrap();
                let clone = socket.try_clone().unwrap();
                assert_eq!(kind(read(&clone)), ErrorKind::WouldBlock);
                socket.set_nonblocking(false).unwrap();
                assert_eq!(kind(read(&clone)), ErrorKind::WouldBlock);
                assert_eq!(kind(read(&clone.try_clone().unwrap())), ErrorKind::WouldBlock);
            });
        }
    };
}

takes_the_mode_over!(of_a_tcp_stream, TcpStream, pair(), |mut socket| socket.read(&mut [0]));
takes_the_mode_over!(of_a_unix_stream, UnixStream, UnixStream::pair().unwrap(), |mut socket| socket
    .read(&mut [0]));
takes_the_mode_over!(of_a_unix_datagram, UnixDatagram, UnixDatagram::pair().unwrap(), |socket| socket
    .recv(&mut [0]));
takes_the_mode_over!(of_a_udp_socket, UdpSocket, (UdpSocket::bind("127.0.0.1:0").unwrap(), ()), |socket| {
    socket.recv(&mut [0])
});
