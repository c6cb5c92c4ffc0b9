//! The select arm that waits for the end of a task.

#![forbid(unsafe_code)]

use fibra_runtime::JoinHandle;

use super::arm::{Arm, Purpose};
use crate::wait::{self, JoinArm};

/// Makes the arm `join(handle)`, which leaves the result to the handle.
///
/// # Panics
/// Panics in the task of `handle`.
#[track_caller]
pub fn join_arm<T>(handle: &mut JoinHandle<T>) -> JoinArm<'_> {
    handle.arm()
}

impl Arm for JoinArm<'_> {
    fn try_now(&self) -> bool {
        self.is_finished()
    }

    fn place(&self, _purpose: Purpose) -> Option<&dyn wait::Arm> {
        Some(self)
    }

    fn accept(&self) -> bool {
        true
    }
}
