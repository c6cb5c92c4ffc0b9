//! The events, counts and permits as what a select can wait for.

use std::cell::Cell;

use super::selectable::{Line, LineArm, Selectable, sealed};
use crate::auto_reset_event::AutoResetEvent;
use crate::countdown::Countdown;
use crate::countdown_event::CountdownEvent;
use crate::manual_reset_event::ManualResetEvent;
use crate::semaphore::{Semaphore, SemaphorePermit};
use crate::wait::list::Node;
use crate::wait::{Claim, RawWake};
use crate::wait_group::WaitGroup;

impl sealed::Sealed for AutoResetEvent {}
impl sealed::Sealed for ManualResetEvent {}
impl sealed::Sealed for CountdownEvent {}
impl sealed::Sealed for WaitGroup {}
impl sealed::Sealed for Semaphore {}

impl Selectable for AutoResetEvent {
    type Outcome<'a> = ();
    type Arm<'a> = LineArm<'a, Self>;

    fn arm(&self) -> Self::Arm<'_> {
        LineArm::new(self)
    }

    fn take_now(&self) -> bool {
        Line::take_now(self)
    }

    fn give_back(&self) {
        self.set();
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for ManualResetEvent {
    type Outcome<'a> = ();
    type Arm<'a> = LineArm<'a, Self>;

    fn arm(&self) -> Self::Arm<'_> {
        LineArm::new(self)
    }

    fn take_now(&self) -> bool {
        Line::take_now(self)
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for CountdownEvent {
    type Outcome<'a> = ();
    type Arm<'a> = LineArm<'a, Countdown>;

    fn arm(&self) -> Self::Arm<'_> {
        LineArm::new(self.countdown())
    }

    fn take_now(&self) -> bool {
        Line::take_now(self.countdown())
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for WaitGroup {
    type Outcome<'a> = ();
    type Arm<'a> = LineArm<'a, Countdown>;

    fn arm(&self) -> Self::Arm<'_> {
        LineArm::new(self.countdown())
    }

    fn take_now(&self) -> bool {
        Line::take_now(self.countdown())
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for Semaphore {
    type Outcome<'a> = SemaphorePermit<'a>;
    type Arm<'a> = LineArm<'a, Self>;

    fn arm(&self) -> Self::Arm<'_> {
        LineArm::new(self)
    }

    fn take_now(&self) -> bool {
        Line::take_now(self)
    }

    fn give_back(&self) {
        self.add_permits(1);
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
        self.count() == 0
    }

    unsafe fn enlist_for(&self, node: &Node<Cell<u64>>, wake: RawWake, claim: &Claim, arm: usize) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.join_for(node, wake, claim, arm) }
    }
}
