//! What is asked, and what fibra means to reach.

use std::time::Duration;

use crate::comparison::{self, Target};

/// How many leaves the tree of tasks has, and how many children each other task of it.
pub(super) const LEAVES: u64 = 100_000;
pub(super) const BRANCHES: u64 = 10;

/// How many items the loop goes over.
pub(super) const ITEMS: usize = 10_000_000;

/// One kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// A deadline around something that does not wait: the whole is its cost, and to be at most 60 ns.
    Timeout,
    /// Two tasks that borrow from the one that waits for them.
    Scope,
    /// A tree of tasks, each of which adds up what its children return. The second round and all after it: stacks are warm.
    Skynet,
    /// A loop over small items, spread over the workers.
    Loop,
}

const ON_ONE: [Question; 3] = [Question::Timeout, Question::Scope, Question::Skynet];
const ON_MORE: [Question; 3] = [Question::Scope, Question::Skynet, Question::Loop];

impl comparison::Question for Question {
    fn all(workers: usize) -> &'static [Self] {
        match workers {
            1 => &ON_ONE,
            _ => &ON_MORE,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Question::Timeout => "timeout around what does not wait",
            Question::Scope => "scope of two children",
            Question::Skynet => "skynet of 100000 leaves",
            Question::Loop => "loop over 10 million small items",
        }
    }

    fn target(self, _workers: usize) -> Option<Target> {
        match self {
            Question::Timeout => None,
            Question::Scope => Some(Target { ratio: 1.3, of: "two spawns" }),
            Question::Skynet => Some(Target { ratio: 1.0, of: "tokio" }),
            Question::Loop => Some(Target { ratio: 1.3, of: "rayon" }),
        }
    }

    fn measured(self) -> Duration {
        match self {
            Question::Timeout | Question::Scope => Duration::from_secs(1),
            Question::Skynet | Question::Loop => Duration::from_secs(3),
        }
    }
}
