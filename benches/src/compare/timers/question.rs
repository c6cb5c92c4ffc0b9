//! What is asked, and what fibra means to reach.

use crate::compare::question::{self, Bound, Measure, Size, Target};

/// So many tasks sleep once, each for 1 to 100 milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) struct Question {
    pub(in crate::compare) tasks: u32,
}

const ALL: [Question; 2] = [Question { tasks: 10_000 }, Question { tasks: 100_000 }];

/// The lateness that the median task may have, in nanoseconds.
const LATENESS: f64 = 100e3;

impl question::Question for Question {
    fn all(_: usize) -> Vec<Self> {
        ALL.to_vec()
    }

    fn subject(self) -> &'static str {
        "timers"
    }

    fn name(self) -> String {
        format!("{} sleeps of 1 to 100 ms", self.tasks)
    }

    fn size(self) -> Size {
        Size::Fixed(self.tasks.into())
    }

    fn targets(self, workers: usize) -> Vec<Target> {
        let of = |measure, most, of| Target { measure, who: "fibra", most, of };
        match (workers, self.tasks) {
            (1, 100_000) => vec![
                of(Measure::Cpu, 1.0, Bound::Named("tokio")),
                of(Measure::Lateness, LATENESS, Bound::Itself),
            ],
            (1, _) => Vec::new(),
            _ => [Measure::Time, Measure::Cpu, Measure::Lateness, Measure::LatenessTail]
                .map(|measure| of(measure, 1.0, Bound::Best))
                .to_vec(),
        }
    }
}
