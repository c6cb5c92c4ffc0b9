//! Results of changes under a channel's lock.

#![forbid(unsafe_code)]

use super::places::Grant;

/// Where a message that was sent is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// In the queue.
    Queued,
    /// With a receiver that waited.
    Handed,
}

/// The reason why a message was not sent.
#[must_use]
pub(crate) enum Refused<T> {
    Full(T),
    Disconnected(T),
    /// The queue [needs](super::queue::Queue::supply) another block first.
    Cramped(T),
}

/// The reason why no message was received.
#[must_use]
pub(crate) enum Missing {
    Empty,
    Disconnected,
    /// The first waiting sender is the arm of a select: [`State::pair`](super::state::State::pair) pairs with it at a
    /// rendezvous, [`State::take_past_arms`](super::state::State::take_past_arms) takes from a sender behind it.
    Arm,
}

/// The result of selecting a send arm.
#[must_use]
pub(crate) enum Reserve<T> {
    Granted(Grant<T>),
    Full,
    Disconnected,
}
