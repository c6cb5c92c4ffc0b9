//! `Sender`: the sending side of a channel.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::time;

use super::counted::Counted;
use super::error::{SendError, SendTimeoutError, TrySendError};
use super::operation::Target;
use super::shared::Shared;
use crate::primitive::Arc;
use crate::wait;

/// The sending side of a channel.
///
/// Clones share one channel. When the last clone is dropped the channel is disconnected.
///
/// # Fairness
/// Senders that wait for room get it in the order in which they came, before any later sender. While other processors work on
/// the channel, a sender that finds no room may back off for some microseconds before it waits.
///
/// # Examples
/// ```
/// use fibra_sync::channel;
/// let (sender, receiver) = channel::bounded(1);
/// sender.send("first").unwrap();
/// assert!(sender.try_send("second").unwrap_err().is_full());
/// drop(receiver);
/// assert_eq!(sender.send("third").unwrap_err().into_inner(), "third");
/// ```
pub struct Sender<T> {
    pub(super) channel: Arc<Counted<T>>,
}

impl<T> Sender<T> {
    /// Names the channel, for an operation of a select that sends to it.
    pub(super) fn target(&self) -> Target {
        Target::Sends(Arc::as_ptr(&self.channel).cast())
    }

    #[inline]
    pub(super) fn channel(&self) -> &Shared<T> {
        &self.channel.shared
    }

    /// Sends a message.
    ///
    /// Waits while the channel is full, and at a rendezvous until a receiver takes the message. The type's example sends.
    ///
    /// # Errors
    /// Gives the message back if all receivers are gone, also when they go while it waits.
    ///
    /// # Cancellation
    /// A cancellation point. A task that is cancelled while it waits drops its message unsent.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        wait::checkpoint();
        self.channel().send(message, || None, SendError, SendError)
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// Gives the message back if the channel is full, if no receiver waits at a rendezvous, or if all receivers are gone.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, TrySendError};
    /// let (sender, receiver) = channel::bounded(0);
    /// assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
    /// drop(receiver);
    /// assert_eq!(sender.try_send(1), Err(TrySendError::Disconnected(1)));
    /// ```
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        wait::charge();
        self.channel().try_send(message)
    }

    /// Sends a message without waiting, in place of the oldest one if the channel is full.
    ///
    /// Returns the message that it has replaced. It overtakes senders that wait for room.
    ///
    /// # Errors
    /// Gives the message back if all receivers are gone, or if there is none to replace: at a rendezvous where no receiver waits,
    /// and in a channel whose places are all [reserved](Sender::reserve).
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::bounded(2);
    /// assert_eq!([sender.force_send(1), sender.force_send(2)], [Ok(None), Ok(None)]);
    /// assert_eq!(sender.force_send(3), Ok(Some(1)));
    /// assert!(receiver.try_iter().eq([2, 3]));
    /// ```
    pub fn force_send(&self, message: T) -> Result<Option<T>, TrySendError<T>> {
        self.channel().force_send(message)
    }

    /// Sends a message, waiting no longer than `timeout`.
    ///
    /// # Errors
    /// Gives the message back if it was not sent in time, or if all receivers are gone.
    ///
    /// # Cancellation
    /// A cancellation point, like [`send`](Sender::send).
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, SendTimeoutError};
    /// use std::time::{Duration, Instant};
    /// let (sender, _receiver) = channel::bounded(0);
    /// assert_eq!(sender.send_timeout(1, Duration::from_millis(1)), Err(SendTimeoutError::Timeout(1)));
    /// assert_eq!(sender.send_deadline(1, Instant::now()), Err(SendTimeoutError::Timeout(1)));
    /// ```
    #[inline]
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_to(message, || time::deadline(timeout))
    }

    /// Sends a message, waiting at most until `deadline`.
    ///
    /// # Errors
    /// Gives the message back if it was not sent in time, or if all receivers are gone.
    ///
    /// # Cancellation
    /// A cancellation point, like [`send`](Sender::send).
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, SendTimeoutError};
    /// use std::time::{Duration, Instant};
    /// let (sender, receiver) = channel::bounded(1);
    /// sender.send(1).unwrap();
    /// let refused = sender.send_deadline(2, Instant::now() + Duration::from_millis(1));
    /// assert_eq!(refused, Err(SendTimeoutError::Timeout(2)));
    /// assert_eq!(receiver.recv_deadline(Instant::now() + Duration::from_secs(60)), Ok(1));
    /// ```
    #[inline]
    pub fn send_deadline(&self, message: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_to(message, || Some(deadline))
    }

    #[inline(always)]
    fn send_to(
        &self,
        message: T,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        wait::checkpoint();
        self.channel().send(message, deadline, SendTimeoutError::Timeout, SendTimeoutError::Disconnected)
    }

    /// Counts the messages in the channel.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel;
    /// let (sender, receiver) = channel::bounded(2);
    /// assert!(sender.is_empty());
    /// sender.send(1).unwrap();
    /// assert_eq!((sender.len(), sender.is_full(), sender.capacity()), (1, false, Some(2)));
    /// assert!(sender.same_channel(&sender.clone()) && !receiver.is_empty());
    /// ```
    pub fn len(&self) -> usize {
        wait::charge();
        self.channel().look(|state, _| state.queue.len())
    }

    /// Returns true if no message is in the channel, as mostly at a rendezvous.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if no message more has room, as always at a rendezvous.
    ///
    /// A send arm of a select that was selected and has not sent yet takes room as well.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::bounded(1);
    /// assert!(sender.is_empty() && receiver.is_empty() && sender.capacity() == Some(1));
    /// sender.send(1).unwrap();
    /// assert!(sender.is_full() && receiver.is_full());
    /// assert!(sender.same_channel(&sender.clone()) && receiver.same_channel(&receiver.clone()));
    /// ```
    pub fn is_full(&self) -> bool {
        wait::charge();
        self.channel().look(|state, _| state.is_full())
    }

    /// Returns how many messages the channel holds at most. None if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.channel().capacity
    }

    /// Counts the senders, weak ones excluded.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::unbounded::<i32>();
    /// let other = sender.clone();
    /// assert_eq!((sender.sender_count(), sender.receiver_count()), (2, 1));
    /// drop((other, receiver));
    /// assert_eq!((sender.sender_count(), sender.receiver_count()), (1, 0));
    /// ```
    pub fn sender_count(&self) -> usize {
        wait::charge();
        self.channel.senders.count()
    }

    /// Counts the receivers, weak ones excluded.
    pub fn receiver_count(&self) -> usize {
        wait::charge();
        self.channel.receivers.count()
    }

    /// Returns true if both senders belong to one channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.channel, &other.channel)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.channel.senders.increase();
        Sender { channel: Arc::clone(&self.channel) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        wait::point();
        if self.channel.senders.decrease() {
            self.channel.shared.close();
        }
    }
}
