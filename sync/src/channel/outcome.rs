//! Results of changes under a channel's lock.

#![forbid(unsafe_code)]

/// The reason why there is no slot for a message.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Disconnected,
    /// The queue [needs](super::queue::Queue::supply) another block first.
    Cramped,
}

/// The reason why no message was received.
#[must_use]
pub(crate) enum Missing {
    Empty,
    Disconnected,
    /// The first waiting sender is the arm of a select: [`State::pair`](super::state::State::pair) pairs with it at a
    /// rendezvous, [`State::serve_sender_past_arms`](super::state::State::serve_sender_past_arms) serves a sender behind it.
    Arm,
}
