//! The handle of a task, and the task that runs here.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::tasks::header::{Header, TaskRef};

/// A handle to a task: cheap to clone, keeps the task's record but not its result.
pub struct Task(TaskRef);

impl Task {
    /// # Safety
    /// The caller gives one of its counts.
    pub(crate) unsafe fn from_count(task: TaskRef) -> Self {
        Task(task)
    }

    /// Makes a handle with a count of its own; the caller vouches for the task being alive.
    pub(crate) fn counted(task: TaskRef) -> Self {
        task.retain();
        Task(task)
    }

    pub(crate) fn as_ref(&self) -> TaskRef {
        self.0
    }

    pub(crate) fn header(&self) -> &Header {
        self.0.header()
    }

    /// The number of the task, of which no other task of this process has the same.
    pub fn id(&self) -> u64 {
        self.header().id
    }

    /// The name it was built with.
    pub fn name(&self) -> Option<&str> {
        self.header().name()
    }

    /// True once the task has ended.
    pub fn is_finished(&self) -> bool {
        self.header().join.is_done()
    }
}

impl Clone for Task {
    fn clone(&self) -> Self {
        Task::counted(self.0)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: this handle owns a count and is gone after this.
        unsafe { self.0.release() }
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Task {}

impl Hash for Task {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

// What a handle does to a task is atomic, so a panic between two uses leaves nothing half done.
impl UnwindSafe for Task {}
impl RefUnwindSafe for Task {}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "task '{name}' (id {})", self.id()),
            None => write!(f, "task (id {})", self.id()),
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Task");
        out.field("id", &self.id()).field("name", &self.name()).field("finished", &self.is_finished());
        out.finish()
    }
}

/// The task that this code runs in.
///
/// # Panics
/// On a thread that runs no task; [`try_current`] answers `None` there.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let handle = task::Builder::new().name("greeter").spawn(|| task::current().name().unwrap().to_owned());
/// assert_eq!(handle.join().unwrap(), "greeter");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn current() -> Task {
    try_current()
        .expect("this thread runs no task: call from inside `fibra::run`, `Runtime::run` or a spawned task")
}

/// The task that this code runs in, if it runs in one.
pub fn try_current() -> Option<Task> {
    crate::tasks::context::task().map(|task| Task::counted(*task))
}
