//! The questions.

use crate::compare::question::{self, Row, Size, When};

/// So many tasks sleep once, each for 1 to 100 milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) struct Question {
    pub(in crate::compare) tasks: u32,
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[(
        "timers",
        &[
            (When::Always, Question { tasks: 10_000 }, "10000 sleeps of 1 to 100 ms", Size::Fixed(10_000)),
            (When::Always, Question { tasks: 100_000 }, "100000 sleeps of 1 to 100 ms", Size::Fixed(100_000)),
        ],
    )];
}
