//! System calls that std does not offer, and what is Linux-only, with a portable fallback for each.
//!
//! What a backend owes:
//!
//! * transfers of sockets that never wait, whatever the mode of the descriptor ([`recv`], [`recv_vectored`], [`send`],
//!   [`send_vectored`], [`recv_from`], [`send_to`]), and never raise `SIGPIPE`;
//! * the same for pipes, by a flag of the call or by their mode ([`pipe`]);
//! * a wait for one descriptor, or for any of several, level-triggered, with a timeout ([`wait_for`], [`wait_any`]);
//! * a wait for less than a millisecond, or the answer that it cannot ([`wait_readable_briefly`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use libc::{c_int, c_short};
use rustix::net::{self, RecvFlags, SendFlags};

use fibra_runtime::clock;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

mod datagram;
mod direction;
pub(crate) mod file;
pub(crate) mod pipe;
pub(crate) mod process;

pub(crate) use self::direction::Direction;
pub(crate) use datagram::{is_shut_down, lacks_room_of_its_own, recv_from, send_to};

/// Where writing into a closed connection raises a signal, and cannot be told not to by the call, the socket itself
/// has to be told: the `connect` and `accept` of socket2 do.
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: c_int = libc::MSG_NOSIGNAL;
#[cfg(target_vendor = "apple")]
const NO_SIGNAL: c_int = 0;

/// Buffers that one vectored call takes: the `IOV_MAX` of Linux, macOS and the BSDs. More are left to the next call.
const MAX_BUFFERS: usize = 1024;

/// Receives what is there, without waiting. `extra` is added to the flags (`MSG_PEEK`).
///
/// On Linux rustix makes the call itself. The one of glibc is a point where POSIX threads are cancelled, which takes it 60
/// instructions, two of them locked. Who has to see these calls in a library that is loaded before glibc builds with
/// `--cfg rustix_use_libc`.
#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], extra: c_int) -> io::Result<usize> {
    let flags = RecvFlags::from_bits_retain((libc::MSG_DONTWAIT | extra).cast_unsigned());
    // Twice the same: it differs where the flags ask for the length of what was cut off.
    let (_, n) = net::recv(fd, buf, flags)?;
    Ok(n)
}

/// Receives into memory that need not be initialized, without waiting; initializes its begin.
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
pub(crate) fn recv_uninit(fd: BorrowedFd<'_>, buf: &mut [std::mem::MaybeUninit<u8>]) -> io::Result<usize> {
    SockRef::from(&fd).recv_with_flags(buf, libc::MSG_DONTWAIT)
}

/// Receives into several buffers in turn, without waiting.
pub(crate) fn recv_vectored(fd: BorrowedFd<'_>, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    // SAFETY: all zeroes is a valid `msghdr`: null pointers and lengths of zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // `IoSliceMut` is guaranteed to have the layout of `iovec`.
    message.msg_iov = bufs.as_mut_ptr().cast();
    // The type of this field differs between systems, and the largest value fits every one.
    message.msg_iovlen = bufs.len().min(MAX_BUFFERS) as _;
    // SAFETY: the descriptor is borrowed, so it is open; the vector has `msg_iovlen` entries, each of them a buffer
    // that is writable for its length, and all of them outlive the call.
    let n = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) };
    transferred(n)
}

/// Sends what there is room for, without waiting; as `recv` does.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::from_bits_retain((libc::MSG_DONTWAIT | NO_SIGNAL).cast_unsigned());
    net::send(fd, buf, flags).map_err(|errno| not_yet(errno.into()))
}

/// Sends from several buffers in turn what there is room for, without waiting.
pub(crate) fn send_vectored(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    let bufs = &bufs[..bufs.len().min(MAX_BUFFERS)];
    SockRef::from(&fd).send_vectored_with_flags(bufs, libc::MSG_DONTWAIT | NO_SIGNAL).map_err(not_yet)
}

/// What a send says that has asked for its connection (TCP Fast Open) and cannot take its bytes along is that it would have to
/// wait, as in any other words.
#[cold]
fn not_yet(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINPROGRESS) => io::ErrorKind::WouldBlock.into(),
        _ => error,
    }
}

