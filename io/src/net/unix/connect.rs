//! Opens a connection to a Unix listener, and waits while its queue is full.
//!
//! There is no "under way" here: the connection stands in the listener's queue at once, unless that
//! is full. Then a blocking `connect(2)` waits for room, and a call that does not wait is refused,
//! with no event that would say when to try again. So a task lets a thread of the blocking pool
//! wait for it, in slices, so that a cancel is seen; and a deadline is what the last slice ends
//! with.

#![forbid(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::unix::net::{self, SocketAddr};
use std::time::Instant;

use fibra_runtime::clock;
use fibra_runtime::{unblock, wait};
use socket2::{Domain, SockAddr, Socket};

use super::address;
use crate::net::socket::SHORTEST;
use crate::net::timed_out;
use crate::sys;
use crate::waiting::cancel::{SLICE, check_may_wait};

/// Opens a connection, by `deadline` if there is one. The descriptor is left as std would have made it.
pub(super) fn connect(address: &SocketAddr, deadline: Option<Instant>) -> io::Result<net::UnixStream> {
    let address = address::to_raw(address)?;
    let socket = sys::stream_socket_nonblocking(Domain::UNIX, None)?;
    wait::charge();
    let outcome = socket.connect(&address);
    socket.set_nonblocking(false)?;
    match outcome {
        Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_room(&socket, &address, deadline)?,
        outcome => outcome?,
    }
    Ok(socket.into())
}

#[cold]
fn wait_for_room(socket: &Socket, address: &SockAddr, deadline: Option<Instant>) -> io::Result<()> {
    let slice = wait::may_end_early().then_some(SLICE);
    loop {
        wait::cancellation_point();
        check_may_wait()?;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(timed_out());
        }
        socket.set_write_timeout(left.into_iter().chain(slice).min().map(|time| time.max(SHORTEST)))?;
        match unblock(|| socket.connect(address)) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            outcome => {
                outcome?;
                return socket.set_write_timeout(None);
            }
        }
    }
}
