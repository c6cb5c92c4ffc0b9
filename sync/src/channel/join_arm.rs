//! The select arm that waits for the end of a task.

use std::time::Instant;

use fibra_runtime::JoinHandle;
use fibra_runtime::task::Joiner;

use super::arm::{Arm, Enlisted};
use crate::wait::{Claim, WakeHandle};

/// The arm `join(handle)`. It leaves the result to the handle.
pub struct JoinArm<'a, T> {
    /// Borrowed for this arm alone: a task has one joiner.
    handle: &'a mut JoinHandle<T>,
    joiner: Joiner,
}

impl<'a, T> JoinArm<'a, T> {
    /// Makes an arm for the end of the task of `handle`.
    ///
    /// # Panics
    /// Panics in that task.
    #[track_caller]
    pub fn new(handle: &'a mut JoinHandle<T>) -> Self {
        handle.prepare_join();
        JoinArm { handle, joiner: Joiner::new() }
    }

    /// Ends the borrow.
    pub fn end(self) {}
}

impl<T> Arm for JoinArm<'_, T> {
    fn try_now(&self) -> bool {
        self.handle.is_finished()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        // SAFETY: the arm has the handle for itself; by the caller's contract arm and claim stay until it is withdrawn, and
        // only the waker that takes the claim uses the wake.
        match unsafe { self.handle.enlist_joiner(&self.joiner, me.raw(), claim, number) } {
            true => Enlisted::Waits,
            false => Enlisted::Ready,
        }
    }

    unsafe fn withdraw(&self) {
        self.handle.withdraw_joiner(&self.joiner);
    }

    fn accept(&self) -> bool {
        true
    }

    fn is_ready(&self) -> bool {
        self.try_now()
    }

    unsafe fn watch(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        // SAFETY: the caller's contract.
        unsafe { self.enlist(me, claim, number) }
    }

    unsafe fn unwatch(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.withdraw() }
    }
}
