//! The cancellation token as a source of a select.

#![forbid(unsafe_code)]

use fibra_runtime::CancelToken;

use super::selectable::{Selectable, sealed};
use crate::wait::QueueArm;

impl sealed::Sealed for CancelToken {}

impl Selectable for CancelToken {
    type Outcome<'a> = ();
    type Arm<'a> = QueueArm<'a, bool, ()>;

    fn arm(&self) -> Self::Arm<'_> {
        self.queue_arm()
    }

    fn take_now(&self) -> Option<sealed::Taken> {
        self.is_cancelled().then_some(sealed::Taken(0))
    }

    fn outcome(&self, _taken: sealed::Taken) {}
}
