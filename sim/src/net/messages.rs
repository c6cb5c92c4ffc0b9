//! The messages of a simulated network.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use fibra_io::network::Transport;
use rustix::io::Errno;

use super::descriptors;
use super::links::{Content, Packet};
use super::state::{Messages, Role, Socket, State};

/// The most bytes that one message carries over UDP.
const MOST_BYTES: usize = 65_507;

/// How many messages wait for a program that does not receive them. Later ones are lost.
const MOST_WAITING: usize = 1024;

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
            self.send(Packet { from, to, hosts: (host, there), source: id, target: None, place: 0, content });
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
            let inbox = match self.socket(id) {
                Some(Socket { role: Role::Messages(messages), .. }) => std::mem::take(&mut messages.inbox),
                _ => VecDeque::new(),
            };
            let left = self.give_messages(id, inbox)?;
            match self.socket(id) {
                Some(Socket { role: Role::Messages(messages), .. }) if !left.is_empty() => {
                    messages.inbox = left
                }
                _ => _ = self.waiting.remove(&id),
            }
        }
        Ok(())
    }

    /// Gives a program messages. Returns those that there is no room for.
    fn give_messages(
        &mut self,
        id: u64,
        mut inbox: VecDeque<(SocketAddr, Vec<u8>)>,
    ) -> io::Result<VecDeque<(SocketAddr, Vec<u8>)>> {
        while let Some((from, message)) = inbox.pop_front() {
            let Some(Socket { role: Role::Messages(Messages { users, peer, .. }), host, .. }) =
                self.sockets.get(&id)
            else {
                break;
            };
            // The system tells the receiver the name of the socket that the message comes from: that of the sender. A
            // connected socket takes messages only from its own, and knows its peer.
            let (users, host) = (users.clone(), *host);
            let sender = match peer {
                Some(_) => Some(id),
                None => self
                    .host_at(host, from.ip())
                    .and_then(|sender| self.bound_at(Transport::Messages, sender, from)),
            };
            let ours = sender.and_then(|sender| self.sockets.get(&sender)?.ours.as_ref());
            // The sender is gone: so is its message.
            let Some(ours) = ours else { continue };
            match descriptors::give_message(ours, &users, &message) {
                Ok(true) => {}
                Ok(false) => {
                    inbox.push_front((from, message));
                    return Ok(inbox);
                }
                Err(_) => {
                    self.remove(id);
                    break;
                }
            }
        }
        Ok(VecDeque::new())
    }
}
