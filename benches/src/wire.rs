//! The protocol of orchestrator and generator: one order down, many events up, a JSON value a line.

use crate::process::Usage;
use crate::sizes::Sizes;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The line by which the orchestrator ends a run early. The end of the pipe does so too.
pub(crate) const STOP: &str = "stop";

/// The client that makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Client {
    /// A fibra task for every connection.
    Fibra,
    /// A thread of std for every connection.
    Plain,
}

/// The protocol of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Protocol {
    /// Over a stream, every byte comes back.
    Tcp,
    /// Every datagram comes back, unless it is lost.
    Udp,
    /// Each request is a GET, in HTTP/1.1.
    Http,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Http => "http",
        })
    }
}

/// The order to a generator: the first line that it reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) address: SocketAddr,
    /// The address as HTTP has it.
    pub(crate) host: String,
    pub(crate) client: Client,
    pub(crate) protocol: Protocol,
    /// The path of an HTTP request.
    pub(crate) path: String,
    pub(crate) connections: usize,
    /// Additional silent connections.
    pub(crate) idle: usize,
    /// Every request has a connection of its own.
    pub(crate) churn: bool,
    /// Bytes of the requests, and of their replies.
    pub(crate) sizes: Sizes,
    /// Requests that one connection keeps on their way.
    pub(crate) pipeline: usize,
    /// Requests per second over all connections, sent when due whatever the server does; `None`: the next one
    /// follows the reply.
    pub(crate) rate: Option<f64>,
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// How long a reply may keep silent before its connection is given up.
    pub(crate) timeout: Duration,
    /// The server's process, where it is one of ours and its usage can be read.
    pub(crate) server: Option<u32>,
}

impl Order {
    /// The bytes that one connection has on their way at the most.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.sizes.largest() * self.pipeline
    }
}

/// An event of a generator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// All connections were tried; this many stand.
    Connected(usize),
    /// A report of progress.
    Progress(Progress),
    /// The end of the run.
    Done(Box<Outcome>),
}

/// The state of a run, several times a second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Since the common start, the warm-up included.
    pub(crate) elapsed: Duration,
    pub(crate) measuring: bool,
    /// Replies per second since the last report.
    pub(crate) rate: f64,
    /// The 99th percentile since the last report, in nanoseconds.
    pub(crate) p99: u64,
    pub(crate) faults: u64,
}

/// The results of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) totals: Totals,
    /// The histogram: latency in nanoseconds, and how many replies had it.
    pub(crate) latencies: Vec<(u64, u64)>,
    /// Why the run ended before its time, if it did.
    pub(crate) ended_early: Option<String>,
}

/// The counts of the measured interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) connected: usize,
    /// Right replies that came in the interval.
    pub(crate) replies: u64,
    /// When the interval began, since 1970. A log has it on the line of the histogram.
    #[serde(default)]
    pub(crate) begun: Duration,
    /// The length of the interval.
    pub(crate) elapsed: Duration,
    /// Processor time of the generator in the interval.
    pub(crate) own_cpu: Duration,
    /// What the server used in the interval, and its memory at the end of it, where the generator has started
    /// it.
    #[serde(default)]
    pub(crate) server: Option<Usage>,
    /// Requests that were due in the interval and had no reply, because their connection waited for an
    /// earlier one to the end or was lost. Their latencies are in the histogram as far as they had grown.
    pub(crate) unsent: u64,
    /// Datagrams of the interval to which no reply came, in the histogram with the time that was waited for
    /// it.
    pub(crate) unanswered: u64,
    pub(crate) faults: Faults,
}

/// The counts of faults.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Faults {
    /// Connections that the server's side refused.
    pub refused: u64,
    /// Connections that the server cut off while replies were due.
    pub lost: u64,
    /// Replies that were not the request, byte for byte.
    pub wrong_bytes: u64,
    /// Replies whose status was not 200.
    pub wrong_status: u64,
    /// Connections that were given up because nothing came for too long.
    pub timed_out: u64,
    /// Any other error of the system.
    pub other: u64,
    /// The words of the first error of the last kind.
    pub example: Option<String>,
}

impl Faults {
    /// How many there were of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        let kinds =
            [self.refused, self.lost, self.wrong_bytes, self.wrong_status, self.timed_out, self.other];
        kinds.into_iter().fold(0, u64::saturating_add)
    }

    /// Adds the counts of another generator.
    pub(crate) fn add(&mut self, other: &Self) {
        self.refused = self.refused.saturating_add(other.refused);
        self.lost = self.lost.saturating_add(other.lost);
        self.wrong_bytes = self.wrong_bytes.saturating_add(other.wrong_bytes);
        self.wrong_status = self.wrong_status.saturating_add(other.wrong_status);
        self.timed_out = self.timed_out.saturating_add(other.timed_out);
        self.other = self.other.saturating_add(other.other);
        if self.example.is_none() {
            self.example.clone_from(&other.example);
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.refused, "refused"),
            (self.lost, "cut off by the server"),
            (self.wrong_bytes, "wrong bytes"),
            (self.wrong_status, "wrong status"),
            (self.timed_out, "timed out"),
            (self.other, "other errors"),
        ];
        let mut gap = "";
        for (count, kind) in kinds.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{gap}{kind}: {count}")?;
            gap = ", ";
        }
        if let Some(example) = &self.example {
            write!(f, " (such as: {example})")?;
        }
        Ok(())
    }
}
