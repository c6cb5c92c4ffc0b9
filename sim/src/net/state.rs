//! The network of one run: hosts, sockets, and packets on their way.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fibra::time;
use fibra_io::network::{SocketOption, Transport};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::descriptors::{self, Event, Pair, Poll};
use super::links::{Content, Link, Links, Packet, Passage};
use super::stream::{Arrival, Stream};
use crate::host_id::HostId;

/// How many connections that have ended still have addresses.
const MOST_FINISHED: usize = 1024;

/// The ports that the network chooses from.
const CHOSEN_PORTS: std::ops::Range<u16> = 49152..65535;

pub(super) struct State {
    pub(super) poll: Poll,
    pub(super) links: Links,
    pub(super) hosts: Vec<Machine>,
    pub(super) sockets: HashMap<u64, Socket>,
    next_socket: u64,
    /// The sockets by their inodes.
    by_inode: HashMap<u64, u64>,
    pub(super) bound: HashMap<(Transport, HostId, u16), u64>,
    /// The addresses behind the names of the sockets that messages come from.
    pub(super) names: HashMap<Vec<u8>, SocketAddr>,
    /// Packets on their way, by the time of their arrival.
    wire: BTreeMap<Arrival, Packet>,
    next_packet: u64,
    /// Packets that wait for a link, in their order.
    held: Vec<Packet>,
    /// The connections that have ended, in that order.
    pub(super) finished: VecDeque<u64>,
    /// The sockets whose messages wait for their programs.
    pub(super) waiting: BTreeSet<u64>,
    /// How many sockets of messages there may be before those are sought that the programs have closed.
    pub(super) most_messages: usize,
    /// Room for what a system call reads.
    pub(super) buf: Vec<u8>,
}

/// What the network knows of a host.
pub(super) struct Machine {
    pub(super) name: String,
    /// Of IPv4, and of IPv6.
    pub(super) ips: [IpAddr; 2],
    /// False between a crash and the restart.
    pub(super) is_up: bool,
    pub(super) process: Process,
    next_port: u16,
}

/// A socket, from its making until the program has closed it.
pub(super) struct Socket {
    pub(super) host: HostId,
    inode: u64,
    /// The network's end. None once the connection has ended.
    pub(super) ours: Option<OwnedFd>,
    pub(super) local: Option<SocketAddr>,
    pub(super) options: BTreeMap<SocketOption, u32>,
    pub(super) role: Role,
}

pub(super) enum Role {
    /// A stream that is not connected and does not listen.
    Fresh,
    Listener {
        queue: VecDeque<(OwnedFd, SocketAddr)>,
        backlog: usize,
    },
    Stream(Stream),
    Messages(Messages),
}

