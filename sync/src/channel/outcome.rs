//! Results of changes under a channel's lock. The caller acts on them after the unlock.

#![forbid(unsafe_code)]

use super::places::Grant;
use super::queue::Block;
use crate::wait::RawWake;

/// The result of a send.
#[must_use]
pub(crate) enum Put<T> {
    /// The message is in the queue. If `watched`, futures and watchers of the receiving side are to be notified.
    Queued {
        watched: bool,
    },
    /// A receiver has the message, and is to be woken.
    Handed(RawWake),
    Full(T),
    Disconnected(T),
    /// The queue needs another block first.
    Cramped(T),
}

/// The result of a receive.
#[must_use]
pub(crate) enum Take<T> {
    Message(T, Taken<T>),
    /// The first waiting sender is the arm of a select: [`State::pair`](super::state::State::pair) pairs with it at a rendezvous,
    /// [`State::take_past_arms`](super::state::State::take_past_arms) takes from a sender behind it.
    Arm,
    Empty,
    Disconnected,
}

impl<T> Take<T> {
    /// Takes the message of a waiting sender, which is to be woken.
    #[inline]
    pub(crate) fn from_sender((wake, message): (RawWake, Option<T>)) -> Self {
        let message = message.expect("a sender waits with its message, for nothing else");
        Take::Message(
            message,
            Taken {
                freed: Some(Freed { wake: Some(wake), sending_watched: false, receiving_watched: false }),
                spent: None,
            },
        )
    }
}

/// What is to be done outside the lock after a message was taken.
pub(crate) struct Taken<T> {
    pub(crate) freed: Option<Freed>,
    pub(crate) spent: Option<Box<Block<T>>>,
}

/// The result of selecting a send arm.
#[must_use]
pub(crate) enum Reserve<T> {
    Granted(Grant<T>),
    Full,
    Disconnected,
}

/// The result of pairing a receiver with a waiting sender.
#[must_use]
pub(crate) enum Pairing {
    /// The arm of a select has the receiver's place and wake: wake the arm, then sleep.
    Lent(RawWake),
    /// A sender's message is in the receiver's place: wake the sender.
    Given(RawWake),
    /// No sender waits.
    Alone,
}

/// Lists what to do outside the lock after room came free.
#[must_use]
pub(crate) struct Freed {
    /// Wake of a sender that has room now, or handed its message over.
    pub(crate) wake: Option<RawWake>,
    /// Watchers of the sending side are to be woken.
    pub(crate) sending_watched: bool,
    /// Futures that receive are to be notified.
    pub(crate) receiving_watched: bool,
}
