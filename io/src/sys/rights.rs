//! System calls that send descriptors along with bytes.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use socket2::SockAddr;

use super::NO_SIGNAL;
use super::datagram::{from_rustix, to_rustix};

/// The most descriptors that one message carries (`SCM_MAX_FD` of Linux).
pub(crate) const MAX_FDS: usize = 253;

/// Room for as many descriptors as one message carries.
const ROOM: usize = cmsg_space!(ScmRights(MAX_FDS));

/// New descriptors are not inherited by children.
#[cfg(not(target_vendor = "apple"))]
const CLOSED_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(target_vendor = "apple")]
const CLOSED_ON_EXEC: RecvFlags = RecvFlags::empty();

/// Sends bytes with descriptors to the peer or to an address, without waiting. In a stream the descriptors go with the first
/// byte.
pub(crate) fn send_fds(
    fd: BorrowedFd<'_>,
    buf: &[u8],
    fds: &[BorrowedFd<'_>],
    receiver: Option<&SockAddr>,
) -> io::Result<usize> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut message = SendAncillaryBuffer::new(&mut room);
    if !fds.is_empty() && !message.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    let flags = SendFlags::from_bits_retain((libc::MSG_DONTWAIT | NO_SIGNAL).cast_unsigned());
    let bufs = [IoSlice::new(buf)];
    Ok(match receiver {
        Some(receiver) => net::sendmsg_addr(fd, &to_rustix(receiver), &bufs, &mut message, flags)?,
        None => net::sendmsg(fd, &bufs, &mut message, flags)?,
    })
}

/// Receives bytes and the address of their sender, and appends the descriptors that came with them, without waiting.
pub(crate) fn recv_fds(
    fd: BorrowedFd<'_>,
    buf: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<(usize, SockAddr)> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut message = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::DONTWAIT | CLOSED_ON_EXEC;
    let received = net::recvmsg(fd, &mut [IoSliceMut::new(buf)], &mut message, flags)?;
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            fds.extend(rights);
        }
    }
    #[cfg(target_vendor = "apple")]
    for fd in fds.iter() {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((received.bytes, from_rustix(received.address)?))
}
