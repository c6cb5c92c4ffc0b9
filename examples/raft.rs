//! Raft: nodes agree on a log of commands, although messages get lost and nodes crash.
//!
//! Run `cargo run --example raft`. Three nodes elect a leader, a client proposes commands, and the leader
//! crashes half-way. You see the elections and what each node commits. The algorithm is that of Ongaro and
//! Ousterhout, "In Search of an Understandable Consensus Algorithm" (2014), without snapshots and changes of
//! membership. A simulation runs it through thousands of partitions and crashes: `sim/tests/raft.rs`.

use fibra::net::UdpSocket;
use fibra::sync::Mutex;
use fibra::time::{self, Duration, Instant};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

/// The time between two messages of a leader, and the least that its followers wait for one.
const HEARTBEAT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(150);
/// How long a client waits for an answer before it asks the next node.
const ANSWER: Duration = Duration::from_millis(200);

// The kinds of messages. A message is a row of numbers: its kind, the term of the sender, its number, and what follows.
const ELECT_ME: u64 = 0; // the length of the log, the term of the last entry
const VOTED: u64 = 1;
const APPEND: u64 = 2; // how many entries come before, the term of the last of them, how many are committed, entries
const APPENDED: u64 = 3; // the length of the log that is now equal to the leader's
const BEHIND: u64 = 4; // the length of the log
const PROPOSE: u64 = 5; // a command; its term and sender mean nothing
const COMMITTED: u64 = 6; // a command

/// An entry of the log: its term, and the command.
pub(crate) type Entry = (u64, u64);

/// What a node keeps over a crash.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    term: u64,
    voted_for: Option<u64>,
    log: Vec<Entry>,
}

/// A fault that this program may have, for the simulation to find.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Flaw {
    None,
    /// A node votes for any candidate, also for one that lacks entries.
    VotesForAny,
}

/// What an observer sees of a node.
pub(crate) enum Event {
    Leads { term: u64 },
    Commits { index: usize, entry: Entry },
}

enum Role {
    Follower,
    Candidate {
        votes: u64,
    },
    /// For each node, how much of its log is known to be equal.
    Leader {
        equal: Vec<usize>,
    },
}

/// One node.
pub(crate) struct Node<'a> {
    pub(crate) number: u64,
    pub(crate) nodes: &'a [SocketAddr],
    pub(crate) disk: &'a Mutex<Disk>,
    pub(crate) flaw: Flaw,
    pub(crate) observer: &'a dyn Fn(u64, Event),
}

struct Running<'a> {
    node: Node<'a>,
    socket: UdpSocket,
    /// The disk, as far as this node knows it.
    state: Disk,
    role: Role,
    committed: usize,
    /// Clients that wait until the log is committed to that length.
    clients: Vec<(usize, SocketAddr)>,
    next_act: Instant,
}

