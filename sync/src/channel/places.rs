//! What those who wait have in the lists of a channel.
//!
//! Cells, which whoever has the channel's lock writes to; after its wake the one who waited.

use std::cell::Cell;

use super::partner::Partner;

/// A waiting receiver's entry: the place for its message.
pub(crate) struct Receiving<T> {
    pub(crate) message: Cell<Option<T>>,
}

impl<T> Receiving<T> {
    pub(crate) const fn new() -> Self {
        Receiving { message: Cell::new(None) }
    }
}

/// A waiting sender's entry: the message, or for the arm of a select the place for its permit.
pub(crate) struct Sending<T> {
    pub(crate) message: Cell<Option<T>>,
    pub(crate) grant: Cell<Option<Grant<T>>>,
    /// True for an arm, which has no message before it is selected. Never changes.
    pub(crate) is_arm: bool,
}

/// The right with which a send arm is selected.
pub(crate) enum Grant<T> {
    /// A slot is reserved.
    Room,
    /// A receiver waits for this message only.
    Partner(Partner<T>),
}

impl<T> Sending<T> {
    pub(crate) const fn message(message: T) -> Self {
        Sending { message: Cell::new(Some(message)), grant: Cell::new(None), is_arm: false }
    }

    pub(crate) const fn arm() -> Self {
        Sending { message: Cell::new(None), grant: Cell::new(None), is_arm: true }
    }
}
