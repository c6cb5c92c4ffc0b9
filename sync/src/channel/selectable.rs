//! What a select can wait for beside channels: the interface of events, counts, permits and tokens.

use crate::turn::Queue;
use crate::wait::list::Node;
use crate::wait::{Claim, RawWake};

/// An event, count, semaphore or token that a select can wait for.
///
/// [`select!`](crate::select) and [`Select::wait`](super::Select::wait) take it.
///
/// | type | is ready | and the select then |
/// | --- | --- | --- |
/// | [`AutoResetEvent`](crate::AutoResetEvent) | when it is set and no task waits longer | has used the set |
/// | [`ManualResetEvent`](crate::ManualResetEvent) | while it is set, or by a set that came while the select waited | |
/// | [`CountdownEvent`](crate::CountdownEvent), [`WaitGroup`](crate::WaitGroup) | when the count is zero, or was while the select waited | |
/// | [`Semaphore`](crate::Semaphore) | when a permit is free and no task waits longer | has the permit |
/// | [`CancelToken`](fibra_runtime::CancelToken) | once it is cancelled | |
///
/// Other crates cannot implement it. Receives of a [`oneshot`](crate::oneshot), a [`broadcast`](crate::broadcast) and a
/// [`watch`](crate::watch) are raced against a select, as [`select!`](crate::select) tells.
pub trait Selectable: sealed::Sealed {
    /// The permit of a semaphore, nothing of an event.
    type Outcome<'a>
    where
        Self: 'a;

    /// The queue of its waiters.
    #[doc(hidden)]
    type Line: Line;

    #[doc(hidden)]
    fn line(&self) -> &Self::Line;

    /// Makes the outcome once the source was taken.
    #[doc(hidden)]
    fn outcome(&self, taken: sealed::Taken) -> Self::Outcome<'_>;
}

/// Items that only this crate can name: a select relies on its implementations, and makes a permit only once it was taken.
pub(super) mod sealed {
    /// A type that a select can wait for.
    pub trait Sealed {}

    /// Proves that a select has taken the source.
    pub struct Taken(pub(in super::super) ());
}

/// A queue in which the arm of a select can wait.
pub trait Line: Queue {
    /// Returns the request of an arm, which asks for one.
    fn asks() -> Self::Asks;

    /// Takes one without waiting.
    fn take_now(&self) -> bool;

    /// True if [`take_now`](Line::take_now) would.
    fn is_open(&self) -> bool;

    /// Queues the node as arm `arm` of its sleeper, or answers false if it is [open](Line::is_open).
    ///
    /// # Safety
    /// As for [`List::push_back_for`](crate::wait::list::List::push_back_for).
    unsafe fn enlist_for(&self, node: &Node<Self::Asks>, wake: RawWake, claim: &Claim, arm: usize) -> bool;
}
