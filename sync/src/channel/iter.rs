//! Receivers as iterators.

#![forbid(unsafe_code)]

use std::iter::FusedIterator;

use super::queue::Queue;
use super::receiver::{Receiver, Source};
use crate::wait;

/// Iterates over messages and waits for each; made by [`Receiver::iter`].
pub struct Iter<'a, T> {
    pub(super) receiver: &'a Receiver<T>,
}

/// Iterates over the messages in a channel; made by [`Receiver::try_iter`].
pub struct TryIter<'a, T> {
    pub(super) receiver: &'a Receiver<T>,
}

/// Iterates over messages that were taken out of a channel; made by [`Receiver::drain`].
///
/// Those that are left are dropped with it.
pub struct Drain<T> {
    messages: Queue<T>,
}

/// Iterates over messages, owns the receiver, and waits for each message.
///
/// # Examples
/// ```
/// let (sender, receiver) = fibra_sync::channel::unbounded();
/// (0..3).for_each(|n| sender.send(n).unwrap());
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
/// sender.send(3).unwrap();
/// drop(sender);
/// assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [3]);
/// ```
pub struct IntoIter<T> {
    pub(super) receiver: Receiver<T>,
}

impl<T> Receiver<T> {
    /// Iterates over the messages, and waits for each.
    ///
    /// The iterator ends when the channel is empty and disconnected.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::unbounded();
    /// sender.send(1).unwrap();
    /// assert!(receiver.try_iter().eq([1]));
    /// sender.send(2).unwrap();
    /// drop(sender);
    /// assert!(receiver.iter().eq([2]));
    /// ```
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// Iterates over the messages in the channel, without waiting for more.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }

    /// Takes all messages out of the channel at once, and iterates over them.
    ///
    /// Senders that wait get the room. A bounded channel allocates new memory for its messages.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::bounded(4);
    /// (0..4).for_each(|n| sender.send(n).unwrap());
    /// let drained = receiver.drain();
    /// assert!(receiver.is_empty());
    /// assert!(drained.eq(0..4));
    /// ```
    pub fn drain(&self) -> Drain<T> {
        wait::charge();
        let messages = match &self.source {
            Source::Senders(channel) => channel.shared.take_all(),
            Source::Clock(timer) => Queue::of(timer.try_recv().ok()),
            Source::Never => Queue::of(None),
        };
        Drain { messages }
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
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

impl<T> Iterator for Drain<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.messages.pop().map(|popped| popped.message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.messages.len(), Some(self.messages.len()))
    }
}

impl<T> ExactSizeIterator for Drain<T> {}
impl<T> FusedIterator for Drain<T> {}

// A channel that is empty and disconnected stays so.
impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IntoIter<T> {}
