//! What can go wrong with a oneshot channel.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

/// Says that no value comes: the sender was dropped, or the receiver closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecvError;

/// Tells why [`try_recv`](super::Receiver::try_recv) has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TryRecvError {
    /// None has come yet.
    Empty,
    /// None comes any more.
    Closed,
}

/// Tells why a receive with a time limit has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvTimeoutError {
    /// None came in time. It may still come.
    Timeout,
    /// None comes any more.
    Closed,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("receiving from a closed oneshot channel")
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRecvError::Empty => "receiving from an empty oneshot channel",
            TryRecvError::Closed => "receiving from a closed oneshot channel",
        })
    }
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvTimeoutError::Timeout => "timed out waiting on a oneshot channel",
            RecvTimeoutError::Closed => "receiving from a closed oneshot channel",
        })
    }
}

impl Error for RecvError {}
impl Error for TryRecvError {}
impl Error for RecvTimeoutError {}
