//! The transfers of sockets whose messages keep their boundaries.
//!
//! A message that fills a part of the buffer says nothing of the next one, so the system is always asked.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;

use libc::c_int;
use socket2::SockAddr;

use super::simulated;
use super::socket::{Kind, Socket};
use crate::sys;
use crate::waiting::attempt::Attempt;

/// What has to be known of the addresses of messages.
pub(crate) trait Family: Kind {
    /// As std has them.
    type Address;

    /// For a system call.
    fn to_raw(address: &Self::Address) -> io::Result<SockAddr>;

    /// True if a message that was refused found no room in the queue of its receiver, of which this
    /// socket hears nothing.
    fn is_full_elsewhere(fd: BorrowedFd<'_>) -> io::Result<bool>;

    /// The sender of a message that the socket has received.
    fn sender(fd: BorrowedFd<'_>, from: &SockAddr) -> io::Result<Self::Address>;
}

impl<S: Family> Socket<S> {
    /// Receives a message. `flags`: `MSG_PEEK`, or none.
    pub(crate) fn receive_message(&self, buf: &mut [u8], flags: c_int) -> io::Result<usize> {
        let mut has_waited = false;
        self.receive(|| self.try_receive(buf, flags, self.may_have_ended(&mut has_waited)))
    }

    /// Receives a message, and the address of its sender.
    pub(crate) fn receive_from(&self, buf: &mut [u8], flags: c_int) -> io::Result<(usize, S::Address)> {
        self.receive_by(|| sys::recv_from(self.fd(), buf, flags))
    }

    /// Receives a message and the address of its sender by a call that does not wait.
    pub(crate) fn receive_by(
        &self,
        mut call: impl FnMut() -> io::Result<(usize, SockAddr)>,
    ) -> io::Result<(usize, S::Address)> {
        let mut has_waited = false;
        self.receive(|| self.try_receive_by(&mut call, self.may_have_ended(&mut has_waited)))
    }

    /// Sends a message to the connected peer.
    pub(crate) fn send_message(&self, buf: &[u8]) -> io::Result<usize> {
        self.dispatch(|| self.try_send(buf))
    }

    /// Returns a look whether the socket may have been shut down.
    ///
    /// A blocking receive ends then; a receive that does not wait says `WouldBlock` to the last. So
    /// the system is asked after an event of an end, and after a wait for nothing.
    fn may_have_ended(&self, has_waited: &mut bool) -> impl FnOnce() -> bool {
        move || {
            let doubtful = *has_waited || self.has_heard_of_an_end();
            *has_waited = true;
            doubtful && !self.io().is_nonblocking()
        }
    }

    /// Returns true if something had ended when it was last heard of.
    pub(crate) fn has_heard_of_an_end(&self) -> bool {
        self.io().source().readiness().load().is_hung_up()
    }
}

/// Calls that do not wait.
impl<S: Family> Socket<S> {
    /// Receives a message. The system is asked for the end only if it `may_have_ended`.
    pub(crate) fn try_receive(
        &self,
        buf: &mut [u8],
        flags: c_int,
        may_have_ended: impl FnOnce() -> bool,
    ) -> io::Result<Attempt<usize>> {
        self.receive_to_the_end(|| sys::recv(self.fd(), buf, flags), || Ok(0), may_have_ended)
    }

    /// Receives a message and the address of its sender by `call`.
    pub(crate) fn try_receive_by(
        &self,
        mut call: impl FnMut() -> io::Result<(usize, SockAddr)>,
        may_have_ended: impl FnOnce() -> bool,
    ) -> io::Result<Attempt<(usize, S::Address)>> {
        let with_address = |(len, from)| Ok((len, S::sender(self.fd(), &from)?));
        let end = || with_address((0, SockAddr::unix("")?));
        self.receive_to_the_end(|| call().and_then(with_address), end, may_have_ended)
    }

    /// Sends a message to the connected peer.
    pub(crate) fn try_send(&self, buf: &[u8]) -> io::Result<Attempt<usize>> {
        sys::send(self.fd(), buf).map(Attempt::Done)
    }

    /// Sends a message to an address by `call`. None: its owner's queue is full, of which this socket hears nothing.
    pub(crate) fn try_send_by(
        &self,
        call: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<Attempt<Option<usize>>> {
        match call() {
            Err(error) if is_would_block(&error) && S::is_full_elsewhere(self.fd())? => {
                Ok(Attempt::Done(None))
            }
            outcome => outcome.map(|sent| Attempt::Done(Some(sent))),
        }
    }

    /// Sends a message to an address, without waiting.
    pub(crate) fn send_to_now(&self, buf: &[u8], receiver: &SockAddr) -> io::Result<usize> {
        sys::send_to(self.fd(), buf, receiver)
            .or_else(|error| simulated::send_to(self.fd(), buf, receiver, error))
    }

    /// Receives, or gives what stands for the end.
    fn receive_to_the_end<T>(
        &self,
        mut call: impl FnMut() -> io::Result<T>,
        end: impl FnOnce() -> io::Result<T>,
        may_have_ended: impl FnOnce() -> bool,
    ) -> io::Result<Attempt<T>> {
        let mut outcome = call();
        if is_empty(&outcome) && may_have_ended() && sys::is_shut_down(self.fd())? {
            // What came before the end goes before it.
            outcome = call();
            if is_empty(&outcome) {
                outcome = end();
            }
        }
        outcome.map(Attempt::Done)
    }
}

/// Returns true if nothing is there.
fn is_empty<T>(outcome: &io::Result<T>) -> bool {
    outcome.as_ref().is_err_and(is_would_block)
}

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
