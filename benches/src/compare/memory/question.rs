//! What is asked, and what fibra means to reach.

use crate::compare::question::{self, Bound, Measure, Size, Target};

/// As many as there can be threads.
pub(in crate::compare) const FEW: u32 = 2_000;

/// So many tasks sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) struct Question {
    pub(in crate::compare) tasks: u32,
}

const ALL: [Question; 3] = [Question { tasks: FEW }, Question { tasks: 20_000 }, Question { tasks: 200_000 }];

impl question::Question for Question {
    /// The number of workers changes nothing in it.
    fn all(workers: usize) -> Vec<Self> {
        match workers {
            1 => ALL.to_vec(),
            _ => Vec::new(),
        }
    }

    fn subject(self) -> &'static str {
        "memory"
    }

    fn name(self) -> String {
        format!("{} sleeping tasks, bytes each", self.tasks)
    }

    fn size(self) -> Size {
        Size::Fixed(self.tasks.into())
    }

    fn targets(self, _: usize) -> Vec<Target> {
        let most = |who, most| Target { measure: Measure::Memory, who, most, of: Bound::Itself };
        match self.tasks {
            200_000 => vec![most("fibra", 4_900.0), most("fibra 64-KiB", 4_500.0)],
            _ => Vec::new(),
        }
    }

    fn is_alone(self) -> bool {
        true
    }
}
