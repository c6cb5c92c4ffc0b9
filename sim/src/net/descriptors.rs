//! The descriptors of simulated sockets: the program has one end of a Unix socket, the network the other.
//!
//! Of each stream the network leaves the last byte that it has passed on unread in the system. So the end of the program
//! is reset, and not just at its end, when the network closes its own: that is what the system does where bytes are unread.

#![forbid(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};

/// The most bytes that are taken from a stream at once.
const CHUNK: usize = 64 * 1024;

/// The most events of one look.
const EVENTS: usize = 64;

/// Both ends of a socket.
pub(super) struct Pair {
    pub(super) ours: OwnedFd,
    pub(super) users: OwnedFd,
}

/// Makes a stream. The network has not read `unread` bytes of it yet, which the program has never sent.
pub(super) fn stream(unread: usize) -> io::Result<Pair> {
    let (ours, users) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for _ in 0..unread {
        net::send(&users, &[0], SendFlags::DONTWAIT)?;
    }
    Ok(Pair { ours, users })
}

/// Makes a socket of messages, whose ends have names.
pub(super) fn messages() -> io::Result<Pair> {
    Ok(Pair { ours: message_end()?, users: message_end()? })
}

/// Makes one end of a socket of messages.
pub(super) fn message_end() -> io::Result<OwnedFd> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // The system chooses a name.
    net::bind(&socket, &SocketAddrUnix::new_unnamed())?;
    Ok(socket)
}

/// Returns the name of a socket of messages.
pub(super) fn name_of(socket: impl AsFd) -> io::Result<SocketAddrUnix> {
    Ok(net::getsockname(socket)?.try_into()?)
}

/// Returns what identifies a socket, whatever descriptor it has.
pub(super) fn inode(socket: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(socket)?.st_ino)
}

/// Takes what the program has written. Leaves the last byte in the system.
pub(super) fn take(stream: &OwnedFd, buf: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    buf.resize(CHUNK, 0);
    let (_, seen) = match net::recv(stream, &mut buf[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Err(Errno::AGAIN) => return Ok(Vec::new()),
        outcome => outcome?,
    };
    let news = buf.get(1..seen).unwrap_or_default().to_vec();
    if !news.is_empty() {
        net::recv(stream, &mut buf[..news.len()], RecvFlags::DONTWAIT)?;
    }
    Ok(news)
}

/// Takes one byte. The program has an event for writing then.
pub(super) fn take_byte(stream: impl AsFd) -> io::Result<()> {
    net::recv(stream, &mut [0; 1], RecvFlags::DONTWAIT)?;
    Ok(())
}

/// Takes a message that the program has sent.
pub(super) fn take_message(socket: &OwnedFd, buf: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    buf.resize(CHUNK, 0);
    match net::recv(socket, &mut buf[..], RecvFlags::DONTWAIT) {
        Ok((_, len)) => Ok(Some(buf[..len].to_vec())),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives bytes to the program. Returns how many there was room for.
pub(super) fn give(stream: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    match net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Err(Errno::AGAIN) => Ok(0),
        outcome => Ok(outcome?),
    }
}

/// Gives a message to the program. Returns false if there is no room.
pub(super) fn give_message(from: &OwnedFd, to: &SocketAddrUnix, message: &[u8]) -> io::Result<bool> {
    match net::sendto(from, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, to) {
        Err(Errno::AGAIN) => Ok(false),
        outcome => outcome.map(|_| true).map_err(io::Error::from),
    }
}

/// Tells the program that nothing more comes.
pub(super) fn end(stream: &OwnedFd) {
    // It fails if the program has closed its end.
    _ = net::shutdown(stream, Shutdown::Write);
}

/// Connects a socket of messages: its `send` then goes to that one, and only from there messages come.
pub(super) fn connect(socket: impl AsFd, to: &SocketAddrUnix) -> io::Result<()> {
    Ok(net::connect(socket, to)?)
}

/// Returns true if the program has closed its end without having read all.
pub(super) fn was_reset(stream: &OwnedFd) -> io::Result<bool> {
    Ok(net::sockopt::socket_error(stream)?.is_err())
}

/// Returns true if the program has closed its end, or ended both directions.
pub(super) fn is_closed(stream: &OwnedFd) -> io::Result<bool> {
    let mut entry = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut entry, Some(&Timespec::default()))?;
    Ok(entry[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// What has happened to a descriptor.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) socket: u64,
    /// The program writes no more.
    pub(super) ended: bool,
    /// The program has closed its end.
    pub(super) closed: bool,
}

/// Hears of the network's ends.
pub(super) struct Poll(OwnedFd);

impl Poll {
    pub(super) fn new() -> io::Result<Poll> {
        Ok(Poll(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    pub(super) fn add(&self, descriptor: &OwnedFd, socket: u64) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, descriptor, EventData::new_u64(socket), interest)?)
    }

    /// Returns what has happened, in the order in which it has.
    pub(super) fn look(&self) -> io::Result<Vec<Event>> {
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        let (events, _) = epoll::wait(&self.0, &mut events, Some(&Timespec::default()))?;
        let event = |event: &epoll::Event| {
            let flags = event.flags;
            let closed = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            Event { socket: event.data.u64(), ended: closed || flags.contains(EventFlags::RDHUP), closed }
        };
        Ok(events.iter().map(event).collect())
    }
}
