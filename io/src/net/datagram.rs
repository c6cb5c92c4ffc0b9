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
            let mut outcome = call();
            if is_empty(&outcome) && self.has_ended(&mut has_waited)? {
                // What came before the end goes before it.
                outcome = call();
                if is_empty(&outcome) {
                    outcome = end();
                }
            }
            outcome.map(Attempt::Done)
        })
    }

    /// Asks the system, if there is reason to.
    #[cold]
    fn has_ended(&self, has_waited: &mut bool) -> io::Result<bool> {
        let doubtful = *has_waited || self.io().source().readiness().load().is_hung_up();
        *has_waited = true;
        Ok(doubtful && !self.io().is_nonblocking() && sys::is_shut_down(self.fd())?)
    }
}

/// True if nothing is there.
fn is_empty<T>(outcome: &io::Result<T>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
