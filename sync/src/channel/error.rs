//! The errors of channels, each of one operation.

#![forbid(unsafe_code)]

use crate::messages::{messages, text};

/// The message of a [`send`](super::Sender::send) to a disconnected channel.
///
/// # Examples
/// ```
/// let (sender, receiver) = fibra_sync::channel::bounded(1);
/// drop(receiver);
/// assert_eq!(sender.send(1).unwrap_err().into_inner(), 1);
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct SendError<T>(pub T);

/// The message of a [`try_send`](super::Sender::try_send), and why it was not sent.
///
/// # Examples
/// ```
/// let (sender, _receiver) = fibra_sync::channel::bounded(0);
/// let error = sender.try_send(1).unwrap_err();
/// assert!(error.is_full() && !error.is_disconnected());
/// assert_eq!(error.into_inner(), 1);
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TrySendError<T> {
    /// The channel is full; if it is a rendezvous, no receiver waits.
    Full(T),
    /// The channel is disconnected.
    Disconnected(T),
}

/// The unsent message of a [`send_timeout`](super::Sender::send_timeout).
///
/// The variant tells why it was not sent.
///
/// # Examples
/// ```
/// let (sender, _receiver) = fibra_sync::channel::bounded(0);
/// let error = sender.send_timeout(1, std::time::Duration::ZERO).unwrap_err();
/// assert!(error.is_timeout() && !error.is_disconnected());
/// assert_eq!(error.into_inner(), 1);
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum SendTimeoutError<T> {
    /// There was no room, or no receiver for a rendezvous, until the time was over.
    Timeout(T),
    /// The channel is disconnected.
    Disconnected(T),
}

/// Says that no message will come: the channel is empty and disconnected.
///
/// # Examples
/// ```
/// use fibra_sync::channel::{self, RecvError};
/// let (sender, receiver) = channel::unbounded::<u8>();
/// drop(sender);
/// assert_eq!(receiver.recv(), Err(RecvError));
/// ```
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct RecvError;

/// Why a [`try_recv`](super::Receiver::try_recv) received nothing.
///
/// # Examples
/// ```
/// let (sender, receiver) = fibra_sync::channel::bounded::<i32>(1);
/// assert!(receiver.try_recv().unwrap_err().is_empty());
/// drop(sender);
/// assert!(receiver.try_recv().unwrap_err().is_disconnected());
/// ```
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum TryRecvError {
    /// The channel is empty; if it is a rendezvous, no sender waits.
    Empty,
    /// The channel is empty and disconnected.
    Disconnected,
}

/// Why a [`recv_timeout`](super::Receiver::recv_timeout) received nothing.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// let (sender, receiver) = fibra_sync::channel::bounded::<i32>(1);
/// assert!(receiver.recv_timeout(Duration::ZERO).unwrap_err().is_timeout());
/// drop(sender);
/// assert!(receiver.recv_timeout(Duration::ZERO).unwrap_err().is_disconnected());
/// ```
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum RecvTimeoutError {
    /// No message came in time.
    Timeout,
    /// The channel is empty and disconnected.
    Disconnected,
}

/// Says that no operation was ready for [`try_select`](super::Select::try_select).
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct TrySelectError;

/// Says that no operation was ready in time.
///
/// [`select_timeout`](super::Select::select_timeout) returns it.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct SelectTimeoutError;

/// Says that no operation was ready for [`try_ready`](super::Select::try_ready).
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct TryReadyError;

/// Says that no operation was ready in time.
///
/// [`ready_timeout`](super::Select::ready_timeout) returns it.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct ReadyTimeoutError;

impl<T> SendError<T> {
    /// Returns the message.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TrySendError<T> {
    /// Returns the message.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
        }
    }

    /// Returns true if there was no room.
    pub fn is_full(&self) -> bool {
        matches!(self, TrySendError::Full(_))
    }

    /// Returns true if there is no receiver left.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, TrySendError::Disconnected(_))
    }
}

impl<T> SendTimeoutError<T> {
    /// Returns the message.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout(message) | SendTimeoutError::Disconnected(message) => message,
        }
    }

    /// Returns true if the time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self, SendTimeoutError::Timeout(_))
    }

    /// Returns true if there is no receiver left.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, SendTimeoutError::Disconnected(_))
    }
}

impl TryRecvError {
    /// Returns true if there was nothing to receive.
    pub fn is_empty(&self) -> bool {
        *self == TryRecvError::Empty
    }

    /// Returns true if there is nothing to receive and no sender left.
    pub fn is_disconnected(&self) -> bool {
        *self == TryRecvError::Disconnected
    }
}

impl RecvTimeoutError {
    /// Returns true if the time was over.
    pub fn is_timeout(&self) -> bool {
        *self == RecvTimeoutError::Timeout
    }

    /// Returns true if there is nothing to receive and no sender left.
    pub fn is_disconnected(&self) -> bool {
        *self == RecvTimeoutError::Disconnected
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(message): SendError<T>) -> Self {
        TrySendError::Disconnected(message)
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(SendError(message): SendError<T>) -> Self {
        SendTimeoutError::Disconnected(message)
    }
}

impl From<RecvError> for TryRecvError {
    fn from(RecvError: RecvError) -> Self {
        TryRecvError::Disconnected
    }
}

impl From<RecvError> for RecvTimeoutError {
    fn from(RecvError: RecvError) -> Self {
        RecvTimeoutError::Disconnected
    }
}

// Messages need not be `Debug`.
text!(Debug for SendError<T>: _ => "SendError(..)");

text!(Debug for TrySendError<T>:
    TrySendError::Full(_) => "Full(..)",
    TrySendError::Disconnected(_) => "Disconnected(..)",
);

text!(Debug for SendTimeoutError<T>:
    SendTimeoutError::Timeout(_) => "Timeout(..)",
    SendTimeoutError::Disconnected(_) => "Disconnected(..)",
);

const NO_RECEIVER: &str = "no receiver is left to send to";
const NO_SENDER: &str = "nothing is left to receive, and no sender";

messages!(SendError<T>: _ => NO_RECEIVER);

messages!(TrySendError<T>:
    TrySendError::Full(_) => "the channel is full",
    TrySendError::Disconnected(_) => NO_RECEIVER,
);

messages!(SendTimeoutError<T>:
    SendTimeoutError::Timeout(_) => "the channel was full until the time was over",
    SendTimeoutError::Disconnected(_) => NO_RECEIVER,
);

messages!(RecvError: _ => NO_SENDER);

messages!(TryRecvError:
    TryRecvError::Empty => "the channel is empty",
    TryRecvError::Disconnected => NO_SENDER,
);

messages!(RecvTimeoutError:
    RecvTimeoutError::Timeout => "the channel was empty until the time was over",
    RecvTimeoutError::Disconnected => NO_SENDER,
);

messages!(TrySelectError: _ => "every operation would have to wait");

messages!(SelectTimeoutError: _ => "every operation had to wait until the time was over");

messages!(TryReadyError: _ => "no operation is ready");

messages!(ReadyTimeoutError: _ => "no operation was ready until the time was over");
