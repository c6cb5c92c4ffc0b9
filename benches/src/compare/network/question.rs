//! What is asked, and what fibra means to reach.

use std::time::Duration;

use crate::compare::question::{self, Bound, Measure, Size, Target};
use crate::wire::Protocol;

/// The column of the one that is written by hand.
pub(super) const EVENT_LOOP: &str = "event loop";

/// How long a sample lasts at the least.
const SAMPLE: Duration = Duration::from_millis(400);

/// So many clients ask, each again as soon as it has its answer: by TCP for 64 bytes to come back, by HTTP for a page of plain text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pub(super) protocol: Protocol,
    pub(super) connections: u32,
}

const ALL: [Question; 4] = [
    Question { protocol: Protocol::Tcp, connections: 1 },
    Question { protocol: Protocol::Tcp, connections: 64 },
    Question { protocol: Protocol::Tcp, connections: 1000 },
    Question { protocol: Protocol::Http, connections: 64 },
];

impl question::Question for Question {
    /// A server has one processor.
    fn all(workers: usize) -> Vec<Self> {
        match workers {
            1 => ALL.to_vec(),
            _ => Vec::new(),
        }
    }

    fn subject(self) -> &'static str {
        "network"
    }

    fn name(self) -> String {
        let what = if self.protocol == Protocol::Http { "HTTP" } else { "echo" };
        let s = if self.connections == 1 { "" } else { "s" };
        format!("{what}, {} connection{s}", self.connections)
    }

    fn size(self) -> Size {
        Size::Lasting(SAMPLE)
    }

    fn targets(self, _: usize) -> Vec<Target> {
        let most = |most, of| Target { measure: Measure::Cpu, who: "fibra", most, of };
        match (self.protocol, self.connections) {
            (Protocol::Http, _) => vec![most(0.98, Bound::Best)],
            (_, 1) => Vec::new(),
            _ => vec![most(1.0, Bound::Named("tokio current")), most(1.04, Bound::Named(EVENT_LOOP))],
        }
    }
}
