//! The entries of waiters in the lists of a channel.
//!
//! They are made of cells. The owner of the channel's lock writes to them, and after its wake the waiter.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::wait::RawWake;

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

/// A receiver that was unlinked for a send arm: its place, and the right to wake it.
///
/// Until the wake the receiver stays, and no other thread touches the place. Dropped it wakes the receiver without a message;
/// the receiver then tries again.
pub(crate) struct Partner<T> {
    place: NonNull<Receiving<T>>,
    wake: Option<RawWake>,
}

impl<T> Partner<T> {
    /// Makes a partner of the sleeper behind `wake`, which owns `place`.
    pub(crate) fn new(place: NonNull<Receiving<T>>, wake: RawWake) -> Self {
        Partner { place, wake: Some(wake) }
    }

    /// Gives the receiver its message.
    pub(crate) fn give(self, message: T) {
        // SAFETY: the receiver's sleep lasts until its wake, which is still here; it was unlinked, so that no other thread
        // touches its place.
        unsafe { self.place.as_ref() }.message.set(Some(message));
    }
}

impl<T> Drop for Partner<T> {
    fn drop(&mut self) {
        if let Some(wake) = self.wake.take() {
            wake.wake();
        }
    }
}
