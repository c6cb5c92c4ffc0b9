//! The pace of a loop: the number of items between two looks at the clock.
//!
//! The looks must cost little, and other tasks must not wait for long.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::api::yield_now::yield_now;
use crate::base::clock;
use crate::scheduler::current;
use crate::sleep::cancel_points;
use crate::tasks::forbid;

/// Time that a piece should take: far longer than the look at the clock after it, and far below a
/// [`SLICE`].
const PIECE: Duration = Duration::from_micros(8);

/// Time that one task may hold its worker.
const SLICE: Duration = Duration::from_micros(200);

/// The largest piece, in items.
const MOST: usize = 1 << 20;

/// One task's pace over its items.
pub(crate) struct Pace {
    grain: usize,
    /// Time of the last look at the clock.
    at: Instant,
    slice_began: Instant,
}

impl Pace {
    /// Makes the pace of a task that begins: one item at a time.
    pub(crate) fn new() -> Self {
        let now = clock::machine();
        Pace { grain: 1, at: now, slice_began: now }
    }

    /// Returns the number of items before the next [`note`](Pace::note).
    pub(crate) fn grain(&self) -> usize {
        self.grain
    }

    /// Begins a piece: the wait before it does not count as time of its items.
    pub(crate) fn begin(&mut self) {
        self.at = clock::machine();
    }

    /// Notes that a piece of `count` items was done. A cancellation point.
    pub(crate) fn note(&mut self, count: usize) {
        self.note_time(count);
        cancel_points::cancellation_point();
    }

    fn note_time(&mut self, count: usize) {
        let now = clock::machine();
        let took = (now - self.at).as_nanos().max(1);
        let fits = (count as u128 * PIECE.as_nanos() / took) as usize;
        self.grain = fits.clamp(1, 2 * count.max(1)).min(MOST);
        self.at = now;
    }

    /// Returns true when other tasks are to run.
    pub(crate) fn is_over(&self) -> bool {
        self.at - self.slice_began >= SLICE && forbid::may_suspend()
    }

    /// Lets other tasks run, if it is time.
    pub(crate) fn give_way(&mut self) {
        if self.is_over() {
            // A tick of the worker counts switches, and this slice stands for many of them.
            current::with_worker(|worker| worker.hasten_turn());
            yield_now();
            self.at = clock::machine();
            self.slice_began = self.at;
        }
    }
}