/// A socket of messages.
pub(super) struct Messages {
    /// The name of the program's end.
    pub(super) users: SocketAddrUnix,
    pub(super) peer: Option<SocketAddr>,
    /// The sockets that messages to this one come from, by the addresses of the senders.
    pub(super) senders: BTreeMap<SocketAddr, OwnedFd>,
    /// What has arrived and found no room, with its sender.
    pub(super) inbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl State {
    pub(super) fn new(seed: u64) -> io::Result<Self> {
        Ok(State {
            poll: Poll::new()?,
            links: Links::new(seed),
            hosts: Vec::new(),
            sockets: HashMap::new(),
            next_socket: 1,
            by_inode: HashMap::new(),
            bound: HashMap::new(),
            names: HashMap::new(),
            wire: BTreeMap::new(),
            next_packet: 0,
            held: Vec::new(),
            finished: VecDeque::new(),
            waiting: BTreeSet::new(),
            most_messages: 64,
            buf: Vec::new(),
        })
    }

    /// Adds a host.
    pub(super) fn add_host(&mut self, name: &str) -> HostId {
        let number = self.hosts.len() as u16 + 1;
        let [high, low] = number.to_be_bytes();
        let ips = [
            IpAddr::V4(Ipv4Addr::new(10, 0, high, low)),
            IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)),
        ];
        let process = Process::new();
        let name = name.to_owned();
        self.hosts.push(Machine { name, ips, is_up: true, process, next_port: CHOSEN_PORTS.start });
        HostId(number - 1)
    }

    pub(super) fn host_named(&self, name: &str) -> Option<HostId> {
        self.hosts.iter().position(|host| host.name == name).map(|index| HostId(index as u16))
    }

    pub(super) fn host(&mut self, id: HostId) -> &mut Machine {
        &mut self.hosts[usize::from(id.0)]
    }

    /// Returns the address of a host, of the family of `like`.
    pub(super) fn ip(&self, host: HostId, like: IpAddr) -> IpAddr {
        self.hosts[usize::from(host.0)].ips[usize::from(like.is_ipv6())]
    }

    /// Returns the host that `from` reaches at an address.
    pub(super) fn host_at(&self, from: HostId, ip: IpAddr) -> Option<HostId> {
        if ip.is_loopback() || ip.is_unspecified() {
            return Some(from);
        }
        self.hosts.iter().position(|host| host.ips.contains(&ip)).map(|index| HostId(index as u16))
    }

    /// Adds a socket. Returns its number, and the program's end.
    pub(super) fn add(&mut self, host: HostId, pair: Pair, role: Role) -> io::Result<(u64, OwnedFd)> {
        let (id, inode) = (self.next_socket, descriptors::inode(&pair.users)?);
        self.poll.add(&pair.ours, id)?;
        self.next_socket += 1;
        // A socket of that inode was reset before the program closed it.
        if let Some(gone) = self.by_inode.insert(inode, id) {
            self.remove(gone);
        }
        if matches!(role, Role::Messages(_)) {
            self.forget_all_closed();
        }
        let (ours, options) = (Some(pair.ours), BTreeMap::new());
        self.sockets.insert(id, Socket { host, inode, ours, local: None, options, role });
        Ok((id, pair.users))
    }

    /// Forgets a socket, and frees its port.
    pub(super) fn remove(&mut self, id: u64) -> Option<Socket> {
        self.unbind(id);
        let socket = self.sockets.remove(&id)?;
        if self.by_inode.get(&socket.inode) == Some(&id) {
            self.by_inode.remove(&socket.inode);
        }
        Some(socket)
    }

    /// Closes the network's end of a connection, and frees its port. The program may still ask for the addresses.
    pub(super) fn close(&mut self, id: u64) {
        self.unbind(id);
        let Some(socket) = self.socket(id) else { return };
        socket.ours = None;
        self.finished.push_back(id);
        if self.finished.len() > MOST_FINISHED
            && let Some(oldest) = self.finished.pop_front()
        {
            self.remove(oldest);
        }
    }

    /// Frees the port of a socket.
    fn unbind(&mut self, id: u64) {
        let Some(Socket { local: Some(local), role, host, .. }) = self.sockets.get(&id) else { return };
        let key = (role.transport(), *host, local.port());
        if self.bound.get(&key) == Some(&id) {
            self.bound.remove(&key);
        }
    }

    /// Returns the number of the socket that a descriptor of the program is.
    pub(super) fn id_of(&self, socket: BorrowedFd<'_>) -> io::Result<u64> {
        let inode = descriptors::inode(socket)?;
        let not_ours =
            || io::Error::new(io::ErrorKind::InvalidInput, "not a socket of the simulated network");
        self.by_inode.get(&inode).copied().filter(|id| self.sockets.contains_key(id)).ok_or_else(not_ours)
    }

    /// Returns the numbers of the sockets that `is_meant` selects, in the order in which they were made.
    pub(super) fn ids_where(&self, is_meant: impl Fn(&Socket) -> bool) -> Vec<u64> {
        let mut ids: Vec<u64> =
            self.sockets.iter().filter(|(_, socket)| is_meant(socket)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn socket(&mut self, id: u64) -> Option<&mut Socket> {
        self.sockets.get_mut(&id)
    }

    /// Gives a socket an address. Port 0 leaves the choice to the network.
    pub(super) fn bind(&mut self, id: u64, address: SocketAddr) -> io::Result<()> {
        let socket = &self.sockets[&id];
        let (host, transport) = (socket.host, socket.role.transport());
        if socket.local.is_some() {
            return Err(Errno::INVAL.into());
        }
        if self.host_at(host, address.ip()) != Some(host) {
            return Err(Errno::ADDRNOTAVAIL.into());
        }
        let port = match address.port() {
            0 => self.choose_port(transport, host)?,
            port if self.is_free(transport, host, port)? => port,
            _ => return Err(Errno::ADDRINUSE.into()),
        };
        self.bound.insert((transport, host, port), id);
        let local = SocketAddr::new(address.ip(), port);
        let socket = self.sockets.get_mut(&id).expect("the socket was found before");
        socket.local = Some(local);
        Ok(())
    }

    /// Gives a socket that is about to send to `to` an address, unless it has one. Returns that.
    pub(super) fn bind_for(&mut self, id: u64, to: SocketAddr) -> io::Result<SocketAddr> {
        let host = self.sockets[&id].host;
        if self.sockets[&id].local.is_none() {
            let ip = if to.ip().is_loopback() { to.ip() } else { self.ip(host, to.ip()) };
            self.bind(id, SocketAddr::new(ip, 0))?;
        }
        let local = self.sockets[&id].local.ok_or(Errno::INVAL)?;
        let ip = match local.ip() {
            ip if !ip.is_unspecified() => ip,
            _ if to.ip().is_loopback() => to.ip(),
            ip => self.ip(host, ip),
        };
        Ok(SocketAddr::new(ip, local.port()))
    }

    fn choose_port(&mut self, transport: Transport, host: HostId) -> io::Result<u16> {
        for _ in CHOSEN_PORTS {
            let machine = self.host(host);
            let port = machine.next_port;
            machine.next_port = if port + 1 < CHOSEN_PORTS.end { port + 1 } else { CHOSEN_PORTS.start };
            if !self.bound.contains_key(&(transport, host, port)) {
                return Ok(port);
            }
        }
        Err(Errno::ADDRINUSE.into())
    }

    /// Returns true if no open socket has the port.
    fn is_free(&mut self, transport: Transport, host: HostId, port: u16) -> io::Result<bool> {
        // The program may have closed its socket just now.
        self.take_events()?;
        let Some(id) = self.bound.get(&(transport, host, port)).copied() else { return Ok(true) };
        Ok(self.forget_closed(id))
    }

    /// Sends a packet.
    pub(super) fn send(&mut self, packet: Packet) {
        let packet = Packet { is_lost: false, ..packet };
        match self.links.send(&packet) {
            Passage::In(time) => _ = self.put_on_wire(packet, time),
            Passage::Again(time) => {
                let lost = Packet { losses: packet.losses + 1, is_lost: true, ..packet };
                self.put_on_wire(lost, time);
            }
            Passage::Held => self.held.push(packet),
            Passage::Lost => {}
            // As after a long time without an acknowledgement; an attempt to connect ends by itself.
            Passage::GivenUp if packet.content == Content::Connect => {}
            Passage::GivenUp => {
                self.reset(packet.source);
                packet.target.into_iter().for_each(|id| self.reset(id));
            }
        }
    }

    pub(super) fn put_on_wire(&mut self, packet: Packet, time: Duration) -> Arrival {
        self.next_packet += 1;
        let arrival = (time::now() + time, self.next_packet);
        self.wire.insert(arrival, packet);
        arrival
    }

    pub(super) fn take_back(&mut self, arrival: Arrival) {
        self.wire.remove(&arrival);
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.wire.keys().next().map(|(at, _)| *at)
    }

    /// Sends what a link has held.
    pub(super) fn free(&mut self, link: Link) {
        let (free, held) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|packet| Link::between(packet.hosts.0, packet.hosts.1) == link);
        self.held = held;
        for packet in free {
            self.send(packet);
        }
    }

    /// Takes what the sockets have sent, and delivers what has arrived.
    pub(super) fn step(&mut self) -> io::Result<()> {
        if self.sockets.is_empty() && self.wire.is_empty() {
            return Ok(());
        }
        self.take_events()?;
        let now = time::now();
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= now) {
            let packet = entry.remove();
            match self.links.blocked(&packet) {
                Some(Passage::Held) => self.held.push(packet),
                Some(_) => {}
                None if packet.is_lost => self.send(packet),
                None => self.deliver(packet)?,
            }
        }
        self.flush_messages()
    }

    fn take_events(&mut self) -> io::Result<()> {
        loop {
            let events = self.poll.look()?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                self.heard(event)?;
            }
        }
    }

    fn heard(&mut self, event: Event) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(&event.socket) else { return Ok(()) };
        match &mut socket.role {
            Role::Stream(stream) => {
                stream.heard(event);
                self.pump(event.socket)?;
                self.flush(event.socket)
            }
            Role::Messages(_) => self.take_messages(event.socket),
            Role::Fresh | Role::Listener { .. } if event.closed => {
                // What waits in its queue is closed with it, and so reset.
                drop(self.remove(event.socket));
                Ok(())
            }
            Role::Fresh | Role::Listener { .. } => Ok(()),
        }
    }

    fn deliver(&mut self, packet: Packet) -> io::Result<()> {
        match packet.content {
            Content::Message(_) => self.arrive_message(packet),
            Content::Connect => self.arrive_connect(packet),
            _ => self.arrive_at_stream(packet),
        }
    }

    /// Returns the socket that is bound to an address of a host.
    pub(super) fn bound_at(&self, transport: Transport, host: HostId, to: SocketAddr) -> Option<u64> {
        let id = *self.bound.get(&(transport, host, to.port()))?;
        let local = self.sockets.get(&id)?.local?.ip();
        // The unspecified address of IPv6 stands for both families.
        let is_any = local.is_unspecified() && (local.is_ipv6() || to.is_ipv4());
        (is_any || local == to.ip()).then_some(id)
    }

    /// Cuts a host off, as if its process was killed: its connections are reset.
    pub(super) fn crash(&mut self, host: HostId) {
        self.host(host).is_up = false;
        for id in self.ids_where(|socket| socket.host == host) {
            self.reset_peer(id);
            self.remove(id);
        }
    }

    /// Resets all connections between two hosts, at both ends.
    pub(super) fn reset_link(&mut self, link: Link) {
        let is_on_link = |socket: &Socket| match &socket.role {
            Role::Stream(stream) => Link::between(socket.host, stream.remote_host) == link,
            _ => false,
        };
        for id in self.ids_where(is_on_link) {
            self.reset(id);
        }
    }
}

/// The number of a host's present process, which no other process of any simulation has.
pub(super) struct Process(pub(super) u64);

impl Process {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only the uniqueness of the number counts.
        Process(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        fibra::signal::end_simulated(self.0);
    }
}

impl Role {
    pub(super) fn transport(&self) -> Transport {
        match self {
            Role::Messages(_) => Transport::Messages,
            _ => Transport::Stream,
        }
    }
}
