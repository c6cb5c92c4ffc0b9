//! What a library offers to be asked about, and where pairs of tasks run.

use std::marker::PhantomData;
use std::time::Duration;

use super::question::{Place, Question};
use crate::compare::question::Answer;
use crate::compare::worlds::Blocking;

/// A way to answer one question, for a task of the kind that it is asked about.
pub(super) type Way = fn(operations: u64) -> Answer;

/// A library whose operations block.
pub(super) trait Library {
    /// How it answers the question with tasks of kind `T` and pairs in place `P`; `None` where it has no such thing.
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way>;
}

/// Two tasks in some place.
pub(super) trait Pair {
    /// Runs both, and returns what the first returned.
    ///
    /// # Safety
    /// As [`Blocking::spawn`].
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration;
}

/// Two tasks wherever the library puts them.
pub(super) struct Anywhere<T>(PhantomData<T>);

impl<T: Blocking> Pair for Anywhere<T> {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        // SAFETY: by this function's contract.
        let second = unsafe { T::spawn(second) };
        let elapsed = first();
        T::join(second);
        elapsed
    }
}

/// How the library answers with tasks of this kind, wherever the question wants them.
pub(super) fn way<L: Library, T: Blocking, Together: Pair, Apart: Pair>(question: Question) -> Option<Way> {
    match question.place() {
        Place::Together => L::way::<T, Together>(question),
        Place::Apart => L::way::<T, Apart>(question),
    }
}
