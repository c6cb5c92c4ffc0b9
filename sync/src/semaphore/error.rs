//! The errors of a semaphore, with tokio's names and messages.

#![forbid(unsafe_code)]

use crate::messages::messages;

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

    /// Panics, for a request that cannot return an error.
    #[cold]
    #[track_caller]
    pub(crate) fn raise<T>(self) -> T {
        panic!("the semaphore is closed: `acquire_unless_closed` returns an error instead of this panic")
    }
}

messages!(AcquireError: _ => "semaphore closed");

messages!(TryAcquireError:
    TryAcquireError::Closed => "semaphore closed",
    TryAcquireError::NoPermits => "no permits available",
);
