//! System calls that std does not offer, and what is Linux-only, with a portable fallback for each.
//!
//! What a backend owes:
//!
//! * transfers of sockets that never wait, whatever the mode of the descriptor ([`recv`],
//!   [`recv_vectored`], [`send`], [`send_vectored`], [`recv_from`], [`send_to`]), and never raise
//!   `SIGPIPE`;
//! * transfers of pipes that never wait, by a flag of the call or by their mode ([`read_nowait`](file::read_nowait));
//! * a wait for one descriptor, or for any of several, level-triggered, with a timeout
//!   ([`wait_for`], [`wait_any`]);
//! * a wait for less than a millisecond, or the answer that it cannot ([`wait_readable_briefly`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use libc::c_int;
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::net::{self, RecvAncillaryBuffer, RecvFlags, SendFlags};

use fibra_runtime::clock;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

mod datagram;
pub(crate) mod file;
pub(crate) mod process;
mod rights;

pub(crate) use datagram::{is_shut_down, lacks_room_of_its_own, recv_from, send_to};
pub(crate) use fibra_runtime::wait::Direction;
pub(crate) use rights::{recv_fds, send_fds};

/// Where writing into a closed connection raises a signal, and cannot be told not to by the call,
/// the socket itself has to be told: the `connect` and `accept` of socket2 do.
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: c_int = libc::MSG_NOSIGNAL;
#[cfg(target_vendor = "apple")]
const NO_SIGNAL: c_int = 0;

/// Buffers that one vectored call takes: the `IOV_MAX` of Linux, macOS and the BSDs. More are left
/// to the next call.
const MAX_BUFFERS: usize = 1024;

/// Receives what is there, without waiting. `extra` is added to the flags (`MSG_PEEK`).
///
/// On Linux rustix makes the call itself. The one of glibc is a point where POSIX threads are
/// cancelled, which takes it 60 instructions, two of them locked. To intercept these calls by a
/// library that is loaded before glibc, build with `--cfg rustix_use_libc`.
#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], extra: c_int) -> io::Result<usize> {
    let flags = RecvFlags::from_bits_retain((libc::MSG_DONTWAIT | extra).cast_unsigned());
    // Twice the same: it differs where the flags ask for the length of what was cut off.
    let (_, n) = net::recv(fd, buf, flags)?;
    Ok(n)
}

/// Receives into memory that need not be initialized, without waiting; initializes its begin.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
pub(crate) fn recv_uninit(fd: BorrowedFd<'_>, buf: &mut [std::mem::MaybeUninit<u8>]) -> io::Result<usize> {
    SockRef::from(&fd).recv_with_flags(buf, libc::MSG_DONTWAIT)
}

/// Receives into several buffers in turn, without waiting.
pub(crate) fn recv_vectored(fd: BorrowedFd<'_>, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let bufs = match bufs.len() {
        0..=MAX_BUFFERS => bufs,
        _ => &mut bufs[..MAX_BUFFERS],
    };
    let received = net::recvmsg(fd, bufs, &mut RecvAncillaryBuffer::default(), RecvFlags::DONTWAIT)?;
    Ok(received.bytes)
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

/// What a send says that has asked for its connection (TCP Fast Open) and cannot take its bytes
/// along is that it would have to wait, as in any other words.
#[cold]
fn not_yet(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINPROGRESS) => io::ErrorKind::WouldBlock.into(),
        _ => error,
    }
}

/// Returns the user, the group and, where the system tells it, the process that connected a Unix socket.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn peer_cred(fd: BorrowedFd<'_>) -> io::Result<(libc::uid_t, libc::gid_t, Option<libc::pid_t>)> {
    let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
    // It is twelve bytes.
    let mut length = size_of_val(&cred) as libc::socklen_t;
    // SAFETY: the descriptor is borrowed, so it is open; the option writes at most `length` bytes into `cred`, and both
    // outlive the call.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &mut length,
        )
    };
    match done {
        // A process of another namespace has no number here.
        0 => Ok((cred.uid, cred.gid, Some(cred.pid).filter(|pid| *pid != 0))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the user and the group that connected a Unix socket.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn peer_cred(fd: BorrowedFd<'_>) -> io::Result<(libc::uid_t, libc::gid_t, Option<libc::pid_t>)> {
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: the descriptor is borrowed, so it is open; both numbers outlive the call.
    match unsafe { libc::getpeereid(fd.as_raw_fd(), &mut uid, &mut gid) } {
        0 => Ok((uid, gid, None)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes that one vectored call can move.
pub(crate) fn total(bufs: &[impl Deref<Target = [u8]>]) -> usize {
    bufs.iter().take(MAX_BUFFERS).fold(0, |sum, buf| sum.saturating_add(buf.len()))
}

/// Makes a stream socket that does not wait in `connect`, and is not inherited by children.
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

/// Fails with `WouldBlock` unless the descriptor is ready or has an error to tell.
pub(crate) fn look(fd: BorrowedFd<'_>, direction: Direction) -> io::Result<()> {
    match wait_for(fd, direction, Some(clock::now()))? {
        true => Ok(()),
        false => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// Blocks the thread until the descriptor is ready or has an error to tell. Returns false once the
/// deadline is reached.
pub(crate) fn wait_for(
    fd: BorrowedFd<'_>,
    direction: Direction,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    let deadline = deadline.map(clock::on_machine);
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(clock::machine()));
        match poll(&mut [entry(fd, direction)], left) {
            Ok(true) => return Ok(true),
            Ok(false) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Blocks the thread until one of the descriptors is ready or has an error to tell: true.
///
/// Returns false once `timeout` has passed. A signal ends the wait early, with `Interrupted`.
pub(crate) fn wait_any(
    fds: &[BorrowedFd<'_>],
    direction: Direction,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let mut entries: Vec<_> = fds.iter().map(|fd| entry(*fd, direction)).collect();
    poll(&mut entries, timeout)
}

fn entry(fd: BorrowedFd<'_>, direction: Direction) -> PollFd<'_> {
    let events = match direction {
        Direction::Read => PollFlags::IN,
        Direction::Write => PollFlags::OUT,
    };
    PollFd::from_borrowed_fd(fd, events)
}

/// Waits until the descriptor is readable or `timeout` has passed, finer than a millisecond.
/// Returns false, at once, where the system has no such call, or refuses it to a process that may
/// have no descriptors; then the caller has to round.
pub(crate) fn wait_readable_briefly(fd: &impl AsRawFd, timeout: Duration) -> io::Result<bool> {
    if !cfg!(any(target_os = "linux", target_os = "android", target_os = "freebsd")) {
        return Ok(false);
    }
    // SAFETY: the descriptor is open as long as the borrow of its owner.
    let fd = unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) };
    match poll(&mut [entry(fd, Direction::Read)], Some(timeout)) {
        // The number of descriptors asked about is more than the limit.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        outcome => outcome.map(|_is_ready| true),
    }
}

/// Waits for an event, and returns true if there is one. A signal ends the wait early, with `Interrupted`.
fn poll(entries: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
    // Beyond what the system can tell it is for ever.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    Ok(event::poll(entries, timeout.as_ref())? > 0)
}
