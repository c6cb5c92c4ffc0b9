//! A task, of which there is none: who waits in a model is a thread, a future or a sleeper of the model's own.

use std::ptr::NonNull;

use crate::wait::{Kind, Waiter};

pub(crate) enum TaskRef {}

impl TaskRef {
    pub(crate) fn of_waiter(_waiter: NonNull<Waiter>, _kind: &'static Kind) -> Option<Self> {
        None
    }

    pub(crate) fn notify(self) {
        match self {}
    }
}

#[path = "../../../runtime/tests/loom/payload.rs"]
pub(crate) mod raw;
