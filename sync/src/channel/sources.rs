//! The events, counts and permits as sources of a select.

#![forbid(unsafe_code)]

use super::selectable::{Selectable, sealed};
use crate::auto_reset_event::{Age, AutoResetEvent};
use crate::countdown::Countdown;
use crate::countdown_event::CountdownEvent;
use crate::manual_reset_event::ManualResetEvent;
use crate::notify::{Notify, State};
use crate::semaphore::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};
use crate::wait::QueueArm;
use crate::wait_group::WaitGroup;

impl sealed::Sealed for AutoResetEvent {}
impl sealed::Sealed for ManualResetEvent {}
impl sealed::Sealed for CountdownEvent {}
impl sealed::Sealed for Notify {}
impl sealed::Sealed for WaitGroup {}
impl sealed::Sealed for Semaphore {}

impl Selectable for AutoResetEvent {
    type Outcome<'a> = ();
    type Arm<'a> = QueueArm<'a, (), Age, 1, Self>;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.take_set().map(sealed::Taken)
    }

    fn served(&self, arm: &Self::Arm<'_>) -> sealed::Taken {
        sealed::Taken(arm.replace(0))
    }

    fn give_back(&self, of_set: sealed::Taken) {
        self.pass_on(of_set.0);
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for Notify {
    type Outcome<'a> = ();
    type Arm<'a> = QueueArm<'a, State, bool>;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.take().then_some(sealed::Taken(1))
    }

    fn served(&self, arm: &Self::Arm<'_>) -> sealed::Taken {
        sealed::Taken(arm.replace(false).into())
    }

    fn give_back(&self, is_of_one: sealed::Taken) {
        if is_of_one.0 == 1 {
            self.notify_one();
        }
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for ManualResetEvent {
    type Outcome<'a> = ();
    type Arm<'a> = QueueArm<'a, (), (), 1, Self>;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.has_set().then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for CountdownEvent {
    type Outcome<'a> = ();
    type Arm<'a> = QueueArm<'a, (), (), 1, Countdown>;

    fn arm(&self) -> Self::Arm<'_> {
        self.state.arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        (self.state.count() == 0).then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for WaitGroup {
    type Outcome<'a> = ();
    type Arm<'a> = QueueArm<'a, (), (), 1, Countdown>;

    fn arm(&self) -> Self::Arm<'_> {
        self.state.arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        (self.state.count() == 0).then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl Selectable for Semaphore {
    type Outcome<'a> = SemaphorePermit<'a>;
    type Arm<'a> = QueueArm<'a, (), usize, 1, Self>;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        match self.take(1) {
            Ok(()) => Some(sealed::Taken(1)),
            Err(TryAcquireError::Closed) => Some(sealed::Taken(0)),
            Err(TryAcquireError::NoPermits) => None,
        }
    }

    fn served(&self, arm: &Self::Arm<'_>) -> sealed::Taken {
        sealed::Taken(arm.replace(1) as u64)
    }

    fn give_back(&self, permits: sealed::Taken) {
        drop(SemaphorePermit::new(self, permits.0 as usize));
    }

    fn outcome(&self, permits: sealed::Taken) -> SemaphorePermit<'_> {
        match permits.0 {
            0 => AcquireError::new().raise(),
            _ => SemaphorePermit::new(self, 1),
        }
    }
}
