//! System calls that send and receive messages with addresses.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use libc::c_int;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{self, RecvFlags, SocketAddrAny};
use socket2::{SockAddr, SockAddrStorage, SockRef};

use super::NO_SIGNAL;

/// Receives one message and the address of its sender, without waiting. `extra` is added to the flags (`MSG_PEEK`).
pub(crate) fn recv_from(fd: BorrowedFd<'_>, buf: &mut [u8], extra: c_int) -> io::Result<(usize, SockAddr)> {
    let flags = RecvFlags::from_bits_retain((libc::MSG_DONTWAIT | extra).cast_unsigned());
    let (_, n, sender) = net::recvfrom(fd, buf, flags)?;
    Ok((n, from_rustix(sender)?))
}

/// Sends one message to an address, without waiting.
pub(crate) fn send_to(fd: BorrowedFd<'_>, buf: &[u8], address: &SockAddr) -> io::Result<usize> {
    SockRef::from(&fd).send_to_with_flags(buf, address, libc::MSG_DONTWAIT | NO_SIGNAL)
}

/// Converts an address for a call of rustix.
pub(super) fn to_rustix(address: &SockAddr) -> SocketAddrAny {
    // SAFETY: both types hold what `sockaddr_storage` of the system holds, of which so many bytes are initialised.
    unsafe { SocketAddrAny::read(address.as_ptr().cast(), address.len()) }
}

/// Converts an address that a call of rustix has given. None is that of a socket without a name.
pub(super) fn from_rustix(address: Option<SocketAddrAny>) -> io::Result<SockAddr> {
    let Some(address) = address else { return SockAddr::unix("") };
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: both addresses hold what `sockaddr_storage` of the system holds, of which `length` bytes are initialised.
    unsafe {
        let length = address.addr_len();
        (&raw mut storage).cast::<u8>().copy_from(address.as_ptr().cast(), length as usize);
        Ok(SockAddr::new(storage, length))
    }
}

/// Returns true if nothing more will be received: the direction was shut down.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) fn is_shut_down(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut entry = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
    super::poll(&mut entry, Some(Duration::ZERO))?;
    Ok(entry[0].revents().contains(PollFlags::RDHUP))
}

/// Where the system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) fn is_shut_down(_fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(false)
}

/// Returns true if a message that was refused lacked room in its own socket; else the receiver's queue was full.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn lacks_room_of_its_own(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut unread: c_int = 0;
    // SAFETY: the descriptor is borrowed, so it is open; the request writes one `int`, which outlives the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &mut unread) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(usize::try_from(unread).unwrap_or(0) >= SockRef::from(&fd).send_buffer_size()?),
    }
}

/// Elsewhere the receiver's queue is the sender's room.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn lacks_room_of_its_own(_fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(true)
}
