//! What is asked, and what fibra means to reach.

use crate::comparison::{self, Target};

/// How many tasks there are where there are many.
pub(super) const THOUSAND: u64 = 1_000;

/// How many tasks are alive before the first is joined.
pub(super) const BACKLOG: u64 = 10_000;

/// One kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// A yield, where two tasks yield in turn.
    YieldTwo,
    /// A yield, where a thousand tasks do.
    YieldThousand,
    /// A task spawned and joined before the next one.
    SpawnOne,
    /// A task of ten thousand that are spawned and then joined.
    SpawnMany,
    /// There and back between two tasks that park and unpark each other.
    Park,
}

const ALL: [Question; 5] =
    [Question::YieldTwo, Question::YieldThousand, Question::SpawnOne, Question::SpawnMany, Question::Park];

impl comparison::Question for Question {
    fn all(_: usize) -> &'static [Self] {
        &ALL
    }

    fn name(self) -> &'static str {
        match self {
            Question::YieldTwo => "yield, 2 tasks",
            Question::YieldThousand => "yield, 1000 tasks",
            Question::SpawnOne => "spawn and join one",
            Question::SpawnMany => "spawn 10000, join all",
            Question::Park => "park and unpark, there and back",
        }
    }

    fn target(self, workers: usize) -> Option<Target> {
        if workers > 1 {
            return Some(Target { ratio: 1.0, of: "" });
        }
        Some(match self {
            Question::YieldTwo => Target { ratio: 0.5, of: "may" },
            Question::YieldThousand => Target { ratio: 0.4, of: "may" },
            Question::SpawnOne => Target { ratio: 0.6, of: "tokio current" },
            Question::SpawnMany => Target { ratio: 1.0, of: "tokio" },
            Question::Park => Target { ratio: 0.6, of: "tokio" },
        })
    }
}
