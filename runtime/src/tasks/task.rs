//! `Task`: a handle of a task, and access to the running task.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};

use crate::tasks::header::{Header, TaskRef};
use crate::tasks::join_error::{Describe, Described, describe};

/// Names a task. A clone is cheap; it keeps the task's record but not its result.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::task;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let named = task::Builder::new().name("one").spawn(|| task::current().id());
/// let other = named.task().clone();
/// assert_eq!((other.name(), other.is_finished()), (Some("one"), false));
/// assert_eq!(named.join().unwrap(), other.id());
/// assert!(other.is_finished());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
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

    /// Returns the number of the task, which no other task of this process has.
    pub fn id(&self) -> u64 {
        self.header().id.get()
    }

    /// Returns the name that the task was built with.
    pub fn name(&self) -> Option<&str> {
        self.header().name()
    }

    /// Returns the place in the source where the task was spawned.
    ///
    /// `None` for a task that this library spawns as a part of an operation.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let (line, task) = (line!(), fibra::spawn(|| ()));
    /// assert_eq!(task.task().spawn_location().unwrap().line(), line);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_location(&self) -> Option<&'static Location<'static>> {
        self.header().spawned_at()
    }

    /// Returns true once the task has ended; for code that must not yield, as under a lock.
    #[doc(hidden)]
    #[inline]
    pub fn has_ended(&self) -> bool {
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
        describe(f, self.id(), self.name(), self.spawn_location())
    }
}

impl Describe for Task {
    fn described(&self) -> Described {
        Described { id: self.id(), name: self.name().map(Box::from), spawned_at: self.spawn_location() }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Task");
        out.field("id", &self.id()).field("name", &self.name());
        out.field("spawn_location", &self.spawn_location().map(ToString::to_string));
        out.field("finished", &self.has_ended()).finish()
    }
}

/// Returns the task that this code runs in.
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

/// Returns the task that this code runs in, if it runs in one.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// assert!(fibra::task::try_current().is_some());
/// assert!(std::thread::spawn(|| fibra::task::try_current().is_none()).join().unwrap());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn try_current() -> Option<Task> {
    crate::tasks::context::task().map(|task| Task::counted(*task))
}
