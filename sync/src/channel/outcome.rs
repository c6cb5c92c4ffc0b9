//! What a change under a channel's lock decides; who made it acts on it after the unlock.

use super::places::Grant;
use super::queue::Block;
use crate::wait::RawWake;

/// What became of a message that was to be sent.
#[must_use]
pub(crate) enum Put<T> {
    /// It lies in the queue. If `watched`, watchers of the receiving side are to be woken.
    Queued {
        watched: bool,
    },
    /// A receiver has it, which is to be woken.
    Handed(RawWake),
    Full(T),
    Disconnected(T),
    /// The queue needs another block first.
    Cramped(T),
}

/// What a receiver found.
#[must_use]
pub(crate) enum Take<T> {
    Message(T, Taken<T>),
    /// The arm of a select waits in front: at a rendezvous to be paired with, see [`State::pair`](super::state::State::pair).
    /// Behind it there may be a sender, see [`State::take_past_arms`](super::state::State::take_past_arms).
    Arm,
    Empty,
    Disconnected,
}

impl<T> Take<T> {
    /// The message of a sender that waited with it, and is to be woken.
    #[inline]
    pub(crate) fn from_sender((wake, message): (RawWake, Option<T>)) -> Self {
        let message = message.expect("a sender waits with its message, for nothing else");
        Take::Message(message, Taken { freed: Freed { wake: Some(wake), ..Freed::NOTHING }, spent: None })
    }
}

/// What is to be done outside the lock after a message was taken.
pub(crate) struct Taken<T> {
    pub(crate) freed: Freed,
    pub(crate) spent: Option<Box<Block<T>>>,
}

/// What a permit for an arm is made of.
#[must_use]
pub(crate) enum Reserve<T> {
    Granted(Grant<T>),
    Full,
    Disconnected,
}

/// How a receiver and a waiting sender came together.
#[must_use]
pub(crate) enum Pairing {
    /// The arm of a select has the receiver's place and wake: wake the arm, then sleep.
    Lent(RawWake),
    /// A sender's message is in the receiver's place: wake it.
    Given(RawWake),
    /// Nobody waits any more.
    Alone,
}

/// What is to be done outside the lock after room came free.
#[must_use]
pub(crate) struct Freed {
    /// A sender whose message was taken, or that has room now.
    pub(crate) wake: Option<RawWake>,
    /// Watchers of the sending side are to be woken.
    pub(crate) sending_watched: bool,
    /// Futures that receive are to be notified.
    pub(crate) receiving_watched: bool,
}

impl Freed {
    pub(crate) const NOTHING: Freed = Freed { wake: None, sending_watched: false, receiving_watched: false };
}