impl Node<'_> {
    /// Runs the node until it is cancelled.
    pub(crate) fn run(self) -> io::Result<()> {
        let socket = UdpSocket::bind(self.nodes[self.number as usize])?;
        let state = self.disk.lock().clone();
        let (role, clients) = (Role::Follower, Vec::new());
        let mut node =
            Running { node: self, socket, state, role, committed: 0, clients, next_act: time::now() };
        node.wait_for_leader();
        let mut buf = [0; 65536];
        loop {
            node.socket.set_read_deadline(Some(node.next_act));
            match node.socket.recv_from(&mut buf) {
                Ok((len, from)) => node.receive(&decode(&buf[..len]), from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => node.act(),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Running<'_> {
    /// Acts without a message: the leader sends what it has, the others stand for election.
    fn act(&mut self) {
        if let Role::Leader { .. } = self.role {
            self.next_act = time::now() + HEARTBEAT;
            return self.others().for_each(|node| self.append_at(node));
        }
        self.enter(self.state.term + 1);
        self.vote_for(self.node.number);
        self.role = Role::Candidate { votes: 1 << self.node.number };
        let (length, last) = self.last();
        self.others().for_each(|node| self.send(node, ELECT_ME, &[length, last]));
    }

    fn receive(&mut self, message: &[u64], from: SocketAddr) {
        let [kind, term, sender, ref rest @ ..] = *message else { return };
        if kind == PROPOSE {
            return self.propose(rest, from);
        }
        if term > self.state.term {
            self.enter(term);
        }
        if term < self.state.term {
            return;
        }
        match (kind, rest, &mut self.role) {
            (ELECT_ME, &[length, last], _) => {
                let (my_length, my_last) = self.last();
                let is_free = self.state.voted_for.is_none_or(|node| node == sender);
                let is_complete = (last, length) >= (my_last, my_length);
                if is_free && (is_complete || self.node.flaw == Flaw::VotesForAny) {
                    self.vote_for(sender);
                    self.wait_for_leader();
                    self.send(sender, VOTED, &[]);
                }
            }
            (VOTED, [], Role::Candidate { votes }) => {
                *votes |= 1 << sender;
                let count = votes.count_ones() as usize;
                if self.is_majority(count) {
                    self.lead();
                }
            }
            (APPEND, &[before, last, committed, ref entries @ ..], _) => {
                self.role = Role::Follower;
                self.wait_for_leader();
                self.append(sender, before as usize, last, committed as usize, entries);
            }
            (APPENDED, &[length], Role::Leader { equal }) => {
                equal[sender as usize] = equal[sender as usize].max(length as usize);
                self.commit_what_most_have();
            }
            (BEHIND, &[length], Role::Leader { equal }) => {
                equal[sender as usize] = equal[sender as usize].min(length as usize);
                self.append_at(sender);
            }
            _ => {}
        }
    }

    fn propose(&mut self, rest: &[u64], client: SocketAddr) {
        if let (&[command], Role::Leader { .. }) = (rest, &self.role) {
            self.state.log.push((self.state.term, command));
            self.save();
            self.clients.push((self.state.log.len(), client));
            self.next_act = time::now();
        }
    }

    /// Takes a leader's entries, if all entries before them are equal to the leader's.
    fn append(&mut self, leader: u64, before: usize, last: u64, committed: usize, entries: &[u64]) {
        let log = &mut self.state.log;
        if log.len() < before || (before > 0 && log[before - 1].0 != last) {
            let equal_at_most = log.len().min(before.saturating_sub(1)) as u64;
            return self.send(leader, BEHIND, &[equal_at_most]);
        }
        let entries: Vec<Entry> = entries.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let equal = entries.iter().zip(&log[before..]).take_while(|(new, old)| new == old).count();
        if equal < entries.len() {
            log.truncate(before + equal);
            log.extend(&entries[equal..]);
            self.save();
        }
        let length = before + entries.len();
        self.commit(committed.min(length));
        self.send(leader, APPENDED, &[length as u64]);
    }

    fn lead(&mut self) {
        // An entry of the own term, since only such entries are committed by counting.
        self.state.log.push((self.state.term, 0));
        self.save();
        self.role = Role::Leader { equal: vec![self.state.log.len() - 1; self.node.nodes.len()] };
        (self.node.observer)(self.node.number, Event::Leads { term: self.state.term });
        self.act();
    }

    /// Sends a node the entries that it may lack.
    fn append_at(&self, node: u64) {
        let Role::Leader { equal } = &self.role else { return };
        let before = equal[node as usize];
        let last = before.checked_sub(1).map_or(0, |index| self.state.log[index].0);
        let mut words = vec![before as u64, last, self.committed as u64];
        words.extend(self.state.log[before..].iter().flat_map(|(term, command)| [*term, *command]));
        self.send(node, APPEND, &words);
    }

    fn commit_what_most_have(&mut self) {
        let Role::Leader { equal } = &self.role else { return };
        let has = |length: usize| 1 + self.others().filter(|node| equal[*node as usize] >= length).count();
        let mut lengths = (self.committed + 1)..=self.state.log.len();
        let is_own = |length: &usize| self.state.log[length - 1].0 == self.state.term;
        if let Some(length) = lengths.rfind(|length| is_own(length) && self.is_majority(has(*length))) {
            self.commit(length);
        }
    }

    fn commit(&mut self, length: usize) {
        for index in self.committed..length {
            let entry = self.state.log[index];
            (self.node.observer)(self.node.number, Event::Commits { index, entry });
            for (_, client) in self.clients.extract_if(.., |(length, _)| *length == index + 1) {
                // Lost, if it fails: the client asks again.
                _ = self
                    .socket
                    .send_to(&encode(&[COMMITTED, self.state.term, self.node.number, entry.1]), client);
            }
        }
        self.committed = self.committed.max(length);
    }

    /// Begins a term, as a follower.
    fn enter(&mut self, term: u64) {
        (self.state.term, self.state.voted_for, self.role) = (term, None, Role::Follower);
        self.clients.clear();
        self.save();
        self.wait_for_leader();
    }

    fn vote_for(&mut self, node: u64) {
        self.state.voted_for = Some(node);
        self.save();
    }

    fn save(&self) {
        *self.node.disk.lock() = self.state.clone();
    }

    /// Waits for a leader before it acts: longer or shorter in each term, so that nodes do not stand at once.
    fn wait_for_leader(&mut self) {
        let mixed =
            (self.state.term * 31 + self.node.number * 17 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        self.next_act = time::now() + PATIENCE + Duration::from_millis(mixed % 150);
    }

    /// Returns the length of the log, and the term of its last entry.
    fn last(&self) -> (u64, u64) {
        (self.state.log.len() as u64, self.state.log.last().map_or(0, |entry| entry.0))
    }

    fn others(&self) -> impl Iterator<Item = u64> + use<> {
        let this = self.node.number;
        (0..self.node.nodes.len() as u64).filter(move |node| *node != this)
    }

    fn is_majority(&self, count: usize) -> bool {
        count > self.node.nodes.len() / 2
    }

    fn send(&self, node: u64, kind: u64, rest: &[u64]) {
        let words = [&[kind, self.state.term, self.node.number], rest].concat();
        // A message that cannot be sent is one that gets lost.
        _ = self.socket.send_to(&encode(&words), self.node.nodes[node as usize]);
    }
}

/// Proposes a command until a leader says that it is committed. It may be in the log several times then.
pub(crate) fn propose(nodes: &[SocketAddr], command: u64) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(ANSWER))?;
    let mut buf = [0; 64];
    for node in nodes.iter().cycle() {
        socket.send_to(&encode(&[PROPOSE, 0, 0, command]), node)?;
        match socket.recv(&mut buf) {
            Ok(len) if matches!(decode(&buf[..len])[..], [COMMITTED, _, _, done] if done == command) => break,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn encode(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn decode(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
}

fn main() -> io::Result<()> {
    fibra::run(|| {
        let free = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()));
        let nodes = free.into_iter().collect::<io::Result<Arc<[_]>>>()?;
        let leader = Arc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..nodes.len() as u64)
            .map(|number| {
                let (nodes, leader) = (Arc::clone(&nodes), Arc::clone(&leader));
                let observer = move |number, event| match event {
                    Event::Leads { term } => {
                        println!("node {number} leads in term {term}");
                        *leader.lock() = number;
                    }
                    Event::Commits { index, entry: (term, command) } => {
                        println!("node {number} commits entry {index}: command {command} of term {term}");
                    }
                };
                let disk = Mutex::default();
                fibra::spawn(move || {
                    Node { number, nodes: &nodes, disk: &disk, flaw: Flaw::None, observer: &observer }.run()
                })
            })
            .collect();
        for command in 1..=10 {
            propose(&nodes, command)?;
            if command == 5 {
                println!("node {} crashes", *leader.lock());
                tasks[*leader.lock() as usize].cancel();
            }
        }
        println!("all commands are committed");
        Ok(())
    })
}
