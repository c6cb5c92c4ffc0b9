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

/// Makes a type a source of which a select takes nothing, with its arm and whether it is ready.
macro_rules! source {
    ([$($value:ident)?] $source:ty, $arm:ty, $this:ident => $place:expr, $ready:expr) => {
        impl$(<$value>)? sealed::Sealed for $source {}

        impl$(<$value>)? Selectable for $source {
            type Outcome<'a>
                = ()
            where
                Self: 'a;
            type Arm<'a>
                = $arm
            where
                Self: 'a;

            fn arm(&self) -> Self::Arm<'_> {
                let $this = self;
                $place
            }

            fn take_now(&self) -> Option<sealed::Taken> {
                let $this = self;
                $ready.then_some(sealed::Taken(0))
            }

            fn outcome(&self, _taken: sealed::Taken) {}
        }
    };
}

type CountArm<'a> = QueueArm<'a, (), (), 1, Countdown>;

source!([] ManualResetEvent, QueueArm<'a, (), (), 1, Self>, it => it.queue_arm(), it.has_set());
source!([] CountdownEvent, CountArm<'a>, it => it.state.arm(), (it.state.count() == 0));
source!([] WaitGroup, CountArm<'a>, it => it.state.arm(), (it.state.count() == 0));

impl sealed::Sealed for AutoResetEvent {}
impl sealed::Sealed for Notify {}
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
