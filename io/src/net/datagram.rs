//! The transfers of sockets whose messages keep their boundaries.
//!
//! A message that fills a part of the buffer says nothing of the next one, so the system is always asked.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use libc::c_int;
use socket2::SockAddr;

use super::socket::Socket;
use crate::op::Attempt;
use crate::sys;

impl<S: AsFd> Socket<S> {
    pub(crate) fn receive_message(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.receive_whole(buf, 0)
    }

    /// Receives a message, and the address of its sender. `flags`: `MSG_PEEK`, or none.
    pub(crate) fn receive_from(&self, buf: &mut [u8], flags: c_int) -> io::Result<(usize, SockAddr)> {
        self.receive(|| sys::recv_from(self.fd(), buf, flags).map(Attempt::Done))
    }

    pub(crate) fn send_message(&self, buf: &[u8]) -> io::Result<usize> {
        self.dispatch(|| sys::send(self.fd(), buf).map(Attempt::Done))
    }

    /// Sends to an address; if the only thing that may lack is room in this socket.
    pub(crate) fn send_message_to(&self, buf: &[u8], address: &SockAddr) -> io::Result<usize> {
        self.dispatch(|| sys::send_to(self.fd(), buf, address).map(Attempt::Done))
    }
}
