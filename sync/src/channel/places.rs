//! Waiters of a channel: the lanes of its queue, and the data of a waiter.

#![forbid(unsafe_code)]

use std::mem;

use crate::wait::{Lent, Waiters};

/// Receivers that block, and receive arms of selects. A sender gives them its message.
pub(crate) const RECEIVERS: usize = 0;
/// Senders with their message, and those without: send arms of selects and reservations.
pub(crate) const SENDERS: usize = 1;
/// Futures that receive. They are notified of a message, and try again.
pub(crate) const FUTURES: usize = 2;
/// Selects that wait until an operation is ready. Every change that may make one ready tells them all.
pub(crate) const WATCHERS: usize = 3;

pub(crate) const LANES: usize = 4;

/// The waiters of a channel, under its lock.
pub(crate) type Waiting<'a, T> = Waiters<'a, Place<T>, LANES>;

/// Data of a waiter.
pub(crate) enum Place<T> {
    /// The message of a waiting sender, or for a receiver that was served. None for one that waits, for a watcher, and once it
    /// was taken.
    Message(Option<T>),
    /// The right to send, once it was granted: of the send arm of a select, or of a reservation, which make their message then.
    Arm(Option<Grant<T>>),
}

/// The right with which a send arm is selected, or a place reserved.
pub(crate) enum Grant<T> {
    /// A slot is reserved.
    Room,
    /// A receiver waits for this message alone. The drop wakes the receiver, which tries again.
    Partner(Lent<Place<T>>),
}

impl<T> Place<T> {
    pub(crate) const EMPTY: Self = Place::Message(None);
    pub(crate) const ARM: Self = Place::Arm(None);

    #[inline(always)]
    pub(crate) fn of(message: T) -> Self {
        Place::Message(Some(message))
    }

    pub(crate) fn has_message(&self) -> bool {
        matches!(self, Place::Message(Some(_)))
    }

    pub(crate) fn is_arm(&self) -> bool {
        matches!(self, Place::Arm(None))
    }

    /// Puts a message into the place of a receiver, which has none.
    #[inline(always)]
    pub(crate) fn give(&mut self, message: T) {
        // An assignment would drop what was there, and keep the message elsewhere meanwhile.
        mem::forget(mem::replace(self, Place::of(message)));
    }

    /// Takes the message, if there is one.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<T> {
        match self {
            Place::Message(message) => message.take(),
            Place::Arm(_) => None,
        }
    }

    /// Takes the right to send, if it was granted.
    pub(crate) fn take_grant(&mut self) -> Option<Grant<T>> {
        match self {
            Place::Message(_) => None,
            Place::Arm(grant) => grant.take(),
        }
    }
}
