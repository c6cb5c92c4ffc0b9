//! The connections of a simulated network.
//!
//! What a stream sends is numbered, and the receiver puts it in order: packets overtake each other. A stream stops to take
//! bytes from its program while [`WINDOW`] of them are on their way or wait for the receiving program.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use fibra_io::network::Transport;
use rustix::io::Errno;

use super::descriptors;
use super::links::{Content, Packet};
use super::state::{Role, Socket, State};
use super::stream::{Phase, Stream};

/// How many bytes of a stream may be under way.
const WINDOW: usize = 256 * 1024;

/// When an attempt to connect without an answer fails: the default of Linux.
const GIVE_UP: Duration = Duration::from_secs(127);

/// When an attempt to connect to an address without a host fails.
const UNREACHABLE: Duration = Duration::from_secs(3);

/// When an attempt that found no room in the queue of the listener is repeated.
const QUEUE_FULL: Duration = Duration::from_secs(1);

impl State {
    fn stream(&mut self, id: u64) -> Option<(&mut Stream, &OwnedFd)> {
        match self.sockets.get_mut(&id)? {
            Socket { role: Role::Stream(stream), ours: Some(ours), .. } => Some((stream, ours)),
            _ => None,
        }
    }

    /// Makes a socket listen.
    pub(super) fn listen(&mut self, id: u64, backlog: usize) -> io::Result<()> {
        let socket = self.socket(id).ok_or(Errno::BADF)?;
        if !matches!(socket.role, Role::Fresh) {
            return Err(Errno::INVAL.into());
        }
        socket.role = Role::Listener { queue: VecDeque::new(), backlog: backlog.max(1) };
        if socket.local.is_none() {
            let any = SocketAddr::from(([0, 0, 0, 0], 0));
            self.bind(id, any)?;
        }
        Ok(())
    }

    /// Starts to connect a stream.
    pub(super) fn connect(&mut self, id: u64, to: SocketAddr) -> io::Result<()> {
        let socket = self.socket(id).ok_or(Errno::BADF)?;
        let host = socket.host;
        match &socket.role {
            Role::Fresh => {}
            Role::Stream(Stream { phase: Phase::Connecting(_), .. }) => return Err(Errno::ALREADY.into()),
            Role::Stream(_) => return Err(Errno::ISCONN.into()),
            _ => return Err(Errno::INVAL.into()),
        }
        if !self.host(host).is_up {
            return Err(Errno::NETDOWN.into());
        }
        let from = self.bind_for(id, to)?;
        let there = self.host_at(host, to.ip());
        let hosts = (host, there.unwrap_or(host));
        let (reason, time) = match there {
            Some(_) => (Errno::TIMEDOUT, GIVE_UP),
            None => (Errno::HOSTUNREACH, UNREACHABLE),
        };
        let content = Content::Refused { errno: reason.raw_os_error() };
        let end = Packet { target: Some(id), ..Packet::new((to, from), (host, host), id, content) };
        let end = self.put_on_wire(end, time);
        let socket = self.socket(id).ok_or(Errno::BADF)?;
        socket.local = Some(from);
        socket.role = Role::Stream(Stream::new(Phase::Connecting(end), to, hosts.1, None));
        if there.is_some() {
            let content = Content::Connect;
            self.send(Packet::new((from, to), hosts, id, content));
        }
        Err(Errno::INPROGRESS.into())
    }

    /// Accepts a connection from a listener's queue.
    pub(super) fn accept(&mut self, id: u64, listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, SocketAddr)> {
        let Some(Socket { role: Role::Listener { queue, .. }, .. }) = self.socket(id) else {
            return Err(Errno::INVAL.into());
        };
        // One byte stands for each connection in the queue.
        descriptors::take_byte(listener)?;
        queue.pop_front().ok_or_else(|| Errno::AGAIN.into())
    }

    /// Takes what a program has written, and sends it.
    pub(super) fn pump(&mut self, id: u64) -> io::Result<()> {
        let mut buf = std::mem::take(&mut self.buf);
        let pumped = self.pump_with(id, &mut buf);
        self.buf = buf;
        pumped
    }

