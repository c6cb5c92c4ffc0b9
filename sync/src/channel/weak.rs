//! Weak ends, which do not keep a channel open.

#![forbid(unsafe_code)]

use super::counted::Counted;
use super::receiver::{Receiver, Source};
use super::sender::Sender;
use crate::primitive::Arc;
use crate::wait;

/// Becomes a [`Sender`] on demand, and does not keep the channel open.
///
/// It keeps the memory of the channel, but none of its messages.
///
/// # Examples
/// ```
/// let (sender, receiver) = fibra_sync::channel::unbounded();
/// let weak = sender.downgrade();
/// weak.upgrade().unwrap().send(1).unwrap();
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert!(receiver.iter().eq([1]), "the channel is closed");
/// ```
pub struct WeakSender<T> {
    channel: Arc<Counted<T>>,
}

/// Becomes a [`Receiver`] on demand, and does not keep the channel open.
///
/// It keeps the memory of the channel, but none of its messages.
///
/// # Examples
/// ```
/// let (sender, receiver) = fibra_sync::channel::unbounded();
/// let weak = receiver.downgrade();
/// sender.send(1).unwrap();
/// assert_eq!(weak.upgrade().unwrap().recv(), Ok(1));
/// drop(receiver);
/// assert!(weak.upgrade().is_none() && sender.send(2).is_err());
/// ```
pub struct WeakReceiver<T> {
    source: Source<T>,
}

impl<T> Sender<T> {
    /// Makes a sender that does not keep the channel open.
    #[must_use]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { channel: Arc::clone(&self.channel) }
    }
}

impl<T> Receiver<T> {
    /// Makes a receiver that does not keep the channel open.
    #[must_use]
    pub fn downgrade(&self) -> WeakReceiver<T> {
        WeakReceiver { source: self.source.clone() }
    }
}

impl<T> WeakSender<T> {
    /// Makes a sender, unless all are dropped, which is final.
    ///
    /// An upgrade beside the drop of the last sender comes before it, and the channel stays open, or after it and fails.
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        wait::charge();
        self.channel.senders.increase_if_any().then(|| Sender { channel: Arc::clone(&self.channel) })
    }
}

impl<T> WeakReceiver<T> {
    /// Makes a receiver, unless all are dropped, which is final.
    ///
    /// An upgrade beside the drop of the last receiver comes before it, and the channel stays open, or after it and fails. A
    /// receiver of the clock or of [`never`](super::never) can always be made.
    #[must_use]
    pub fn upgrade(&self) -> Option<Receiver<T>> {
        wait::charge();
        let is_open = match &self.source {
            Source::Senders(channel) => channel.receivers.increase_if_any(),
            Source::Clock(_) | Source::Never => true,
        };
        is_open.then(|| Receiver { source: self.source.clone() })
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender { channel: Arc::clone(&self.channel) }
    }
}

impl<T> Clone for WeakReceiver<T> {
    fn clone(&self) -> Self {
        WeakReceiver { source: self.source.clone() }
    }
}
