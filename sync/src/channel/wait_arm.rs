//! The select arm that waits for an event, a semaphore or a token.

use std::cell::Cell;
use std::ptr;
use std::time::Instant;

use super::arm::{Arm, Enlisted};
use super::operation::{Erased, Operation, Target};
use super::selectable::Selectable;
use super::selectable::sealed::Taken;
use crate::wait::{Arm as _, Claim, WakeHandle};

/// The arm `wait(source)`. Its waker has taken for it what it waits for.
pub struct WaitArm<'a, S: Selectable> {
    source: &'a S,
    arm: S::Arm<'a>,
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
        WaitArm { source, arm: source.arm(), taken: Cell::new(false) }
    }

    /// Returns what was taken, after the arm was selected.
    pub fn complete(&self) -> S::Outcome<'a> {
        assert!(self.taken.take(), "only the arm that was chosen is completed");
        self.source.outcome(Taken(()))
    }

    /// Ends the borrow.
    pub fn end(self) {}
}

impl<S: Selectable> Arm for WaitArm<'_, S> {
    fn try_now(&self) -> bool {
        let taken = self.source.take_now();
        self.taken.set(taken);
        taken
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        // SAFETY: the caller's contract.
        unsafe { self.arm.enlist(me, claim, number) }
    }

    unsafe fn withdraw(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.arm.withdraw() }
    }

    fn departed(&self) {
        self.arm.departed();
    }

    fn accept(&self) -> bool {
        self.taken.set(true);
        true
    }

    fn is_ready(&self) -> bool {
        unreachable!("`ready` takes channels only")
    }

    unsafe fn watch(&self, _me: WakeHandle<'_>, _claim: &Claim, _number: usize) -> Enlisted {
        unreachable!("`ready` takes channels only")
    }

    unsafe fn unwatch(&self) {}
}

impl<S: Selectable> Operation for WaitArm<'_, S> {
    fn abandon(&self) {
        self.source.give_back();
    }

    fn target(&self) -> Target {
        Target::Waits(ptr::from_ref(self.source).cast())
    }

    fn renew(&self) -> Erased {
        Erased::new(WaitArm::new(self.source))
    }
}
