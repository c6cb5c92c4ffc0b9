//! The select arm that waits for the end of a task.

#![forbid(unsafe_code)]

use fibra_runtime::JoinHandle;

use super::arm::{Arm, Purpose};
use crate::wait;

/// The arm `join(handle)`. It leaves the result to the handle.
pub struct JoinArm<'a>(wait::JoinArm<'a>);

impl<'a> JoinArm<'a> {
    /// Makes an arm for the end of the task of `handle`.
    ///
    /// # Panics
    /// Panics in that task.
    #[track_caller]
    pub fn new<T>(handle: &'a mut JoinHandle<T>) -> Self {
        JoinArm(handle.arm())
    }
}

impl Arm for JoinArm<'_> {
    fn try_now(&self) -> bool {
        self.0.is_finished()
    }

    fn place(&self, _purpose: Purpose) -> Option<&dyn wait::Arm> {
        Some(&self.0)
    }

    fn accept(&self) -> bool {
        true
    }
}
