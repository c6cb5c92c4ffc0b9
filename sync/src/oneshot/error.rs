//! The errors of oneshot channels.

#![forbid(unsafe_code)]

use crate::messages::messages;

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

messages!(RecvError: _ => "receiving from a closed oneshot channel");

messages!(TryRecvError:
    TryRecvError::Empty => "receiving from an empty oneshot channel",
    TryRecvError::Closed => "receiving from a closed oneshot channel",
);

messages!(RecvTimeoutError:
    RecvTimeoutError::Timeout => "timed out waiting on a oneshot channel",
    RecvTimeoutError::Closed => "receiving from a closed oneshot channel",
);
