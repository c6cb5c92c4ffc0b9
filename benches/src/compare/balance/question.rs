//! The questions.

use crate::compare::question::{self, Row, Size, When};

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
    /// As `Born`, but the task that spawned them goes on computing until they are done, and keeps its worker
    /// to itself.
    Stuck,
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[(
        "skewed load",
        &[
            (When::More, Question::Born, "tasks born on one worker", Size::Fixed(PIECES)),
            (When::More, Question::Started, "tasks started on one worker", Size::Fixed(PIECES)),
            (When::More, Question::Stuck, "tasks behind a long computation", Size::Fixed(PIECES)),
        ],
    )];
}
