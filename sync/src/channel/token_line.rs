//! The wait for a token as one of several.

use fibra_runtime::CancelToken;

use super::selectable::{Line, LineArm, Selectable, sealed};
use crate::turn::Queue;
use crate::wait::list::Node;
use crate::wait::{Claim, RawWake};

impl sealed::Sealed for CancelToken {}

impl Selectable for CancelToken {
    type Outcome<'a> = ();
    type Arm<'a> = LineArm<'a, Self>;

    fn arm(&self) -> LineArm<'_, Self> {
        LineArm::new(self)
    }

    fn take_now(&self) -> bool {
        self.is_cancelled()
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Line for CancelToken {
    fn asks() {}

    fn take_now(&self) -> bool {
        self.is_cancelled()
    }

    unsafe fn enlist_for(&self, node: &Node, wake: RawWake, claim: &Claim, arm: usize) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.enlist_waiter(node, wake, Some((claim, arm))) }
    }
}

impl Queue for CancelToken {
    type Asks = ();

    unsafe fn enlist(&self, node: &Node, wake: RawWake) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.enlist_waiter(node, wake, None) }
    }

    unsafe fn withdraw(&self, node: &Node) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.withdraw_waiter(node) }
    }

    fn pass_on(&self, (): &()) {
        // All are told: nobody misses what one did not use.
    }

    fn departed(&self) {
        // Nobody is in anybody's way.
    }
}
