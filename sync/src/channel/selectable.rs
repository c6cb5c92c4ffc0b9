//! What a select can wait for beside channels: the interface of events, counts, permits and tokens.

use std::cell::Cell;

use crate::turn::Queue;
use crate::wait::list::Node;
use crate::wait::{Arm, Claim, Enlisted, Link, RawWake, WakeHandle};

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

    /// A place among its waiters.
    #[doc(hidden)]
    type Arm<'a>: Arm
    where
        Self: 'a;

    /// Makes the place of a select.
    #[doc(hidden)]
    fn arm(&self) -> Self::Arm<'_>;

    /// Takes the source without waiting, once.
    #[doc(hidden)]
    fn take_now(&self) -> bool;

    /// Gives back what was taken once.
    #[doc(hidden)]
    fn give_back(&self) {}

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

/// A list in which the arm of a select can wait.
pub trait Line: Queue {
    /// Returns the request of an arm, which asks for one.
    fn asks() -> Self::Asks;

    /// Takes one without waiting.
    fn take_now(&self) -> bool;

    /// Queues the node as arm `arm` of its sleeper, or answers false if the operation is ready.
    ///
    /// # Safety
    /// As for [`List::push_back_for`](crate::wait::list::List::push_back_for).
    unsafe fn enlist_for(&self, node: &Node<Self::Asks>, wake: RawWake, claim: &Claim, arm: usize) -> bool;
}

/// A place in a list for one arm of a select.
pub struct LineArm<'a, L: Line> {
    line: &'a L,
    node: Node<L::Asks>,
    link: Link,
    /// True if it has left the list unserved, and waiters behind it may have to be served.
    left: Cell<bool>,
}

impl<'a, L: Line> LineArm<'a, L> {
    pub(super) fn new(line: &'a L) -> Self {
        LineArm { line, node: Node::with(L::asks()), link: Link::new(), left: Cell::new(false) }
    }
}

// SAFETY: a list takes the token of a node before it hands out its wake.
unsafe impl<L: Line> Arm for LineArm<'_, L> {
    unsafe fn enlist(&self, me: WakeHandle<'_>, token: &Claim, number: usize) -> Enlisted {
        // SAFETY: by the caller's contract the node is in no list and stays until it is withdrawn, as the token does, which
        // lets one wake be used; the source touches it under its lock only.
        match unsafe { self.line.enlist_for(&self.node, me.raw(), token, number) } {
            true => Enlisted::Waits,
            false => Enlisted::Ready,
        }
    }

    unsafe fn withdraw(&self) {
        // SAFETY: the node is in this list or in none.
        self.left.set(unsafe { self.line.withdraw(&self.node) });
    }

    fn departed(&self) {
        if self.left.take() {
            self.line.departed();
        }
    }

    fn link(&self) -> &Link {
        &self.link
    }
}
