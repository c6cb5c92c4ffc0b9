//! Receivers as iterators.

use std::fmt;
use std::iter::FusedIterator;

use super::receiver::Receiver;

/// The messages of a channel, waiting for each: what [`Receiver::iter`] returns.
pub struct Iter<'a, T> {
    pub(super) receiver: &'a Receiver<T>,
}

/// The messages that are in a channel: what [`Receiver::try_iter`] returns.
pub struct TryIter<'a, T> {
    pub(super) receiver: &'a Receiver<T>,
}

/// The messages of a channel whose receiver it owns, waiting for each.
pub struct IntoIter<T> {
    pub(super) receiver: Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

// Empty and disconnected is for ever.
impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IntoIter<T> {}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Iter { .. }")
    }
}

impl<T> fmt::Debug for TryIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("TryIter { .. }")
    }
}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("IntoIter { .. }")
    }
}
