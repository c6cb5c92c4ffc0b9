//! Questions, answers and targets.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The questions of one kind, each of which is about one kind of operation.
pub(super) trait Question: Copy + Send + 'static {
    /// Tables with their questions, in order.
    const ALL: &'static [(&'static str, &'static [Row<Self>])];

    /// Whether each answer wants a process of its own.
    const IS_ALONE: bool = false;
}

/// When a question is asked, the question, its name, and how much is asked at a time.
pub(super) type Row<Q> = (When, Q, &'static str, Size);

/// The number of workers of a question or a target.
#[derive(Clone, Copy)]
pub(super) enum When {
    One,
    More,
    Always,
}

impl When {
    pub(super) fn includes(self, workers: usize) -> bool {
        match self {
            When::One => workers == 1,
            When::More => workers > 1,
            When::Always => true,
        }
    }
}

/// The number of operations of a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Size {
    /// As many as fill its time, which is no shorter than this; and no fewer than so many.
    Filling { at_least: Duration, operations: u64 },
    /// A fixed number.
    Fixed(u64),
    /// One for each millisecond of its time, which is no shorter than this.
    Lasting(Duration),
}

impl Size {
    /// As many as fill the time of the sample.
    pub(super) const ANY: Self = Size::at_least(1);

    /// No fewer than so many.
    pub(super) const fn at_least(operations: u64) -> Self {
        Size::Filling { at_least: Duration::ZERO, operations }
    }
}

/// A measure. Less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Measure {
    /// Nanoseconds per operation.
    Time,
    /// Nanoseconds of processor time, of all threads of the process, per operation; of a server's process per
    /// request.
    Cpu,
    /// Nanoseconds until the median request is answered.
    Latency,
    /// Nanoseconds until one of a hundred requests is answered, or more.
    LatencyTail,
    /// By how many nanoseconds the median task woke too late.
    Lateness,
    /// By how many nanoseconds one of a hundred tasks woke too late, or by more.
    LatenessTail,
    /// Resident bytes per task.
    Memory,
    /// What the luckiest task got in proportion to the unluckiest.
    Shares,
}

impl Measure {
    /// Returns the addition to the name of the question.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Measure::Time | Measure::Memory => "",
            Measure::Cpu => ": CPU",
            Measure::Latency => ": median latency",
            Measure::LatencyTail => ": 99 % latency",
            Measure::Lateness => ": median lateness",
            Measure::LatenessTail => ": 99 % lateness",
            Measure::Shares => ": most to least",
        }
    }
}

/// Figures of one sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// How long all its operations took together.
    pub elapsed: Duration,
    /// Everything that was measured but the time; where the time is not what was asked for, also that is left
    /// out.
    pub(super) figures: Vec<(Measure, f64)>,
    pub(super) is_timed: bool,
}

impl Answer {
    /// All figures of a sample of so many operations.
    pub(super) fn measures(&self, operations: u64) -> Vec<(Measure, f64)> {
        let time = (Measure::Time, self.elapsed.as_secs_f64() * 1e9 / operations as f64);
        self.is_timed.then_some(time).into_iter().chain(self.figures.iter().copied()).collect()
    }
}

impl From<Duration> for Answer {
    fn from(elapsed: Duration) -> Self {
        Answer { elapsed, figures: Vec::new(), is_timed: true }
    }
}

/// A target: the limit of one of fibra's entrants in one measure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Target {
    pub(super) measure: Measure,
    pub(super) entrant: &'static str,
    pub(super) most: f64,
    pub(super) of: Bound,
}

/// The base of a target's proportion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bound {
    /// The best of the rivals.
    Best,
    /// The best of the entrants whose names begin so.
    Named(&'static str),
    /// The entrant's figure with one worker.
    OneWorker,
    /// No base: the limit is that of the figure itself.
    Itself,
}
