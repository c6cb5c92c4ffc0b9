//! The sockets of a simulated network.
//!
//! They are descriptors of the Unix family, so the system refuses what needs an address or an option of the internet. Only
//! then, and where a socket is made, does the code here ask whether the runtime has a simulated network.

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net as unix;
use std::vec;

use socket2::{Domain, Protocol, SockAddr, Socket};

use crate::network::{Network, SocketOption, Transport};
use crate::reactor::simulated::network;
use crate::sys::stream_socket_nonblocking;

/// Returns the number of the simulated process that the running task belongs to; 0 outside a simulation.
pub(crate) fn process() -> u64 {
    network().map_or(0, |network| network.process())
}

/// Asks the network of a simulation, where the system has refused with `error`.
#[cold]
fn ask<T>(
    error: io::Error,
    socket: impl AsFd,
    question: impl FnOnce(&dyn Network, BorrowedFd<'_>) -> io::Result<T>,
) -> io::Result<T> {
    match network() {
        Some(network) => question(&*network, socket.as_fd()),
        None => Err(error),
    }
}

/// Makes a TCP socket that does not wait in `connect`.
pub(super) fn tcp_socket(domain: Domain) -> io::Result<Socket> {
    match network() {
        Some(network) => network.socket(Transport::Stream).map(Socket::from),
        None => stream_socket_nonblocking(domain, Some(Protocol::TCP)),
    }
}

/// Binds a new UDP socket.
pub(super) fn udp_socket(address: SocketAddr) -> io::Result<net::UdpSocket> {
    let Some(network) = network() else { return net::UdpSocket::bind(address) };
    let socket = network.socket(Transport::Messages)?;
    network.bind(socket.as_fd(), address)?;
    Ok(socket.into())
}

pub(super) fn bind(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    socket.bind(&address.into()).or_else(|error| ask(error, socket, |network, fd| network.bind(fd, address)))
}

pub(super) fn listen(socket: &Socket, backlog: i32) -> io::Result<()> {
    let queued = usize::try_from(backlog).unwrap_or(0);
    socket.listen(backlog).or_else(|error| ask(error, socket, |network, fd| network.listen(fd, queued)))
}

pub(super) fn connect(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(libc::EINPROGRESS) => Err(error),
        _ => ask(error, socket, |network, fd| network.connect(fd, address)),
    };
    socket.connect(&address.into()).or_else(refused)
}

pub(super) fn connect_messages(socket: &net::UdpSocket, address: SocketAddr) -> io::Result<()> {
    socket.connect(address).or_else(|error| ask(error, socket, |network, fd| network.connect(fd, address)))
}

/// Sends a message that the system has refused to send.
pub(super) fn send_to(
    socket: BorrowedFd<'_>,
    message: &[u8],
    address: &SockAddr,
    error: io::Error,
) -> io::Result<usize> {
    match (error.kind(), address.as_socket()) {
        (io::ErrorKind::WouldBlock, _) | (_, None) => Err(error),
        (_, Some(address)) => ask(error, socket, |network, fd| network.send_to(fd, message, address)),
    }
}

/// Returns the sender of a message, whose address is of another family.
pub(super) fn sender(socket: BorrowedFd<'_>, address: &SockAddr, error: io::Error) -> io::Result<SocketAddr> {
    let name = address.as_abstract_namespace().unwrap_or_default();
    ask(error, socket, |network, fd| network.sender(fd, name))
}

pub(super) fn set_option(
    socket: impl AsFd,
    option: SocketOption,
    value: u32,
    error: io::Error,
) -> io::Result<()> {
    set_options(socket, [(option, value)].into_iter(), error)
}

pub(super) fn set_options(
    socket: impl AsFd,
    mut options: impl Iterator<Item = (SocketOption, u32)>,
    error: io::Error,
) -> io::Result<()> {
    ask(error, socket, |network, fd| {
        options.try_for_each(|(option, value)| network.set_option(fd, option, value))
    })
}

pub(super) fn option(socket: impl AsFd, option: SocketOption, error: io::Error) -> io::Result<u32> {
    ask(error, socket, |network, fd| network.option(fd, option))
}

/// Looks a name up, if the runtime has a simulated network.
pub(super) fn look_up(host: &str, port: u16) -> Option<io::Result<vec::IntoIter<SocketAddr>>> {
    let found = network()?.look_up(host);
    let with_port =
        |ips: Vec<net::IpAddr>| ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect::<Vec<_>>();
    Some(found.map(|ips| with_port(ips).into_iter()))
}

/// An address that sockets of a kind have.
pub(super) trait Address: Sized {
    /// Returns the address of this end, where the system has refused to.
    fn local(_socket: BorrowedFd<'_>, error: io::Error) -> io::Result<Self> {
        Err(error)
    }

    /// Returns the address of the other end, where the system has refused to.
    fn peer(_socket: BorrowedFd<'_>, error: io::Error) -> io::Result<Self> {
        Err(error)
    }
}

impl Address for unix::SocketAddr {}

impl Address for SocketAddr {
    fn local(socket: BorrowedFd<'_>, error: io::Error) -> io::Result<Self> {
        ask(error, socket, |network, fd| network.local_addr(fd))
    }

    fn peer(socket: BorrowedFd<'_>, error: io::Error) -> io::Result<Self> {
        match error.kind() {
            io::ErrorKind::NotConnected => Err(error),
            _ => ask(error, socket, |network, fd| network.peer_addr(fd)),
        }
    }
}

/// Accepts a connection. A listener of a simulation has been told to listen by its network only.
pub(super) fn accept(listener: &net::TcpListener) -> io::Result<(net::TcpStream, SocketAddr)> {
    listener.accept().or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            let accepted = ask(error, listener, |network, fd| network.accept(fd));
            accepted.map(|(stream, from)| (stream.into(), from))
        }
        _ => Err(error),
    })
}
