//! What a worker notes of runs and wakes, and which of them it measures.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::num::NonZeroU32;

/// Tells what a worker notes, in one byte for the loop to test.
#[derive(Clone, Copy)]
pub(super) struct Observed(u8);

impl Observed {
    /// A thread watches how long tasks run.
    const WATCHED: u8 = 1;
    /// There are histograms.
    const MEASURED: u8 = 2;

    pub(super) fn new(is_watched: bool, is_measured: bool) -> Self {
        let bit = |bit, is_set| if is_set { bit } else { 0 };
        Observed(bit(Self::WATCHED, is_watched) | bit(Self::MEASURED, is_measured))
    }

    #[inline(always)]
    pub(super) fn is_any(self) -> bool {
        self.0 != 0
    }

    pub(super) fn is_watched(self) -> bool {
        self.0 & Self::WATCHED != 0
    }

    #[inline(always)]
    pub(super) fn is_measured(self) -> bool {
        self.0 & Self::MEASURED != 0
    }
}

/// Chooses the runs and wakes that are measured.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) runs: Countdown,
    pub(super) wakes: Countdown,
    /// While the worker takes tasks that other threads have woken: when the first of them came. Else 0.
    pub(super) arrived: Cell<u64>,
}

/// How many are left out before the next.
#[derive(Default)]
pub(super) struct Countdown(Cell<u32>);

impl Countdown {
    /// Returns true once in `every` calls.
    pub(super) fn is_due(&self, every: NonZeroU32) -> bool {
        let left = self.0.get();
        self.0.set(left.checked_sub(1).unwrap_or(every.get() - 1));
        left == 0
    }
}
