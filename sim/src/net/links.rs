//! The links between hosts: how long packets take, and which of them arrive.

#![forbid(unsafe_code)]

use std::any::Any;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;
use fibra::task::forbid_suspend;

use crate::host_id::HostId;

/// How long a stream waits before it sends again what got lost. Doubled for each loss in a row.
const RESEND: Duration = Duration::from_millis(200);

/// How often a stream sends the same bytes before it gives up, after almost seven minutes.
const MOST_TRIES: u32 = 12;

/// What a packet takes within a host.
const LOCAL: Duration = Duration::from_micros(20);

/// What goes from one socket to another.
///
/// [`rule`](super::rule) sees each.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) hosts: (HostId, HostId),
    /// The socket that has sent it.
    pub(super) source: u64,
    /// The socket that it is for, if that is known.
    pub(super) target: Option<u64>,
    /// The place of what it carries in its stream.
    pub(super) place: u64,
    pub(super) content: Content,
    /// How often it was lost.
    pub(super) losses: u32,
    /// It was lost, and its stream sends it again now.
    pub(super) is_lost: bool,
}

/// What a packet carries.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Content {
    /// Asks for a connection.
    Connect,
    /// A connection was accepted.
    Accepted,
    /// A connection was refused, or cannot be.
    #[non_exhaustive]
    Refused {
        /// The number of the error.
        errno: i32,
    },
    /// Bytes of a stream.
    Bytes(Vec<u8>),
    /// The end of a stream.
    End,
    /// The connection is gone.
    Reset,
    /// A message of a UDP socket.
    Message(Vec<u8>),
}

impl Packet {
    /// Makes a packet for an address.
    pub(super) fn new(
        (from, to): (SocketAddr, SocketAddr),
        hosts: (HostId, HostId),
        source: u64,
        content: Content,
    ) -> Self {
        Packet { from, to, hosts, source, target: None, place: 0, content, losses: 0, is_lost: false }
    }

    /// Returns the address of the sender.
    pub fn from(&self) -> SocketAddr {
        self.from
    }

    /// Returns the address of the receiver.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Returns what it carries.
    pub fn content(&self) -> &Content {
        &self.content
    }

    fn is_message(&self) -> bool {
        matches!(self.content, Content::Message(_))
    }
}

/// What becomes of a packet. What [`rule`](super::rule) returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It goes the way of all packets.
    Pass,
    /// It is lost. A message is gone then. A stream sends it again after a while, and the rule is asked again.
    Drop,
    /// It takes that much longer.
    Delay(Duration),
}

type Rule = Box<dyn FnMut(&Packet) -> Verdict + Send>;

/// All links.
pub(super) struct Links {
    pub(super) random: Rng,
    pub(super) latency: RangeInclusive<Duration>,
    pub(super) loss: f64,
    pub(super) partitions: BTreeSet<Link>,
    pub(super) holds: BTreeSet<Link>,
    pub(super) rules: Vec<Rule>,
    /// Why the run is to fail: a panic of a rule.
    pub(super) failure: Option<String>,
}

/// The link between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Link(HostId, HostId);

impl Link {
    pub(super) fn between(a: HostId, b: HostId) -> Self {
        Link(a.min(b), a.max(b))
    }
}

/// What a link does with a packet.
pub(super) enum Passage {
    /// It arrives after that time.
    In(Duration),
    /// It waits until the link is free.
    Held,
    Lost,
    /// Its stream sends it again after that time.
    Again(Duration),
    /// It was lost so often that its stream gives up.
    GivenUp,
}

impl Links {
    pub(super) fn new(seed: u64) -> Self {
        Links {
            random: Rng::with_seed(seed),
            latency: Duration::from_micros(500)..=Duration::from_millis(2),
            loss: 0.0,
            partitions: BTreeSet::new(),
            holds: BTreeSet::new(),
            rules: Vec::new(),
            failure: None,
        }
    }

    /// Decides on a packet that is sent.
    pub(super) fn send(&mut self, packet: &Packet) -> Passage {
        if let Some(blocked) = self.blocked(packet) {
            return blocked;
        }
        match self.send_once(packet) {
            Some(time) => Passage::In(time),
            None if packet.is_message() => Passage::Lost,
            None if packet.losses + 1 == MOST_TRIES => Passage::GivenUp,
            None => Passage::Again(RESEND * (1 << packet.losses)),
        }
    }

    /// Returns how long a packet takes, unless it is lost.
    fn send_once(&mut self, packet: &Packet) -> Option<Duration> {
        let mut time = Duration::ZERO;
        // The network is locked.
        let _here = forbid_suspend();
        for rule in &mut self.rules {
            match catch_unwind(AssertUnwindSafe(|| rule(packet))) {
                Ok(Verdict::Pass) => {}
                Ok(Verdict::Drop) => return None,
                Ok(Verdict::Delay(more)) => time += more,
                Err(panic) => {
                    let told = || format!("a rule of the network panicked: {}", text_of(&*panic));
                    self.failure.get_or_insert_with(told);
                }
            }
        }
        match packet.hosts {
            (from, to) if from == to => Some(time + LOCAL),
            _ if self.loss > 0.0 && self.random.f64() < self.loss => None,
            _ => Some(time + self.latency()),
        }
    }

    /// Returns what becomes of a packet where nothing passes.
    pub(super) fn blocked(&self, packet: &Packet) -> Option<Passage> {
        let link = Link::between(packet.hosts.0, packet.hosts.1);
        if self.partitions.contains(&link) {
            return Some(if packet.is_message() { Passage::Lost } else { Passage::Held });
        }
        self.holds.contains(&link).then_some(Passage::Held)
    }

    fn latency(&mut self) -> Duration {
        let (least, most) = (self.latency.start().as_nanos() as u64, self.latency.end().as_nanos() as u64);
        Duration::from_nanos(self.random.u64(least..=most))
    }
}

/// Stands for the message of a panic that has none.
pub(crate) const NO_MESSAGE: &str = "no message";

/// Returns the message of a panic.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or(NO_MESSAGE).to_owned()
}
