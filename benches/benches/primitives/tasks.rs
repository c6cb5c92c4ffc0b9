//! Where blocking operations run, and what a library offers to be asked about.

use std::sync::Barrier;
use std::time::Duration;

use super::question::{Place, Question};
use crate::comparison::Answer;

/// A way to answer one question, for a task of the kind that it is asked about.
pub(super) type Way = fn(operations: u64) -> Answer;

/// A library whose operations block.
pub(super) trait Library {
    /// How it answers the question with tasks of kind `T` and pairs in place `P`; `None` where it has no such thing.
    fn way<T: Tasks, P: Pair>(question: Question) -> Option<Way>;
}

/// Tasks of a crowd.
pub(super) trait Tasks {
    type JoinHandle;

    /// # Safety
    /// Over a suspension `f` keeps nothing that is tied to its thread, and it needs little stack.
    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> Self::JoinHandle;
    fn join(handle: Self::JoinHandle);
    fn yield_now();

    /// Waits until `all` are here, where those that were spawned first would otherwise be far ahead. Tasks are not: none
    /// runs on a worker before the task there that spawns them waits.
    fn begin_together(_all: &Barrier) {}
}

/// Two tasks in some place.
pub(super) trait Pair {
    /// Runs both, and returns what the first returned.
    ///
    /// # Safety
    /// As [`Tasks::spawn`].
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration;
}

/// How the library answers with tasks of this kind, wherever the question wants them.
pub(super) fn way<L: Library, T: Tasks, Together: Pair, Apart: Pair>(question: Question) -> Option<Way> {
    match question.place() {
        Place::Together => L::way::<T, Together>(question),
        Place::Apart => L::way::<T, Apart>(question),
    }
}
