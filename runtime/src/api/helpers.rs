//! Parallel loops: pieces from one source, and a further task whenever a task waits.
//!
//! Each working task of a loop has forked a helper: an unstarted task that runs this loop, too. A
//! worker starts it when the present task waits, or when the worker idles; the helper then forks
//! its own. The owner takes back an unstarted helper before it yields, so a loop that only computes
//! stays in one task per worker.

#![forbid(unsafe_code)]

use std::mem;

use crate::api::fork::{Forked, fork};
use crate::api::pace::Pace;

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
    let mut pace = Pace::new();
    let stop = Stop(source);
    while let Some(first) = source.pull(pace.grain()) {
        // A helper that has ended found no more pieces, and this task finds none either.
        _ = fork(|helper| advance(source, first, &mut pace, helper), || serve(source));
        pace.give_way();
    }
    mem::forget(stop);
}

/// Runs pieces until it is time to yield. Once the helper has begun, it yields in here and goes on.
fn advance<S: Source, F>(source: &S, first: S::Piece, pace: &mut Pace, helper: &Forked<'_, F, ()>) {
    let stop = Stop(source);
    let mut next = Some(first);
    while let Some(piece) = next {
        pace.begin();
        let count = source.run(piece);
        pace.note(count);
        if pace.is_over() {
            if !helper.is_begun() {
                break;
            }
            pace.give_way();
        }
        next = source.pull(pace.grain());
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
