//! The task that runs on a thread of a model.

use std::cell::Cell;
use std::ops::Deref;

use crate::task::TaskRef;

loom::thread_local! {
    static TASK: Cell<Option<TaskRef>> = Cell::new(None);
}

/// A plain thread, unless it was said to run a task.
pub(crate) fn task() -> Option<RunningTask> {
    TASK.with(Cell::get).map(RunningTask)
}

/// The task that a thread runs. No model suspends it.
pub(crate) struct RunningTask(TaskRef);

impl Deref for RunningTask {
    type Target = TaskRef;

    fn deref(&self) -> &TaskRef {
        &self.0
    }
}

/// Runs `f` as that task.
pub(crate) fn run_as(task: TaskRef, f: impl FnOnce()) {
    TASK.with(|current| current.set(Some(task)));
    f();
    TASK.with(|current| current.set(None));
}