/// Bytes that one vectored call can move.
pub(crate) fn total(lens: impl Iterator<Item = usize>) -> usize {
    lens.take(MAX_BUFFERS).fold(0, usize::saturating_add)
}

/// Returns true if such a call is to move none.
pub(crate) fn is_empty(lens: impl Iterator<Item = usize>) -> bool {
    total(lens) == 0
}

#[inline]
fn transferred(n: isize) -> io::Result<usize> {
    usize::try_from(n).map_err(|_negative| io::Error::last_os_error())
}

/// Makes a TCP socket that does not wait in `connect`, and is not inherited by children.
pub(crate) fn tcp_socket_nonblocking(domain: Domain) -> io::Result<Socket> {
    stream_socket_nonblocking(domain, Some(Protocol::TCP))
}

/// Opens a non-blocking stream socket of any family.
pub(crate) fn stream_socket_nonblocking(domain: Domain, protocol: Option<Protocol>) -> io::Result<Socket> {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_os = "openbsd"))]
    return Socket::new(domain, Type::STREAM.nonblocking(), protocol);
    #[cfg(not(any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "openbsd"
    )))]
    {
        let socket = Socket::new(domain, Type::STREAM, protocol)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

/// Reads or sets `TCP_QUICKACK`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod quickack {
    use super::{BorrowedFd, SockRef, io};

    pub(crate) fn set(fd: BorrowedFd<'_>, quickack: bool) -> io::Result<()> {
        SockRef::from(&fd).set_tcp_quickack(quickack)
    }

    pub(crate) fn get(fd: BorrowedFd<'_>) -> io::Result<bool> {
        SockRef::from(&fd).tcp_quickack()
    }
}

/// Blocks the thread until the descriptor is ready or has an error to tell: true. False once the deadline is reached.
pub(crate) fn wait_for(
    fd: BorrowedFd<'_>,
    direction: Direction,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(clock::now()));
        match poll_one(fd.as_raw_fd(), events_of(direction), left) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(0) => {}
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn events_of(direction: Direction) -> c_short {
    match direction {
        Direction::Read => libc::POLLIN,
        Direction::Write => libc::POLLOUT,
    }
}

/// Blocks the thread until one of the descriptors is ready or has an error to tell, or `timeout` has passed, or a signal
/// comes.
pub(crate) fn wait_any(
    fds: &[BorrowedFd<'_>],
    direction: Direction,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let entry =
        |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: events_of(direction), revents: 0 };
    poll(&mut fds.iter().map(entry).collect::<Vec<_>>(), timeout)
}

/// Waits until the descriptor is readable or `timeout` has passed, finer than a millisecond. False, at once, where the
/// system has no such call, or refuses it to a process that may have no descriptors; then the caller has to round.
pub(crate) fn wait_readable_briefly(fd: &impl AsRawFd, timeout: Duration) -> io::Result<bool> {
    if !cfg!(any(target_os = "linux", target_os = "android", target_os = "freebsd")) {
        return Ok(false);
    }
    match poll_one(fd.as_raw_fd(), libc::POLLIN, Some(timeout)) {
        // The number of descriptors asked about is more than the limit.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        outcome => outcome.map(|_events| true),
    }
}

/// One look at one descriptor. Gives the events, none if the time has passed.
fn poll_one(fd: RawFd, events: c_short, timeout: Option<Duration>) -> io::Result<c_short> {
    let mut entry = [libc::pollfd { fd, events, revents: 0 }];
    poll(&mut entry, timeout)?;
    Ok(entry[0].revents)
}

/// `ppoll(2)`: one look, which ends early when a signal comes (`Interrupted`).
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn poll(entries: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        // Below a thousand million, which fits every type that this field has.
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: there are as many entries as is said, writable; the timeout is null or points to a valid timespec; a null mask
    // leaves the signals as they are. All of them outlive the call.
    match unsafe {
        libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout, std::ptr::null())
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `poll(2)`: the same in whole milliseconds, rounded up.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn poll(entries: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let millis = timeout
        .map_or(-1, |timeout| c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX));
    // SAFETY: there are as many entries as is said, writable, and they outlive the call.
    match unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, millis) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
