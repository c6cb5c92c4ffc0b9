//! The errors of a group's joins.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use crate::tasks::join_error::JoinError;

/// Says that no task of the group has ended in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StillRunning;

impl fmt::Display for StillRunning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no task of the group has ended in time")
    }
}

impl Error for StillRunning {}

/// Tells the first failure of a group's tasks.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::structured::{GroupError, TaskGroup};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let group = TaskGroup::new();
/// group.spawn(|| Err::<u8, _>("refused"));
/// let failure = group.try_join_all().unwrap_err();
/// assert!(matches!(failure, GroupError::Failed("refused")));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub enum GroupError<E> {
    /// A task returned an error.
    Failed(E),
    /// A task panicked, was cancelled or could not start.
    Ended(JoinError),
}

impl<E: fmt::Display> fmt::Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Failed(error) => error.fmt(f),
            GroupError::Ended(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for GroupError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            GroupError::Failed(error) => error.source(),
            GroupError::Ended(error) => error.source(),
        }
    }
}
