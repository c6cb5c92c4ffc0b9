//! The errors of a semaphore, with tokio's names and messages.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

/// Reports that a [`Semaphore`](crate::Semaphore) is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcquireError(());

/// Reports that a request for permits failed, at once or at its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Too few permits are free, or other requests wait.
    NoPermits,
}

impl AcquireError {
    /// Makes the error of a request without a deadline, which fails for one reason only.
    pub(crate) fn new() -> Self {
        AcquireError(())
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("semaphore closed")
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryAcquireError::Closed => "semaphore closed",
            TryAcquireError::NoPermits => "no permits available",
        })
    }
}

impl Error for AcquireError {}
impl Error for TryAcquireError {}
