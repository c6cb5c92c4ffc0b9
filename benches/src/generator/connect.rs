//! All connections, before the first request.

use super::board::Board;
use crate::wire::Order;
use fibra::net::TcpStream;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many connections are being made at once: few enough for any server's backlog.
const AT_ONCE: usize = 32;

/// How long it may take until so many connections stand.
pub(crate) fn patience(count: usize) -> Duration {
    const FOR_ALL: Duration = Duration::from_secs(10);
    const FOR_EACH: Duration = Duration::from_millis(2);
    FOR_ALL + FOR_EACH * u32::try_from(count).unwrap_or(u32::MAX)
}

/// The connection of a lane: one for all its requests, or with churn one for each.
pub(crate) struct Connection {
    order: Arc<Order>,
    stream: Option<TcpStream>,
}

impl Connection {
    pub(crate) fn new(order: &Arc<Order>, stream: Option<TcpStream>) -> Self {
        Self { order: Arc::clone(order), stream }
    }

    /// The connection for the next exchange; one is made if there is none.
    pub(crate) fn take(&mut self) -> io::Result<TcpStream> {
        self.stream.take().map_or_else(|| connect(&self.order, self.order.timeout), Ok)
    }

    /// True where every exchange has a connection of its own.
    pub(crate) fn is_for_one(&self) -> bool {
        self.order.churn
    }

    /// Gives a connection back after an exchange.
    pub(crate) fn keep(&mut self, stream: TcpStream) {
        self.stream = (!self.order.churn).then_some(stream);
    }
}

fn connect(order: &Order, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&order.address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(order.timeout))?;
    stream.set_write_timeout(Some(order.timeout))?;
    Ok(stream)
}

/// Returns the unspecified address of the family, with any port.
pub(crate) fn any_like(address: SocketAddr) -> SocketAddr {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    (any, 0).into()
}

/// Makes `count` connections. A failure is counted and not tried again.
pub(crate) fn connect_all(order: &Order, count: usize, board: &Board) -> Vec<TcpStream> {
    let streams = Mutex::new(Vec::with_capacity(count));
    let tried = AtomicUsize::new(0);
    let deadline = Instant::now() + patience(count);
    // Relaxed: a ticket counter, which publishes nothing.
    let next = || tried.fetch_add(1, Relaxed) < count && !board.is_stopped();
    let connect = || {
        while next() {
            match time_left(order, deadline).and_then(|left| connect(order, left)) {
                Ok(stream) => streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream),
                Err(error) => board.count(&error),
            }
        }
    };
    fibra::scope(|scope| {
        for _ in 0..AT_ONCE.min(count) {
            scope.spawn(connect);
        }
    });
    streams.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Connects for the plain client, one by one, with the sockets of std.
pub(crate) fn connect_plainly(order: &Order, count: usize, board: &Board) -> Vec<std::net::TcpStream> {
    let deadline = Instant::now() + patience(count);
    let connect = |_| -> io::Result<_> {
        let stream = std::net::TcpStream::connect_timeout(&order.address, time_left(order, deadline)?)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(order.timeout))?;
        stream.set_write_timeout(Some(order.timeout))?;
        Ok(stream)
    };
    let tries = (0..count).take_while(|_| !board.is_stopped()).map(connect);
    tries.filter_map(|stream| stream.map_err(|error| board.count(&error)).ok()).collect()
}

/// Counts the silent connections that the server has closed.
pub(crate) fn look_after(idle: &[std::net::TcpStream], board: &Board) {
    let is_open = |stream: &&std::net::TcpStream| {
        let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    };
    idle.iter()
        .filter(|stream| !is_open(stream))
        .for_each(|_| board.count(&io::ErrorKind::UnexpectedEof.into()));
}

fn time_left(order: &Order, deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now()).min(order.timeout);
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
