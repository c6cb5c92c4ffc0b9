//! The select arm that waits for an event, a semaphore or a token.

use std::cell::Cell;
use std::ptr;
use std::time::Instant;

use super::arm::{Arm, Enlisted};
use super::operation::{Erased, Operation, Target};
use super::selectable::sealed::Taken;
use super::selectable::{Line, Selectable};
use crate::turn::Queue;
use crate::wait::list::Node;
use crate::wait::{Claim, WakeHandle};

/// The arm `wait(source)`. Its waker has taken for it what it waits for.
pub struct WaitArm<'a, S: Selectable> {
    source: &'a S,
    node: Node<<S::Line as Queue>::Asks>,
    /// True if it has left the queue unserved, and waiters behind it may have to be served.
    left: Cell<bool>,
    /// True if the source was taken for it, and the arm is not completed yet.
    taken: Cell<bool>,
}

/// Makes the arm of a source by a method, which is found behind an `Arc` or a reference too.
pub trait SelectArm: Selectable {
    /// Makes an arm that waits for this source.
    fn select_arm(&self) -> WaitArm<'_, Self>
    where
        Self: Sized,
    {
        WaitArm::new(self)
    }
}

impl<S: Selectable> SelectArm for S {}

impl<'a, S: Selectable> WaitArm<'a, S> {
    /// Makes an arm for `source`.
    pub fn new(source: &'a S) -> Self {
        WaitArm { source, node: Node::with(S::Line::asks()), left: Cell::new(false), taken: Cell::new(false) }
    }

    /// Returns what was taken, after the arm was selected.
    pub fn complete(&self) -> S::Outcome<'a> {
        assert!(self.taken.take(), "only the arm that was chosen is completed");
        self.source.outcome(Taken(()))
    }

    /// Ends the borrow.
    pub fn end(self) {}

    fn line(&self) -> &'a S::Line {
        self.source.line()
    }
}

impl<S: Selectable> Arm for WaitArm<'_, S> {
    fn try_now(&self) -> bool {
        let taken = self.line().take_now();
        self.taken.set(taken);
        taken
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        // SAFETY: by the caller's contract the node is in no list and stays until it is withdrawn, as the claim does, which
        // lets one wake be used; the source touches it under its lock only.
        match unsafe { self.line().enlist_for(&self.node, me.raw(), claim, number) } {
            true => Enlisted::Waits,
            false => Enlisted::Ready,
        }
    }

    unsafe fn withdraw(&self) {
        // SAFETY: it was enlisted: the node is in this queue or in none.
        self.left.set(unsafe { self.line().withdraw(&self.node) });
    }

    fn departed(&self) {
        if self.left.take() {
            self.line().departed();
        }
    }

    fn accept(&self) -> bool {
        self.taken.set(true);
        true
    }

    fn is_ready(&self) -> bool {
        self.line().is_open()
    }

    unsafe fn watch(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        // SAFETY: the caller's contract. What is then taken is given back by `decline`.
        unsafe { self.enlist(me, claim, number) }
    }

    unsafe fn unwatch(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.withdraw() }
    }

    fn decline(&self) -> bool {
        self.line().pass_on(self.node.data());
        // With a look two watchers could pass it to each other for ever.
        true
    }
}

impl<S: Selectable> Operation for WaitArm<'_, S> {
    fn abandon(&self) {
        self.line().pass_on(self.node.data());
    }

    fn target(&self) -> Target {
        Target::Waits(ptr::from_ref(self.source).cast())
    }

    fn renew(&self) -> Erased {
        Erased::new(WaitArm::new(self.source))
    }
}
