//! The messages of a simulated network.

#![forbid(unsafe_code)]

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use fibra_io::network::Transport;
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::descriptors;
use super::links::{Content, Packet};
use super::state::{Messages, Role, Socket, State};

/// The most bytes that one message carries over UDP.
const MOST_BYTES: usize = 65_507;

/// How many messages wait for a program that does not receive them. Later ones are lost.
const MOST_WAITING: usize = 1024;

/// How many senders of messages to one socket have descriptors that stand for them.
const MOST_SENDERS: usize = 64;

impl State {
    /// Connects a socket of messages.
    pub(super) fn connect_messages(
        &mut self,
        id: u64,
        socket: BorrowedFd<'_>,
        to: SocketAddr,
    ) -> io::Result<()> {
        let from = self.bind_for(id, to)?;
        let Some(Socket { role: Role::Messages(messages), ours: Some(ours), local, .. }) = self.socket(id)
        else {
            return Err(Errno::INVAL.into());
        };
        descriptors::connect(socket, &descriptors::name_of(ours)?)?;
        messages.peer = Some(to);
        *local = Some(from);
        Ok(())
    }

    /// Sends a message.
    pub(super) fn send_message(&mut self, id: u64, message: &[u8], to: SocketAddr) -> io::Result<usize> {
        if message.len() > MOST_BYTES {
            return Err(Errno::MSGSIZE.into());
        }
        let from = self.bind_for(id, to)?;
        let host = self.sockets[&id].host;
        if !self.host(host).is_up {
            return Err(Errno::NETDOWN.into());
        }
        if let Some(there) = self.host_at(host, to.ip()) {
            let content = Content::Message(message.to_vec());
            self.send(Packet::new((from, to), (host, there), id, content));
        }
        Ok(message.len())
    }

    /// Sends the messages that a program has sent to the peer of its socket.
    pub(super) fn take_messages(&mut self, id: u64) -> io::Result<()> {
        let mut buf = std::mem::take(&mut self.buf);
        while let Some(Socket { role: Role::Messages(messages), ours: Some(ours), .. }) = self.socket(id) {
            let peer = messages.peer;
            let Some(message) = descriptors::take_message(ours, &mut buf)? else { break };
            if let Some(peer) = peer {
                // A message that is too long is lost; the system has taken it.
                _ = self.send_message(id, &message, peer);
            }
        }
        self.buf = buf;
        Ok(())
    }

    pub(super) fn arrive_message(&mut self, packet: Packet) -> io::Result<()> {
        let Content::Message(message) = packet.content else { return Ok(()) };
        let found = self.bound_at(Transport::Messages, packet.hosts.1, packet.to);
        if let Some(id) = found
            && let Some(Socket { role: Role::Messages(messages), .. }) = self.socket(id)
            && messages.peer.is_none_or(|peer| peer == packet.from)
            && messages.inbox.len() < MOST_WAITING
        {
            messages.inbox.push_back((packet.from, message));
            self.waiting.insert(id);
        }
        Ok(())
    }

    /// Gives the programs the messages that have arrived for them.
    pub(super) fn flush_messages(&mut self) -> io::Result<()> {
        for id in self.waiting.clone() {
            if self.give_messages(id)? {
                self.waiting.remove(&id);
            }
        }
        Ok(())
    }

    /// Gives a program its messages. Returns false if there is no room for all.
    fn give_messages(&mut self, id: u64) -> io::Result<bool> {
        let State { sockets, names, .. } = self;
        let Some(Socket { role: Role::Messages(messages), ours: Some(ours), .. }) = sockets.get_mut(&id)
        else {
            return Ok(true);
        };
        while let Some((from, message)) = messages.inbox.pop_front() {
            // The system tells the receiver the name of the socket that the message comes from. A connected socket takes
            // messages only from its own, and knows its peer.
            let users = messages.users.clone();
            let sender = match messages.peer {
                Some(_) => ours,
                None => messages.sender(from, names)?,
            };
            match descriptors::give_message(sender, &users, &message) {
                Ok(true) => {}
                Ok(false) => {
                    messages.inbox.push_front((from, message));
                    return Ok(false);
                }
                Err(_) => {
                    self.remove(id);
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }

    /// Forgets a socket of messages that its program has closed, and returns true if it has.
    pub(super) fn forget_closed(&mut self, id: u64) -> bool {
        let closed = match self.sockets.get(&id) {
            Some(Socket { role: Role::Messages(messages), ours: Some(ours), .. }) => {
                descriptors::connect(ours, &messages.users).is_err()
            }
            _ => false,
        };
        if closed {
            self.remove(id);
        }
        closed
    }

    /// Forgets all of them, now and then: the system does not tell of their end.
    pub(super) fn forget_all_closed(&mut self) {
        let mut ids = self.ids_where(|socket| matches!(socket.role, Role::Messages(_)));
        if ids.len() < self.most_messages {
            return;
        }
        ids.retain(|id| !self.forget_closed(*id));
        self.most_messages = (2 * ids.len()).max(64);
    }
}

impl Messages {
    /// Describes a socket whose program's end has that name.
    pub(super) fn new(users: SocketAddrUnix) -> Self {
        Messages { users, peer: None, senders: BTreeMap::new(), inbox: VecDeque::new() }
    }

    /// Returns the socket that stands for a sender of messages to this one.
    fn sender(&mut self, from: SocketAddr, names: &mut HashMap<Vec<u8>, SocketAddr>) -> io::Result<&OwnedFd> {
        if self.senders.len() == MOST_SENDERS && !self.senders.contains_key(&from) {
            self.senders.pop_first();
        }
        match self.senders.entry(from) {
            Entry::Occupied(sender) => Ok(sender.into_mut()),
            Entry::Vacant(place) => {
                let sender = descriptors::message_end()?;
                let name = descriptors::name_of(&sender)?;
                names.insert(name.abstract_name().unwrap_or_default().to_vec(), from);
                Ok(place.insert(sender))
            }
        }
    }
}
