//! The errors of broadcast channels.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use crate::messages::messages;

/// Gives a message back that no receiver would get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Tells why a receive has no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// All senders are dropped, and all messages received.
    Closed,
    /// So many messages were lost to this receiver, which goes on with the oldest that is kept.
    Lagged(u64),
}

/// Tells why [`try_recv`](super::Receiver::try_recv) has no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TryRecvError {
    /// There is none now.
    Empty,
    /// All senders are dropped, and all messages received.
    Closed,
    /// So many messages were lost to this receiver, which goes on with the oldest that is kept.
    Lagged(u64),
}

/// Tells why a receive with a time limit has no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvTimeoutError {
    /// None came in time.
    Timeout,
    /// All senders are dropped, and all messages received.
    Closed,
    /// So many messages were lost to this receiver, which goes on with the oldest that is kept.
    Lagged(u64),
}

const CLOSED: &str = "receiving from a closed broadcast channel";

fn lagged(f: &mut fmt::Formatter<'_>, missed: u64) -> fmt::Result {
    write!(f, "the receiver lags behind and has lost {missed} messages")
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

messages!(SendError<T>: _ => "sending to a broadcast channel without receivers");

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Closed => f.write_str(CLOSED),
            RecvError::Lagged(missed) => lagged(f, *missed),
        }
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("receiving from an empty broadcast channel"),
            TryRecvError::Closed => f.write_str(CLOSED),
            TryRecvError::Lagged(missed) => lagged(f, *missed),
        }
    }
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvTimeoutError::Timeout => f.write_str("timed out waiting on a broadcast channel"),
            RecvTimeoutError::Closed => f.write_str(CLOSED),
            RecvTimeoutError::Lagged(missed) => lagged(f, *missed),
        }
    }
}

impl Error for RecvError {}
impl Error for TryRecvError {}
impl Error for RecvTimeoutError {}
