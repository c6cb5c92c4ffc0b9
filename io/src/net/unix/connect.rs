//! How a connection to a listener on this machine is opened.
//!
//! There is no "under way" here: the connection stands in the listener's queue at once, unless that is full. Then a blocking
//! `connect(2)` waits for room, and one that does not wait is told to come again, with no event that would say when. So a
//! task lets a thread of the blocking pool wait for it, in slices, so that a cancel is seen.

#![forbid(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::unix::net::{self, SocketAddr};

use fibra_runtime::{unblock, wait};
use socket2::{Domain, SockAddr, Socket};

use super::address;
use crate::op::{self, SLICE};
use crate::sys;

/// Opens a connection. The descriptor is left as std would have made it.
pub(super) fn connect(address: &SocketAddr) -> io::Result<net::UnixStream> {
    let address = address::to_raw(address)?;
    let socket = sys::stream_socket_nonblocking(Domain::UNIX, None)?;
    wait::charge();
    let outcome = socket.connect(&address);
    socket.set_nonblocking(false)?;
    match outcome {
        Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_room(&socket, &address)?,
        outcome => outcome?,
    }
    Ok(socket.into())
}

#[cold]
fn wait_for_room(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    if !wait::in_task() {
        return until_not(ErrorKind::Interrupted, || socket.connect(address));
    }
    socket.set_write_timeout(Some(SLICE))?;
    until_not(ErrorKind::WouldBlock, || {
        wait::cancellation_point();
        op::check_may_wait()?;
        unblock(|| until_not(ErrorKind::Interrupted, || socket.connect(address)))
    })?;
    socket.set_write_timeout(None)
}

/// Repeats `call` as long as it fails with `kind`.
fn until_not(kind: ErrorKind, mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(error) if error.kind() == kind => {}
            outcome => return outcome,
        }
    }
}
