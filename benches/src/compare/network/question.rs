//! What is asked, and what fibra means to reach.

use std::time::Duration;

use crate::compare::question::{self, Bound, Measure, Size, Target};
use crate::wire::Protocol;

/// The column of the server that is written by hand.
pub(super) const EVENT_LOOP: &str = "event loop";

/// How long a sample lasts at the least.
const SAMPLE: Duration = Duration::from_millis(400);

/// So many clients ask, each again as soon as it has its answer: by TCP for 64 bytes to come back, by HTTP for a page of plain text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) struct Question {
    pub(super) protocol: Protocol,
    pub(super) connections: u32,
}

/// More connections than a thread each is started for.
pub(super) const MANY: u32 = 8000;

const ALL: [Question; 5] = [
    Question { protocol: Protocol::Tcp, connections: 1 },
    Question { protocol: Protocol::Tcp, connections: 64 },
    Question { protocol: Protocol::Tcp, connections: 1000 },
    Question { protocol: Protocol::Tcp, connections: MANY },
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
        let most = |measure, most, of| Target { measure, who: "fibra", most, of };
        if self.protocol == Protocol::Http {
            return vec![most(Measure::Cpu, 0.98, Bound::Best)];
        }
        let by_hand = Bound::Named(EVENT_LOOP);
        let mut targets = vec![
            most(Measure::Cpu, 1.0, Bound::Named("tokio current")),
            most(Measure::Cpu, self.most_to_by_hand(), by_hand),
        ];
        if self.connections == 1 {
            targets.push(most(Measure::Latency, 0.5, by_hand));
        }
        targets
    }
}

impl Question {
    /// How much processor time an echo may take in proportion to the event loop's.
    fn most_to_by_hand(self) -> f64 {
        match self.connections {
            1 => 1.0,
            MANY => 1.06,
            _ => 1.04,
        }
    }
}
