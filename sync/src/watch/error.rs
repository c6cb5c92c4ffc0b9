//! The errors of watch channels.

#![forbid(unsafe_code)]

use crate::messages::{messages, text};

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

text!(Debug for SendError<T>: _ => "SendError(..)");

messages!(SendError<T>: _ => "sending to a watch channel without receivers");

messages!(RecvError: _ => "waiting on a closed watch channel");

messages!(RecvTimeoutError:
    RecvTimeoutError::Timeout => "timed out waiting on a watch channel",
    RecvTimeoutError::Closed => "waiting on a closed watch channel",
);
