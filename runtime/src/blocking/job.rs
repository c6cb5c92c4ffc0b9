//! Jobs of the blocking pool: tasks that have not run, and closures on the stacks of sleeping tasks.

use std::ptr::NonNull;

use crate::scheduler::shared::Shared;
use crate::scheduler::virtual_time::Hold;
use crate::tasks::context;
use crate::tasks::header::TaskRef;
use crate::tasks::join_error::{Describe, JoinError};
use crate::tasks::raw::discard_here;
use crate::tasks::task::Task;

/// A job, which a thread of the pool uses up.
pub(super) enum Job {
    Task(Queued),
    /// A task that may never end.
    Call(Queued),
    Borrowed(Borrowed),
}

impl Job {
    pub(super) fn task(&self) -> Option<&Queued> {
        match self {
            Job::Task(task) | Job::Call(task) => Some(task),
            Job::Borrowed(_) => None,
        }
    }
}

/// A task that is queued, or was taken from the queue, and has not run. It has the runtime's count.
#[must_use = "a task that neither runs nor is ended keeps its runtime alive"]
pub(super) struct Queued {
    task: TaskRef,
    _hold: Hold,
}

// SAFETY: a task that may run on the pool is `Send` by the bounds of `spawn_blocking` and `spawn_call`.
unsafe impl Send for Queued {}

impl Queued {
    /// # Safety
    /// The task is new, and the caller gives the runtime's count.
    pub(super) unsafe fn new(task: TaskRef, shared: &Shared) -> Self {
        Queued { task, _hold: shared.virtual_time.hold() }
    }

    pub(super) fn handle(&self) -> Task {
        Task::counted(self.task)
    }

    /// Returns true if the end of the runtime lets it run.
    pub(super) fn is_sheltered(&self) -> bool {
        self.task.header().is_sheltered()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.task.header().cancel_flags.is_cancelled()
    }

    pub(super) fn cancel(&self) {
        self.task.header().cancel_flags.set_cancelled();
    }

    /// Runs the task in this thread.
    pub(super) fn run(self) {
        self.task.header().set_started();
        context::set_pool_task(Some(self.task));
        // SAFETY: this value is used up, so the task runs once; the runtime's count came with it.
        unsafe {
            (self.task.header().vtable.run)(self.task);
            self.task.release();
        }
        context::set_pool_task(None);
    }

    /// Ends the task un-run, with an error.
    pub(super) fn end(self, error: impl FnOnce(&dyn Describe) -> JoinError) {
        let error = error(&self.handle());
        // SAFETY: as in `run`.
        unsafe { discard_here(self.task, error) };
    }
}

/// A closure on the stack of a task that sleeps for it.
pub(super) struct Borrowed {
    frame: NonNull<()>,
    run: unsafe fn(NonNull<()>),
}

// SAFETY: the contract of `new` allows any thread.
unsafe impl Send for Borrowed {}

impl Borrowed {
    /// # Safety
    /// `run` may be called with the frame, once, on any thread.
    pub(super) unsafe fn new(frame: NonNull<()>, run: unsafe fn(NonNull<()>)) -> Self {
        Borrowed { frame, run }
    }

    /// Runs the closure and wakes its task.
    pub(super) fn run(self) {
        // SAFETY: the contract of `new` allows one call, and this one uses `self` up.
        unsafe { (self.run)(self.frame) }
    }
}
