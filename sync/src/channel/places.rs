//! What those who wait have in the lists of a channel.
//!
//! Cells, which whoever has the channel's lock writes to; after its wake the one who waited.

use std::cell::Cell;

use super::partner::Partner;

/// What a waiting receiver has in the list: the place for its message.
pub(crate) struct Receiving<T> {
    pub(crate) message: Cell<Option<T>>,
}

impl<T> Receiving<T> {
    pub(crate) const fn new() -> Self {
        Receiving { message: Cell::new(None) }
    }
}

/// What a waiting sender has in the list: the message itself, or, for the arm of a select, the place for its permit.
pub(crate) struct Sending<T> {
    pub(crate) message: Cell<Option<T>>,
    pub(crate) grant: Cell<Option<Grant<T>>>,
    /// An arm has no message before it is selected. Never changes.
    pub(crate) is_arm: bool,
}

/// What a send arm is selected with.
pub(crate) enum Grant<T> {
    /// A slot is reserved.
    Room,
    /// A receiver holds still until it gets the message.
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
