//! A receiver that holds still until a selected send arm has its message.

use std::ptr::NonNull;

use super::places::Receiving;
use crate::wait::RawWake;

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
