//! What is asked, and what fibra means to reach.

use crate::compare::question::{self, Bound, Target};

/// How many children each task of the tree has, but for its leaves.
pub(super) const BRANCHES: u64 = 10;

/// How many items the loop goes over.
pub(super) const ITEMS: usize = 10_000_000;

/// One kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Question {
    /// A deadline around something that does not wait: the whole is its cost.
    Timeout,
    /// Two tasks that borrow from the task that waits for them.
    Scope,
    /// A tree of tasks with so many leaves, each of which adds up what its children return. The second round and all after
    /// it: stacks are warm.
    Skynet(u64),
    /// A loop over small items, spread over the workers.
    Loop,
}

const ON_ONE: [Question; 4] =
    [Question::Timeout, Question::Scope, Question::Skynet(10_000), Question::Skynet(100_000)];
const ON_MORE: [Question; 4] =
    [Question::Scope, Question::Skynet(10_000), Question::Skynet(100_000), Question::Loop];

impl question::Question for Question {
    fn all(workers: usize) -> Vec<Self> {
        match workers {
            1 => ON_ONE.to_vec(),
            _ => ON_MORE.to_vec(),
        }
    }

    fn subject(self) -> &'static str {
        "structured"
    }

    fn name(self) -> String {
        match self {
            Question::Timeout => "timeout around what does not wait".to_owned(),
            Question::Scope => "scope of two children".to_owned(),
            Question::Skynet(leaves) => format!("skynet of {leaves} leaves"),
            Question::Loop => "loop over 10 million small items".to_owned(),
        }
    }

    fn targets(self, workers: usize) -> Vec<Target> {
        let own = match self {
            Question::Timeout => Target::time(60.0, Bound::Itself),
            Question::Scope => Target::time(1.3, Bound::Named("two spawns")),
            Question::Skynet(_) => return vec![Target::time(1.0, Bound::Best)],
            Question::Loop => Target::time(1.3, Bound::Named("rayon")),
        };
        // Whatever else is meant: with more workers no rival is to be ahead.
        let best = (workers > 1).then(|| Target::time(1.0, Bound::Best));
        [Some(own), best].into_iter().flatten().collect()
    }
}
