//! The errors of broadcast channels.

#![forbid(unsafe_code)]

use crate::messages::{messages, text};

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

fn lagged(missed: u64) -> String {
    format!("the receiver lags behind and has lost {missed} messages")
}

text!(Debug for SendError<T>: _ => "SendError(..)");

messages!(SendError<T>: _ => "sending to a broadcast channel without receivers");

messages!(RecvError:
    RecvError::Closed => CLOSED,
    RecvError::Lagged(missed) => lagged(*missed),
);

messages!(TryRecvError:
    TryRecvError::Empty => "receiving from an empty broadcast channel",
    TryRecvError::Closed => CLOSED,
    TryRecvError::Lagged(missed) => lagged(*missed),
);

messages!(RecvTimeoutError:
    RecvTimeoutError::Timeout => "timed out waiting on a broadcast channel",
    RecvTimeoutError::Closed => CLOSED,
    RecvTimeoutError::Lagged(missed) => lagged(*missed),
);
