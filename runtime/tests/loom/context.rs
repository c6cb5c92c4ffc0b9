//! Who runs on a thread of a model.

use std::cell::Cell;

use crate::task::TaskRef;

loom::thread_local! {
    static TASK: Cell<Option<TaskRef>> = Cell::new(None);
}

/// A plain thread, unless it was said to run a task.
pub(crate) fn task() -> Option<TaskRef> {
    TASK.with(Cell::get)
}

/// Runs `f` as that task.
pub(crate) fn run_as(task: TaskRef, f: impl FnOnce()) {
    TASK.with(|current| current.set(Some(task)));
    f();
    TASK.with(|current| current.set(None));
}
