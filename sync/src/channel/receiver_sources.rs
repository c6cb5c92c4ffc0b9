//! The receivers of other channels as sources of a select.
//!
//! Such a receiver has one owner, so what it has been told of stays there for it. The select takes nothing: its case receives.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::selectable::{Selectable, sealed};
use crate::wait::QueueArm;
use crate::{broadcast, oneshot, watch};

/// Makes a receiver of `T` a source, with the type of its arm.
macro_rules! source {
    ($receiver:ty, $arm:ty) => {
        impl<T> sealed::Sealed for $receiver {}

        impl<T> Selectable for $receiver {
            type Outcome<'a>
                = ()
            where
                T: 'a;
            type Arm<'a>
                = $arm
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
    };
}

source!(oneshot::Receiver<T>, QueueArm<'a, oneshot::State<T>, Option<T>, 3, oneshot::Half<T>>);
source!(broadcast::Receiver<T>, QueueArm<'a, broadcast::State<Arc<T>>, (), 2, Self>);
source!(watch::Receiver<T>, QueueArm<'a, watch::Counts, (), 3, Self>);
