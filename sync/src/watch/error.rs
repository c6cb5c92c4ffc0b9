//! What can go wrong with a watch channel.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

/// Gives a value back that no receiver would see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Says that all senders are dropped: no change will come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecvError;

/// Tells why a wait with a time limit ended without a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvTimeoutError {
    /// It did not come in time.
    Timeout,
    /// All senders are dropped: no change comes any more.
    Closed,
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sending to a watch channel without receivers")
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("waiting on a closed watch channel")
    }
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvTimeoutError::Timeout => "timed out waiting on a watch channel",
            RecvTimeoutError::Closed => "waiting on a closed watch channel",
        })
    }
}

impl<T> Error for SendError<T> {}
impl Error for RecvError {}
impl Error for RecvTimeoutError {}
