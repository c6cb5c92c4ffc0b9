//! Parallel loops: pieces from one source, and a further task whenever a task waits.
//!
//! Each working task of a loop has forked a helper: an unstarted task that runs this loop, too. A
//! worker starts it when the present task waits, or when the worker idles; the helper then forks
//! its own. The owner takes back an unstarted helper before it yields, so a loop that only computes
//! stays in one task per worker.

#![forbid(unsafe_code)]

use std::mem;
use std::time::{Duration, Instant};

use crate::api::fork::{Forked, fork};
use crate::api::yield_now::yield_now;
use crate::base::clock;
use crate::scheduler::current;
use crate::sleep::cancel_points;
use crate::tasks::forbid;

/// Source of the pieces of a loop.
pub(crate) trait Source: Sync {
    type Piece;

    /// Takes a piece of up to `most` calls; `None` if no more are left or wanted. May wait.
    fn pull(&self, most: usize) -> Option<Self::Piece>;

    /// Makes the calls of a piece, and returns their number.
    fn run(&self, piece: Self::Piece) -> usize;

    /// Stops the loop: one of its tasks unwinds.
    fn stop(&self);
}

/// Runs pieces until there are no more.
pub(crate) fn serve<S: Source>(source: &S) {
    let mut size = PieceSize::new();
    let stop = Stop(source);
    while let Some(first) = source.pull(size.grain()) {
        // A helper that has ended found no more pieces, and this task finds none either.
        _ = fork(|helper| advance(source, first, &mut size, helper), || serve(source));
        size.give_way();
    }
    mem::forget(stop);
}

/// Runs pieces until it is time to yield. Once the helper has begun, it yields in here and goes on.
fn advance<S: Source, F>(source: &S, first: S::Piece, size: &mut PieceSize, helper: &Forked<'_, F, ()>) {
    let stop = Stop(source);
    let mut next = Some(first);
    while let Some(piece) = next {
        size.begin();
        let count = source.run(piece);
        size.note(count);
        if size.is_over() {
            if !helper.is_begun() {
                break;
            }
            size.give_way();
        }
        next = source.pull(size.grain());
    }
    mem::forget(stop);
}

/// Stops the loop when a panic or a cancellation drops it.
///
/// Otherwise tasks that are cancelled in sequence could start more meanwhile.
struct Stop<'a, S: Source>(&'a S);

impl<S: Source> Drop for Stop<'_, S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Time that a piece should take: far longer than the reading of the clock after it, and far below a
/// [`SLICE`].
const PIECE: Duration = Duration::from_micros(8);

/// Time that one task may hold its worker.
const SLICE: Duration = Duration::from_micros(200);

/// The largest piece, in items.
const MOST: usize = 1 << 20;

/// The size of one task's pieces: the number of items between two readings of the clock.
///
/// The readings must cost little, and other tasks must not wait for long.
struct PieceSize {
    grain: usize,
    /// Time of the last reading of the clock.
    at: Instant,
    slice_began: Instant,
}

impl PieceSize {
    /// Starts with one item at a time.
    fn new() -> Self {
        let now = clock::machine();
        PieceSize { grain: 1, at: now, slice_began: now }
    }

    /// Returns the number of items before the next [`note`](PieceSize::note).
    fn grain(&self) -> usize {
        self.grain
    }

    /// Begins a piece: the wait before it does not count as time of its items.
    fn begin(&mut self) {
        self.at = clock::machine();
    }

    /// Notes that a piece of `count` items was done. A cancellation point.
    fn note(&mut self, count: usize) {
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
    fn is_over(&self) -> bool {
        self.at - self.slice_began >= SLICE && forbid::may_suspend()
    }

    /// Lets other tasks run, if it is time.
    fn give_way(&mut self) {
        if self.is_over() {
            // A tick of the worker counts switches, and this slice stands for many of them.
            current::with_worker(|worker| worker.hasten_tick());
            yield_now();
            self.at = clock::machine();
            self.slice_began = self.at;
        }
    }
}
