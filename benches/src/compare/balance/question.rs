//! What is asked, and what fibra means to reach.

use crate::compare::question::{self, Bound, Measure, Size, Target};

/// How many pieces of work there are.
pub(in crate::compare) const PIECES: u64 = 1_000;

/// Among how many tasks they are, where they have started.
pub(in crate::compare) const TASKS: u64 = 100;

/// How many turns they have to start before the work begins.
pub(in crate::compare) const TURNS: u64 = 100;

/// Where the work is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Question {
    /// A piece for each of many tasks, all spawned by one; none has started.
    Born,
    /// Some tasks that have started on one worker do all pieces, and yield after each.
    Started,
    /// As `Born`, but the task that spawned them goes on computing until they are done, and keeps its worker to itself.
    Stuck,
}

const ALL: [Question; 3] = [Question::Born, Question::Started, Question::Stuck];

impl question::Question for Question {
    /// One worker alone has nothing to share.
    fn all(workers: usize) -> Vec<Self> {
        match workers {
            1 => Vec::new(),
            _ => ALL.to_vec(),
        }
    }

    fn subject(self) -> &'static str {
        "skewed load"
    }

    fn name(self) -> String {
        match self {
            Question::Born => "tasks born on one worker",
            Question::Started => "tasks started on one worker",
            Question::Stuck => "tasks behind a long computation",
        }
        .to_owned()
    }

    fn size(self) -> Size {
        Size::Fixed(PIECES)
    }

    fn targets(self, _: usize) -> Vec<Target> {
        let (who, most) = match self {
            Question::Born | Question::Stuck => ("fibra", 1.2),
            // Started tasks stay on their worker unless they may migrate.
            Question::Started => ("fibra migr.", 1.3),
        };
        let target = |most, of| Target { measure: Measure::Time, who, most, of };
        vec![target(most, Bound::Named("even shares")), target(1.0, Bound::Best)]
    }
}
