//! The questions.

use crate::compare::question::{self, Row, Size, When};

/// How many turns each task takes at least, so that its beginning and its end do not count much.
const TURNS: u64 = 100;

/// One kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Question {
    /// To a task and back: a yield of a task that is alone.
    Switch,
    /// A yield, where so many tasks yield in turn.
    Yield(u32),
    /// A task spawned and joined before the next one.
    SpawnOne,
    /// A task of so many that are spawned and then joined, on stacks that are warm.
    SpawnMany(u32),
    /// A task that spawns the next one and ends.
    Chain,
    /// There and back between two tasks that park and unpark each other.
    Park,
}

impl Question {
    /// Returns how many tasks are alive at once.
    pub(in crate::compare) fn tasks(self) -> u64 {
        match self {
            Question::Yield(tasks) | Question::SpawnMany(tasks) => tasks.into(),
            Question::Switch | Question::SpawnOne | Question::Chain | Question::Park => 2,
        }
    }
}

const fn yields(tasks: u32) -> Size {
    Size::at_least(TURNS * tasks as u64)
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[(
        "tasks",
        &[
            (When::Always, Question::Switch, "switch, there and back", Size::ANY),
            (When::Always, Question::Yield(2), "yield, 2 tasks", yields(2)),
            (When::Always, Question::Yield(1_000), "yield, 1000 tasks", yields(1_000)),
            (When::Always, Question::Yield(10_000), "yield, 10000 tasks", yields(10_000)),
            (When::Always, Question::Yield(100_000), "yield, 100000 tasks", yields(100_000)),
            (When::Always, Question::SpawnOne, "spawn and join one", Size::ANY),
            (When::Always, Question::SpawnMany(10_000), "spawn 10000, join all", Size::at_least(10_000)),
            (When::Always, Question::SpawnMany(100_000), "spawn 100000, join all", Size::at_least(100_000)),
            (When::Always, Question::Chain, "each spawns the next", Size::ANY),
            (When::Always, Question::Park, "park and unpark, there and back", Size::ANY),
        ],
    )];
}
