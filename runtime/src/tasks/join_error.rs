//! `JoinError`: why a task has no result.

#![forbid(unsafe_code)]

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Mutex;

use crate::base::payload::drop_payload;
use crate::tasks::panic_log::Entry;

/// Tells why a task has no result.
///
/// One pointer, so that results that are none of these move in registers.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let failed = fibra::spawn(|| panic!("no luck")).join().unwrap_err();
/// assert!(failed.is_panic() && !failed.is_cancelled() && !failed.is_not_started());
/// assert!(failed.io_error().is_none());
/// assert_eq!(failed.into_panic().downcast_ref(), Some(&"no luck"));
/// let idle = fibra::spawn(fibra::task::park);
/// idle.cancel();
/// assert!(idle.join().unwrap_err().try_into_panic().unwrap_err().is_cancelled());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JoinError(Option<Box<Reason>>);

struct Reason {
    cause: Cause,
    task: Described,
}

/// Keeps what reports say of a task.
pub(crate) struct Described {
    pub(super) id: u64,
    pub(super) name: Option<Box<str>>,
    pub(super) spawned_at: Option<&'static Location<'static>>,
}

/// A task, as its error knows it.
pub(crate) trait Describe {
    fn described(&self) -> Described;
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, self.id, self.name.as_deref(), self.spawned_at)
    }
}

/// Formats a task: by its name, or else by the place where it was spawned.
pub fn describe(
    f: &mut fmt::Formatter<'_>,
    id: u64,
    name: Option<&str>,
    spawned_at: Option<impl fmt::Display>,
) -> fmt::Result {
    match (name, spawned_at) {
        (Some(name), _) => write!(f, "task '{name}' (id {id})"),
        (None, Some(place)) => write!(f, "task (id {id}, spawned at {place})"),
        (None, None) => write!(f, "task (id {id})"),
    }
}

enum Cause {
    Panicked(Payload),
    Cancelled,
    NotStarted(io::Error),
}

/// The payload of a panic. Behind a mutex only so that the error is `Sync`, as `Box<dyn Error +
/// Send + Sync>` wants it.
struct Payload {
    value: Mutex<Option<Box<dyn Any + Send>>>,
    /// Says that no caller has observed the panic, where the runtime keeps a log.
    entry: Option<Entry>,
}

impl Payload {
    fn take(&mut self) -> Option<Box<dyn Any + Send>> {
        self.value.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    fn get(&mut self) -> &(dyn Any + Send) {
        let payload = self.value.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        payload.as_deref().expect("only taken with the error itself")
    }

    /// Returns the message of a panic that has one.
    fn message(&self) -> Option<String> {
        let payload = self.value.lock().ok()?;
        let text = payload.as_ref()?.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.as_ref()?.downcast_ref::<String>().cloned())
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(payload) = self.take() {
            drop_payload(payload);
        }
    }
}

impl JoinError {
    #[cold]
    fn of(cause: Cause, task: &dyn Describe) -> Self {
        JoinError(Some(Box::new(Reason { cause, task: task.described() })))
    }

    pub(crate) fn panicked(task: &dyn Describe, payload: Box<dyn Any + Send>) -> Self {
        let payload = Payload { value: Mutex::new(Some(payload)), entry: None };
        let mut error = Self::of(Cause::Panicked(payload), task);
        let entry = Entry::new(error.task_id(), || error.to_string());
        if let Some(payload) = error.payload() {
            payload.entry = entry;
        }
        error
    }

    /// Says that no caller gets this error.
    pub(crate) fn unobserved(&mut self) {
        if let Some(entry) = self.payload().and_then(|payload| payload.entry.as_mut()) {
            entry.stay();
        }
    }

    fn payload(&mut self) -> Option<&mut Payload> {
        match &mut self.0.as_mut()?.cause {
            Cause::Panicked(payload) => Some(payload),
            Cause::Cancelled | Cause::NotStarted(_) => None,
        }
    }

    pub(crate) fn cancelled(task: &dyn Describe) -> Self {
        Self::of(Cause::Cancelled, task)
    }

    /// Makes the error of a task that its owner runs itself: cancelled, without a name. Does not allocate, since no caller
    /// reads it.
    pub(crate) fn taken_back() -> Self {
        JoinError(None)
    }

    fn cause(&self) -> &Cause {
        static CANCELLED: Cause = Cause::Cancelled;
        self.0.as_ref().map_or(&CANCELLED, |reason| &reason.cause)
    }

    pub(crate) fn not_started(task: &dyn Describe, error: io::Error) -> Self {
        Self::of(Cause::NotStarted(error), task)
    }

    /// Returns true if the task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.cause(), Cause::Panicked(_))
    }

    /// Returns true if the task was cancelled, also by the end of its runtime.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause(), Cause::Cancelled)
    }

    /// Returns true if the task never ran because it lacked something to start.
    pub fn is_not_started(&self) -> bool {
        matches!(self.cause(), Cause::NotStarted(_))
    }

    /// Returns what the task lacked to start: a stack, or a thread of the pool.
    pub fn io_error(&self) -> Option<&io::Error> {
        match self.cause() {
            Cause::NotStarted(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the value that the task panicked with, if it is a `T`.
    ///
    /// Takes `&mut self`, since the payload of a panic need not be `Sync`.
    /// [`into_panic`](JoinError::into_panic) gives the payload itself.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let mut error = fibra::spawn(|| std::panic::panic_any(7_u8)).join().unwrap_err();
    /// assert_eq!(error.downcast_ref::<u8>(), Some(&7));
    /// assert_eq!(error.downcast_ref::<&str>(), None);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn downcast_ref<T: Any>(&mut self) -> Option<&T> {
        self.payload()?.get().downcast_ref()
    }

    /// Returns the [`id`](crate::Task::id) of the task, and 0 for none of the caller's.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::task::Builder::new().name("unlucky").spawn(|| panic!("no luck"));
    /// let id = task.task().id();
    /// let error = task.join().unwrap_err();
    /// assert_eq!((error.task_id(), error.task_name()), (id, Some("unlucky")));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn task_id(&self) -> u64 {
        self.0.as_ref().map_or(0, |reason| reason.task.id)
    }

    /// Returns the name of the task, if it has one.
    pub fn task_name(&self) -> Option<&str> {
        self.0.as_ref()?.task.name.as_deref()
    }

    /// Returns the payload of the panic, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    /// If the task did not panic.
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic().unwrap_or_else(|error| panic!("no panic to take: {error}"))
    }

    /// Returns the payload of the panic.
    ///
    /// # Errors
    /// The error itself, if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        match self.0.map(|reason| *reason) {
            Some(Reason { cause: Cause::Panicked(mut payload), .. }) => {
                Ok(payload.take().expect("only taken with the error itself"))
            }
            reason => Err(JoinError(reason.map(Box::new))),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(reason) => reason.task.fmt(f)?,
            None => f.write_str("a task")?,
        }
        match self.cause() {
            Cause::Panicked(payload) => match payload.message() {
                Some(message) => write!(f, " panicked: {message}"),
                None => write!(f, " panicked"),
            },
            Cause::Cancelled => write!(f, " was cancelled"),
            Cause::NotStarted(error) => write!(f, " could not start: {error}"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl Error for JoinError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.cause() {
            Cause::NotStarted(error) => Some(error),
            _ => None,
        }
    }
}

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        match error.0.map(|reason| *reason) {
            Some(Reason { cause: Cause::NotStarted(io), .. }) => io,
            reason => io::Error::other(JoinError(reason.map(Box::new))),
        }
    }
}
