//! The transfers of sockets whose messages keep their boundaries.
//!
//! A message that fills a part of the buffer says nothing of the next one, so the system is always asked.

#![forbid(unsafe_code)]

use std::io;

use libc::c_int;
use socket2::SockAddr;

use super::socket::{Kind, Socket};
use crate::op::Attempt;
use crate::sys;

impl<S: Kind> Socket<S> {
    /// Receives a message. `flags`: `MSG_PEEK`, or none.
    pub(crate) fn receive_message(&self, buf: &mut [u8], flags: c_int) -> io::Result<usize> {
        self.receive_to_the_end(|| sys::recv(self.fd(), buf, flags), || Ok(0))
    }

    /// Receives a message, and the address of its sender.
    pub(crate) fn receive_from(&self, buf: &mut [u8], flags: c_int) -> io::Result<(usize, SockAddr)> {
        let no_address = || Ok((0, SockAddr::unix("")?));
        self.receive_to_the_end(|| sys::recv_from(self.fd(), buf, flags), no_address)
    }

    /// Sends a message to who the socket is connected to.
    pub(crate) fn send_message(&self, buf: &[u8]) -> io::Result<usize> {
        self.dispatch(|| sys::send(self.fd(), buf).map(Attempt::Done))
    }

    /// Receives, or gives what stands for the end.
    ///
    /// A blocking receive ends when the socket is shut down; one that does not wait says `WouldBlock` to the last. So it is
    /// looked into where there is reason to: where something had ended when it was last heard of, and where one has waited for
    /// nothing.
    fn receive_to_the_end<T>(
        &self,
        mut call: impl FnMut() -> io::Result<T>,
        end: impl Fn() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut has_waited = false;
        self.receive(|| {
            let outcome = unless_empty(call())?;
            let doubtful = has_waited || self.io().source().readiness().load().is_hung_up();
            has_waited = true;
            let received = match outcome {
                Some(received) => received,
                None if doubtful && !self.io().is_nonblocking() && sys::is_shut_down(self.fd())? => {
                    // What came before the end goes before it.
                    unless_empty(call())?.map_or_else(&end, Ok)?
                }
                None => return Err(io::ErrorKind::WouldBlock.into()),
            };
            Ok(Attempt::Done(received))
        })
    }
}

/// `None` where nothing is there.
fn unless_empty<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        outcome => outcome.map(Some),
    }
}
