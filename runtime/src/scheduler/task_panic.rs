//! The description of a task's panic, for hooks.

#![forbid(unsafe_code)]

use std::any::Any;
use std::fmt;
use std::panic::{Location, PanicHookInfo};

use crate::tasks::task::Task;

/// Describes a panic of a task to the hook of its runtime.
///
/// See [`Builder::on_task_panic`](crate::runtime::builder::Builder::on_task_panic), whose example shows it.
pub struct TaskPanic<'a> {
    pub(super) task: Task,
    pub(super) info: &'a PanicHookInfo<'a>,
    pub(super) previous: &'a (dyn Fn(&PanicHookInfo<'_>) + Send + Sync),
}

impl<'a> TaskPanic<'a> {
    /// Returns the task that panics.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns the message, unless the payload is no text.
    pub fn message(&self) -> Option<&'a str> {
        self.info.payload_as_str()
    }

    /// Returns the value that the panic was raised with.
    pub fn payload(&self) -> &'a (dyn Any + Send) {
        self.info.payload()
    }

    /// Returns the place in the source where the panic was raised.
    pub fn location(&self) -> Option<&'a Location<'a>> {
        self.info.location()
    }

    /// Calls the hook that the process had before its first runtime, which prints the message.
    #[doc(hidden)]
    pub fn call_previous_hook(&self) {
        (self.previous)(self.info);
    }
}

impl fmt::Debug for TaskPanic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPanic")
            .field("task", &self.task)
            .field("message", &self.message())
            .field("location", &self.location().map(ToString::to_string))
            .finish_non_exhaustive()
    }
}

/// Handles the panics of a runtime's own tasks.
pub(crate) type TaskPanicHook = dyn Fn(&TaskPanic<'_>) + Send + Sync;
