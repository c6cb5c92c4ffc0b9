//! One task with a primitive of its own.

use std::hint::black_box;

use super::{Asked, task};
use crate::compare::primitives::question::Question;

/// An operation that can be repeated without a wait.
pub(in crate::compare) trait Deed: Send + Sync + 'static {
    /// The question that it answers.
    const ASKED: Question;

    fn new() -> Self;
    fn run(&self) -> later!(());
}

pub(super) fn repeat<D: Deed>(operations: u64) -> Asked {
    task(job!({
        let thing = D::new();
        timed!(operations, |_| wait!(black_box(&thing).run()))
    }))
}
