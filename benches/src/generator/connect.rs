//! All connections, before the first request.

use super::board::{Board, Fault};
use crate::wire::Order;
use fibra::net::TcpStream;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many connections are being made at once: few enough for any server's backlog.
const AT_ONCE: usize = 32;

/// How long it may take until all connections stand.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Makes the connections of `order`. What cannot be had is counted, and tried once only.
pub(crate) fn connect_all(order: &Order, board: &Board) -> Vec<TcpStream> {
    let streams = Mutex::new(Vec::with_capacity(order.connections));
    let tried = AtomicUsize::new(0);
    let deadline = Instant::now() + PATIENCE;
    // Relaxed: a ticket counter, which publishes nothing.
    let next = || tried.fetch_add(1, Relaxed) < order.connections && !board.is_stopped();
    let connect = || {
        while next() {
            match connect_one(order, deadline) {
                Ok(stream) => streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream),
                Err(error) => board.count(&Fault::System(error)),
            }
        }
    };
    fibra::scope(|scope| {
        for _ in 0..AT_ONCE.min(order.connections) {
            scope.spawn(connect);
        }
    });
    streams.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn connect_one(order: &Order, deadline: Instant) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&order.address, time_left(order, deadline)?)
}

/// The same for the plain client: one after the other, with the sockets of std.
pub(crate) fn connect_plainly(order: &Order, board: &Board) -> Vec<std::net::TcpStream> {
    let deadline = Instant::now() + PATIENCE;
    let connect = |_| -> io::Result<_> {
        std::net::TcpStream::connect_timeout(&order.address, time_left(order, deadline)?)
    };
    let tries = (0..order.connections).take_while(|_| !board.is_stopped()).map(connect);
    tries.filter_map(|stream| stream.map_err(|error| board.count(&Fault::System(error))).ok()).collect()
}

fn time_left(order: &Order, deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now()).min(order.timeout);
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
