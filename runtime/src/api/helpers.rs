//! Parallel loops: pieces from one source, and a task more whenever one waits.
//!
//! Each task of a loop has a helper forked while it works: an un-started task that does the same. A worker starts it
//! when the present task waits, or when the worker idles; it then forks a helper in its turn. A helper that no worker
//! has started is taken back before its owner gives way to others, so a loop that only computes stays in one task per
//! worker.

#![forbid(unsafe_code)]

use std::mem;

use crate::api::fork::{Forked, fork};
use crate::api::pace::Pace;

/// What a loop takes its pieces from.
pub(crate) trait Source: Sync {
    type Piece;

    /// Takes a piece of up to `most` calls, `None` if no more are left or wanted. May wait.
    fn pull(&self, most: usize) -> Option<Self::Piece>;

    /// Makes the calls of a piece, and returns how many there were.
    fn run(&self, piece: Self::Piece) -> usize;

    /// No more pieces are wanted: one of the tasks unwinds.
    fn stop(&self);
}

/// Does pieces until there are no more.
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

/// Does a piece, and others behind it until it is time to give way. Once the helper has begun, that is done in here.
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

/// Stops the loop when it is dropped by a panic or a cancellation. Otherwise tasks that are cancelled one after the other
/// could start more meanwhile.
struct Stop<'a, S: Source>(&'a S);

impl<S: Source> Drop for Stop<'_, S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
