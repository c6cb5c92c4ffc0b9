//! The arm of a select: one of several operations that it waits for.

#![forbid(unsafe_code)]

use std::time::Instant;

use crate::wait;

/// What a select does with an arm that is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Does its operation.
    Act,
    /// Returns. Of a channel alone.
    Watch,
}

/// One of several operations that are waited for at once, of which one is selected.
///
/// The select tries all operations, then waits for all. It is served for one of them only.
pub trait Arm {
    /// Does the operation if it need not wait, and keeps the outcome. Returns true if it did.
    fn try_now(&self) -> bool;

    /// Returns true if the last try failed because its partner gave up. Trying on might not end.
    fn was_let_down(&self) -> bool {
        false
    }

    /// Returns when the clock makes it ready.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Returns its place among the waiters; none if the clock alone makes it ready.
    fn place(&self, purpose: Purpose) -> Option<&dyn wait::Arm>;

    /// Keeps the outcome after the arm was served. Returns false if there is none: the select tries
    /// again.
    fn accept(&self) -> bool;

    /// Returns true if [`try_now`](Arm::try_now) would do it. For an arm that only watches.
    fn is_ready(&self) -> bool {
        unreachable!("only operations of channels are watched")
    }
}