    fn pump_with(&mut self, id: u64, buf: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let Some((stream, ours)) = self.stream(id) else { return Ok(()) };
            if stream.peer.is_none() {
                // A connection that is given up leaves nothing behind.
                if stream.closed {
                    self.forget(id);
                }
                return Ok(());
            }
            stream.is_stalled = stream.under_way >= WINDOW;
            if stream.is_stalled {
                return Ok(());
            }
            let bytes = descriptors::take(ours, buf)?;
            if bytes.is_empty() {
                break;
            }
            stream.under_way += bytes.len();
            self.send_from(id, Content::Bytes(bytes));
        }
        self.send_end(id)
    }

    /// Sends the end of a stream whose program has ended it.
    fn send_end(&mut self, id: u64) -> io::Result<()> {
        let Some((stream, ours)) = self.stream(id) else { return Ok(()) };
        let (ended, closed) = (stream.ended && !stream.has_sent_end, stream.closed);
        let is_unread = !stream.inbox.is_empty();
        let was_reset = closed && (descriptors::was_reset(ours)? || is_unread);
        stream.has_sent_end |= ended;
        if was_reset {
            self.send_from(id, Content::Reset);
        } else if ended {
            self.send_from(id, Content::End);
        }
        if closed && !was_reset {
            // The system says the same where the program has ended both directions, and may read on. Nothing is unread then,
            // so that its end is not reset.
            let Some((_, ours)) = self.stream(id) else { return Ok(()) };
            descriptors::take_byte(ours)?;
        }
        if closed {
            self.close(id);
        }
        Ok(())
    }

    fn forget(&mut self, id: u64) {
        if let Some(Socket { role: Role::Stream(Stream { phase: Phase::Connecting(end), .. }), .. }) =
            self.remove(id)
        {
            self.take_back(end);
        }
    }

    /// Sends something to the other end of a stream.
    fn send_from(&mut self, id: u64, content: Content) {
        let Some(Socket { role: Role::Stream(stream), host, local: Some(local), .. }) =
            self.sockets.get_mut(&id)
        else {
            return;
        };
        let place = stream.sent;
        stream.sent += u64::from(content != Content::Reset);
        let hosts = (*host, stream.remote_host);
        let packet =
            Packet { target: stream.peer, place, ..Packet::new((*local, stream.remote), hosts, id, content) };
        self.send(packet);
    }

    /// Gives a program what has arrived for it.
    pub(super) fn flush(&mut self, id: u64) -> io::Result<()> {
        let mut given = 0;
        let Some((stream, ours)) = self.stream(id) else { return Ok(()) };
        let peer = stream.peer;
        while let Some(bytes) = stream.inbox.front_mut() {
            match descriptors::give(ours, bytes) {
                Ok(n) => {
                    given += n;
                    bytes.drain(..n);
                    if !bytes.is_empty() {
                        break;
                    }
                    stream.inbox.pop_front();
                }
                Err(_) if descriptors::is_closed(ours)? => {
                    self.reset_peer(id);
                    return Ok(());
                }
                // The program wants to read no more.
                Err(_) => given += stream.inbox.drain(..).map(|bytes| bytes.len()).sum::<usize>(),
            }
        }
        if stream.inbox.is_empty() && stream.end_is_near {
            stream.end_is_near = false;
            descriptors::end(ours);
        }
        let Some(peer) = peer.filter(|_| given > 0) else { return Ok(()) };
        let Some((sender, _)) = self.stream(peer) else { return Ok(()) };
        sender.under_way -= given;
        if sender.is_stalled { self.pump(peer) } else { Ok(()) }
    }

    /// A connection is asked for.
    pub(super) fn arrive_connect(&mut self, packet: Packet) -> io::Result<()> {
        let Packet { from, to, hosts, source, .. } = packet;
        let found = self.bound_at(Transport::Stream, hosts.1, to);
        let Some(listener) = found.filter(|id| matches!(self.sockets[id].role, Role::Listener { .. })) else {
            let content = Content::Refused { errno: Errno::CONNREFUSED.raw_os_error() };
            self.answer(&packet, content);
            return Ok(());
        };
        let has_room = match &self.sockets[&listener].role {
            Role::Listener { queue, backlog } => queue.len() < *backlog,
            _ => false,
        };
        let role = Role::Stream(Stream::new(Phase::Connected, from, hosts.0, Some(source)));
        // No descriptor may be left.
        let made = descriptors::stream(1).ok().filter(|_| has_room);
        let Some((id, users)) = made.and_then(|pair| self.add(hosts.1, pair, role).ok()) else {
            self.put_on_wire(packet, QUEUE_FULL);
            return Ok(());
        };
        if let Some(socket) = self.socket(id) {
            socket.local = Some(to);
        }
        if let Some(Socket { role: Role::Listener { queue, .. }, ours: Some(ours), .. }) =
            self.socket(listener)
        {
            match descriptors::give(ours, &[0])? {
                0 => {
                    // The queue of the system is full. What is closed here was never told of.
                    self.remove(id);
                    self.put_on_wire(packet, QUEUE_FULL);
                    return Ok(());
                }
                _ => queue.push_back((users, from)),
            }
        }
        self.send_from(id, Content::Accepted);
        Ok(())
    }

    /// Sends something back to the sender of a packet.
    fn answer(&mut self, packet: &Packet, content: Content) {
        let (source, target) = (packet.target.unwrap_or(0), Some(packet.source));
        let hosts = (packet.hosts.1, packet.hosts.0);
        self.send(Packet { target, ..Packet::new((packet.to, packet.from), hosts, source, content) });
    }

    /// Something has come for one end of a connection.
    pub(super) fn arrive_at_stream(&mut self, packet: Packet) -> io::Result<()> {
        // One that has failed to connect is gone for the other end.
        let is_there = |(stream, _): (&mut Stream, _)| !matches!(stream.phase, Phase::Failed(_));
        let Some(id) = packet.target.filter(|id| self.stream(*id).is_some_and(is_there)) else {
            if !matches!(packet.content, Content::Reset | Content::Refused { .. }) {
                self.answer(&packet, Content::Reset);
            }
            return Ok(());
        };
        match packet.content {
            Content::Reset => self.reset(id),
            Content::Refused { errno } => self.fail(id, Errno::from_raw_os_error(errno))?,
            content => {
                let Some((stream, _)) = self.stream(id) else { return Ok(()) };
                stream.early.insert(packet.place, content);
                while let Some((stream, _)) = self.stream(id)
                    && let Some(content) = stream.early.remove(&stream.expected)
                {
                    stream.expected += 1;
                    match content {
                        Content::Accepted => self.establish(id, packet.source)?,
                        Content::Bytes(bytes) => stream.inbox.push_back(bytes),
                        _ => stream.end_is_near = true,
                    }
                }
                self.flush(id)?;
            }
        }
        Ok(())
    }

    fn establish(&mut self, id: u64, peer: u64) -> io::Result<()> {
        let Some((stream, ours)) = self.stream(id) else { return Ok(()) };
        stream.peer = Some(peer);
        descriptors::take_byte(ours)?;
        if let Phase::Connecting(end) = std::mem::replace(&mut stream.phase, Phase::Connected) {
            self.take_back(end);
        }
        // The program may have closed it by now.
        self.pump(id)
    }

    fn fail(&mut self, id: u64, reason: Errno) -> io::Result<()> {
        let Some((stream, ours)) = self.stream(id) else { return Ok(()) };
        let Phase::Connecting(end) = stream.phase else { return Ok(()) };
        stream.phase = Phase::Failed(Some(reason));
        descriptors::take_byte(ours)?;
        self.take_back(end);
        Ok(())
    }

    /// Resets one end of a connection: its program gets an error.
    pub(super) fn reset(&mut self, id: u64) {
        if let Some(Socket { role: Role::Stream(stream), .. }) = self.sockets.get(&id)
            && let Phase::Connecting(_) = stream.phase
        {
            // It cannot fail: the descriptor is open, and has the byte that it was made with.
            _ = self.fail(id, Errno::CONNREFUSED);
        } else {
            // A byte is unread, so the program's end is reset.
            self.close(id);
        }
    }

    /// Tells the other end of a connection that this one is gone, and forgets it.
    pub(super) fn reset_peer(&mut self, id: u64) {
        if self.stream(id).is_some_and(|(stream, _)| stream.peer.is_some()) {
            self.send_from(id, Content::Reset);
        }
        self.forget(id);
    }
}
