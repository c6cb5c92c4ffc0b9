//! What is asked, and what fibra means to reach.

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

/// What fibra means to reach: at most `ratio` times the best of the rivals whose names begin with `of`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Target {
    pub(super) ratio: f64,
    pub(super) of: &'static str,
}

impl Question {
    pub(super) const ALL: [Question; 5] = [
        Question::YieldTwo,
        Question::YieldThousand,
        Question::SpawnOne,
        Question::SpawnMany,
        Question::Park,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Question::YieldTwo => "yield, 2 tasks",
            Question::YieldThousand => "yield, 1000 tasks",
            Question::SpawnOne => "spawn and join one",
            Question::SpawnMany => "spawn 10000, join all",
            Question::Park => "park and unpark, there and back",
        }
    }

    /// The name of its group of measurements.
    pub(super) fn group(self, workers: usize) -> String {
        let s = if workers == 1 { "" } else { "s" };
        format!("{workers} worker{s}/{}", self.name())
    }

    pub(super) fn target(self, workers: usize) -> Target {
        if workers > 1 {
            return Target { ratio: 1.0, of: "" };
        }
        match self {
            Question::YieldTwo => Target { ratio: 0.5, of: "may" },
            Question::YieldThousand => Target { ratio: 0.4, of: "may" },
            Question::SpawnOne => Target { ratio: 0.6, of: "tokio current" },
            Question::SpawnMany => Target { ratio: 1.0, of: "tokio" },
            Question::Park => Target { ratio: 0.6, of: "tokio" },
        }
    }
}
