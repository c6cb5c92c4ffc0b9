//! One end of a connection.
//!
//! ```text
//!              connect                Accepted                the program has closed it
//!   Fresh ───────────────▶ CONNECTING ────────▶ CONNECTED ───────────────────────────▶ gone
//!                              │  Refused, or no answer        │ Reset
//!                              ▼                               ▼
//!                            FAILED                     without a descriptor
//! ```

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use rustix::io::Errno;

use super::descriptors::Event;
use super::links::Content;
use crate::host_id::HostId;

/// When a packet arrives, and its number.
pub(super) type Arrival = (Instant, u64);

/// What the network knows of one end of a connection.
pub(super) struct Stream {
    pub(super) phase: Phase,
    pub(super) remote: SocketAddr,
    pub(super) remote_host: HostId,
    /// The other end.
    pub(super) peer: Option<u64>,
    /// The program writes no more.
    pub(super) ended: bool,
    /// The program has closed its end.
    pub(super) closed: bool,
    /// How many packets were sent in order.
    pub(super) sent: u64,
    pub(super) has_sent_end: bool,
    /// The bytes that were sent and that the other program's socket has not taken.
    pub(super) under_way: usize,
    /// Bytes wait for the window to open.
    pub(super) is_stalled: bool,
    /// The place of the next packet.
    pub(super) expected: u64,
    /// Packets that have overtaken others.
    pub(super) early: BTreeMap<u64, Content>,
    /// What the program's socket has no room for.
    pub(super) inbox: VecDeque<Vec<u8>>,
    /// The end comes after the inbox.
    pub(super) end_is_near: bool,
}

pub(super) enum Phase {
    /// The packet that ends it without an answer.
    Connecting(Arrival),
    Connected,
    /// It could not be connected, for this reason; the program asks once.
    Failed(Option<Errno>),
}

impl Stream {
    pub(super) fn new(phase: Phase, remote: SocketAddr, remote_host: HostId, peer: Option<u64>) -> Self {
        Stream {
            phase,
            remote,
            remote_host,
            peer,
            ended: false,
            closed: false,
            sent: 0,
            has_sent_end: false,
            under_way: 0,
            is_stalled: false,
            expected: 0,
            early: BTreeMap::new(),
            inbox: VecDeque::new(),
            end_is_near: false,
        }
    }

    pub(super) fn heard(&mut self, event: Event) {
        self.ended |= event.ended;
        self.closed |= event.closed;
    }

    /// Returns the address of the other end.
    pub(super) fn remote(&mut self) -> io::Result<SocketAddr> {
        match &mut self.phase {
            Phase::Connected => Ok(self.remote),
            Phase::Connecting(_) => Err(Errno::NOTCONN.into()),
            Phase::Failed(reason) => Err(reason.take().unwrap_or(Errno::NOTCONN).into()),
        }
    }
}
