//! What a select can wait for beside channels.

use std::cell::Cell;

use super::wait_arm::WaitArm;
use crate::countdown::Countdown;
use crate::turn::Queue;
use crate::wait::list::Node;
use crate::wait::{Claim, RawWake};
use crate::{AutoResetEvent, CountdownEvent, ManualResetEvent, Semaphore, SemaphorePermit, WaitGroup};

/// What [`select!`](crate::select) and [`Select::wait`](super::Select::wait) can wait for: events, semaphores, tokens.
///
/// | type | is ready | and the select then |
/// | --- | --- | --- |
/// | [`AutoResetEvent`] | when it is set and nobody waits longer | has used the set |
/// | [`ManualResetEvent`] | while it is set, or by a set that came while the select waited | |
/// | [`CountdownEvent`], [`WaitGroup`] | when the count is zero, or was while the select waited | |
/// | [`Semaphore`] | when a permit is free and nobody waits longer | has the permit |
/// | [`CancelToken`](fibra_runtime::CancelToken) | once it is cancelled | |
///
/// It cannot be implemented for others. Those of a [`oneshot`](crate::oneshot), a [`broadcast`](crate::broadcast) and a
/// [`watch`](crate::watch) are raced against a select, as [`select!`](crate::select) tells.
pub trait Selectable: sealed::Sealed {
    /// What is had of it: the permit of a semaphore, nothing of an event.
    type Outcome<'a>
    where
        Self: 'a;

    /// Where those stand who wait for it.
    #[doc(hidden)]
    type Line: Line;

    #[doc(hidden)]
    fn line(&self) -> &Self::Line;

    /// Of one that was taken.
    #[doc(hidden)]
    fn outcome(&self, taken: sealed::Taken) -> Self::Outcome<'_>;

    #[doc(hidden)]
    fn select_arm(&self) -> WaitArm<'_, Self>
    where
        Self: Sized,
    {
        WaitArm::new(self)
    }
}

/// What only this crate can name: other implementations would break what the list of operations relies on, and a permit is
/// made only for one that was taken.
pub(super) mod sealed {
    /// A type that a select can wait for.
    pub trait Sealed {}

    /// Says that one was taken.
    pub struct Taken(pub(in super::super) ());

    impl Sealed for crate::AutoResetEvent {}
    impl Sealed for crate::ManualResetEvent {}
    impl Sealed for crate::CountdownEvent {}
    impl Sealed for crate::WaitGroup {}
    impl Sealed for crate::Semaphore {}
}

/// A queue that a sleeper can stand in which waits for several things.
pub trait Line: Queue {
    /// What an arm asks for: one of it.
    fn asks() -> Self::Asks;

    /// Takes it, if that needs no wait.
    fn take_now(&self) -> bool;

    /// True if [`take_now`](Line::take_now) would.
    fn is_open(&self) -> bool;

    /// Queues the node as arm `arm` of its sleeper, or answers false if it is [open](Line::is_open).
    ///
    /// # Safety
    /// As for [`List::push_back_for`](crate::wait::list::List::push_back_for).
    unsafe fn enlist_for(&self, node: &Node<Self::Asks>, wake: RawWake, claim: &Claim, arm: usize) -> bool;
}

impl Selectable for AutoResetEvent {
    type Outcome<'a> = ();
    type Line = Self;

    fn line(&self) -> &Self {
        self
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for ManualResetEvent {
    type Outcome<'a> = ();
    type Line = Self;

    fn line(&self) -> &Self {
        self
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for CountdownEvent {
    type Outcome<'a> = ();
    type Line = Countdown;

    fn line(&self) -> &Countdown {
        self.countdown()
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for WaitGroup {
    type Outcome<'a> = ();
    type Line = Countdown;

    fn line(&self) -> &Countdown {
        self.countdown()
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for Semaphore {
    type Outcome<'a> = SemaphorePermit<'a>;
    type Line = Self;

    fn line(&self) -> &Self {
        self
    }

    fn outcome(&self, _taken: sealed::Taken) -> SemaphorePermit<'_> {
        SemaphorePermit::new(self, 1)
    }
}

impl Line for Countdown {
    fn asks() -> Cell<u64> {
        Cell::new(0)
    }

    fn take_now(&self) -> bool {
        self.is_open()
    }

    fn is_open(&self) -> bool {
        self.count() == 0
    }

    unsafe fn enlist_for(&self, node: &Node<Cell<u64>>, wake: RawWake, claim: &Claim, arm: usize) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.join_for(node, wake, claim, arm) }
    }
}
