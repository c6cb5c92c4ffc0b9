//! A receiver that holds still until a selected send arm has its message.

use std::ptr::NonNull;

use super::places::Receiving;
use crate::wait::RawWake;

/// The place of a receiver that was unlinked, and the right to wake it. Until then it stays, and nobody else touches the
/// place. Dropped it wakes the receiver without a message, which then tries again.
pub(crate) struct Partner<T> {
    place: NonNull<Receiving<T>>,
    wake: Option<RawWake>,
}

impl<T> Partner<T> {
    /// `place` is that of the sleeper behind `wake`.
    pub(crate) fn new(place: NonNull<Receiving<T>>, wake: RawWake) -> Self {
        Partner { place, wake: Some(wake) }
    }

    /// Gives it the message.
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
