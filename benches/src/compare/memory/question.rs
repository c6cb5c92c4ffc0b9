//! The questions.

use crate::compare::question::{self, Row, Size, When};

/// As many as there can be threads.
pub(in crate::compare) const FEW: u32 = 2_000;

/// So many tasks sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) struct Question {
    pub(in crate::compare) tasks: u32,
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[(
        "memory",
        &[
            (When::One, Question { tasks: FEW }, "2000 sleeping tasks, bytes each", Size::Fixed(FEW as u64)),
            (When::One, Question { tasks: 20_000 }, "20000 sleeping tasks, bytes each", Size::Fixed(20_000)),
            (
                When::One,
                Question { tasks: 200_000 },
                "200000 sleeping tasks, bytes each",
                Size::Fixed(200_000),
            ),
        ],
    )];

    const IS_ALONE: bool = true;
}
