//! The select arm that waits for an event, a semaphore or a token.

#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::ptr;

use super::arm::{Arm, Purpose};
use super::operation::{Erased, Operation, Target};
use super::selectable::Selectable;
use super::selectable::sealed::Taken;
use crate::wait;

/// The arm `wait(source)`. Its waker has taken for it what it waits for.
pub struct WaitArm<'a, S: Selectable> {
    source: &'a S,
    /// Made for a wait.
    place: OnceCell<S::Arm<'a>>,
    /// What was taken of the source for it, until the arm is completed.
    taken: Cell<Option<Taken>>,
}

/// Makes the arm of a source, by a method that is found behind an `Arc` too.
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
        WaitArm { source, place: OnceCell::new(), taken: Cell::new(None) }
    }

    /// Returns what was taken, after the arm was selected.
    pub fn complete(&self) -> S::Outcome<'a> {
        self.source.outcome(self.take().expect("only the arm that was chosen is completed"))
    }
}

impl<S: Selectable> Arm for WaitArm<'_, S> {
    fn try_now(&self) -> bool {
        let taken = self.source.take_now();
        let is_taken = taken.is_some();
        self.taken.set(taken);
        is_taken
    }

    fn place(&self, _purpose: Purpose) -> Option<&dyn wait::Arm> {
        Some(self.place.get_or_init(|| self.source.arm()))
    }

    fn accept(&self) -> bool {
        self.taken.set(self.place.get().map(|place| self.source.served(place)));
        true
    }
}

impl<S: Selectable> Operation for WaitArm<'_, S> {
    fn abandon(&self) {
        self.take().into_iter().for_each(|taken| self.source.give_back(taken));
    }

    fn take(&self) -> Option<Taken> {
        self.taken.take()
    }

    fn target(&self) -> Target {
        Target::Waits(ptr::from_ref(self.source).cast())
    }

    fn renew(&self) -> Erased {
        Erased::new(WaitArm::new(self.source))
    }
}
