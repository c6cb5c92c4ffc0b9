//! The questions.

use crate::compare::question::{self, Row, Size, When};

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
    /// A tree of tasks with so many leaves, each of which adds up what its children return. The second round
    /// and all after it: stacks are warm.
    Skynet(u64),
    /// A loop over small items, spread over the workers.
    Loop,
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[(
        "structured",
        &[
            (When::One, Question::Timeout, "timeout around what does not wait", Size::ANY),
            (When::Always, Question::Scope, "scope of two children", Size::ANY),
            (When::Always, Question::Skynet(10_000), "skynet of 10000 leaves", Size::ANY),
            (When::Always, Question::Skynet(100_000), "skynet of 100000 leaves", Size::ANY),
            (When::More, Question::Loop, "loop over 10 million small items", Size::ANY),
        ],
    )];
}
