//! What is asked, and what fibra means to reach.

use std::time::Duration;

use crate::compare::question::{self, Bound, Size, Target};

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

const ALL: [Question; 10] = [
    Question::Switch,
    Question::Yield(2),
    Question::Yield(1_000),
    Question::Yield(10_000),
    Question::Yield(100_000),
    Question::SpawnOne,
    Question::SpawnMany(10_000),
    Question::SpawnMany(100_000),
    Question::Chain,
    Question::Park,
];

impl Question {
    /// How many tasks are alive at the same time.
    pub(in crate::compare) fn tasks(self) -> u64 {
        match self {
            Question::Yield(tasks) | Question::SpawnMany(tasks) => tasks.into(),
            Question::Switch | Question::SpawnOne | Question::Chain | Question::Park => 2,
        }
    }
}

impl question::Question for Question {
    fn all(_: usize) -> Vec<Self> {
        ALL.to_vec()
    }

    fn subject(self) -> &'static str {
        "tasks"
    }

    fn name(self) -> String {
        match self {
            Question::Switch => "switch, there and back".to_owned(),
            Question::Yield(tasks) => format!("yield, {tasks} tasks"),
            Question::SpawnOne => "spawn and join one".to_owned(),
            Question::SpawnMany(tasks) => format!("spawn {tasks}, join all"),
            Question::Chain => "each spawns the next".to_owned(),
            Question::Park => "park and unpark, there and back".to_owned(),
        }
    }

    fn size(self) -> Size {
        match self {
            Question::Yield(tasks) => {
                Size::Filling { at_least: Duration::ZERO, operations: TURNS * u64::from(tasks) }
            }
            Question::SpawnMany(tasks) => {
                Size::Filling { at_least: Duration::ZERO, operations: tasks.into() }
            }
            _ => Size::ANY,
        }
    }

    fn targets(self, workers: usize) -> Vec<Target> {
        let target = match self {
            _ if workers > 1 => Target::time(1.0, Bound::Best),
            Question::Yield(2) => Target::time(0.35, Bound::Best),
            Question::Yield(1_000) => Target::time(0.5, Bound::Best),
            Question::SpawnOne => Target::time(0.5, Bound::Best),
            Question::SpawnMany(100_000) => Target::time(0.8, Bound::Best),
            Question::Park => Target::time(0.6, Bound::Named("tokio")),
            Question::Switch | Question::Yield(_) | Question::SpawnMany(_) | Question::Chain => {
                return Vec::new();
            }
        };
        vec![target]
    }
}
