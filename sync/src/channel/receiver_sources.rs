//! The receivers of other channels as sources of a select.
//!
//! Such a receiver has one owner, so what it has been told of stays there for it. The select takes nothing: its case receives.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::selectable::{Selectable, sealed};
use crate::wait::QueueArm;
use crate::{broadcast, oneshot, watch};

impl<T> sealed::Sealed for oneshot::Receiver<T> {}
impl<T> sealed::Sealed for broadcast::Receiver<T> {}
impl<T> sealed::Sealed for watch::Receiver<T> {}

impl<T> Selectable for oneshot::Receiver<T> {
    type Outcome<'a>
        = ()
    where
        T: 'a;
    type Arm<'a>
        = QueueArm<'a, oneshot::State<T>, Option<T>, 3, oneshot::Half<T>>
    where
        T: 'a;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.has_outcome().then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl<T> Selectable for broadcast::Receiver<T> {
    type Outcome<'a>
        = ()
    where
        T: 'a;
    type Arm<'a>
        = QueueArm<'a, broadcast::State<Arc<T>>, (), 2, Self>
    where
        T: 'a;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.has_outcome().then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}

impl<T> Selectable for watch::Receiver<T> {
    type Outcome<'a>
        = ()
    where
        T: 'a;
    type Arm<'a>
        = QueueArm<'a, watch::Counts, (), 3, Self>
    where
        T: 'a;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.has_outcome().then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}
