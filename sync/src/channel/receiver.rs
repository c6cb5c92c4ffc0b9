//! `Receiver`: the receiving side of a channel.

#![forbid(unsafe_code)]

use std::ptr;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use super::counted::Counted;
use super::error::{RecvError, RecvTimeoutError, TryRecvError};
use super::operation::Target;
use super::shared::Shared;
use super::timers::Timer;
use crate::primitive::Arc;
use crate::wait;

/// The receiving side of a channel.
///
/// Clones share one channel; each message goes to one of them. When the last clone is dropped the
/// channel is disconnected, and the messages left in it are dropped.
///
/// # Fairness
/// Messages are received in the order in which they were sent. Receivers that block are served in the order in which they came,
/// and before futures. While other processors work on the channel, a receiver that finds no message may back off for some
/// microseconds before it waits.
///
/// At a rendezvous a receiver that was chosen by the `send` case of a [`select!`](crate::select) takes the message that is made
/// there, and no other before it.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra_sync::channel;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let (sender, receiver) = channel::unbounded();
/// let producer = fibra::spawn(move || (1..=3).for_each(|n| sender.send(n).unwrap()));
/// assert_eq!(receiver.iter().sum::<i32>(), 6);
/// producer.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Receiver<T> {
    pub(super) source: Source<T>,
}

/// The origin of the messages.
pub(super) enum Source<T> {
    Senders(Arc<Counted<T>>),
    Clock(Arc<Timer<T>>),
    Never,
}

impl<T> Receiver<T> {
    /// Receives a message, waiting while there is none.
    ///
    /// # Errors
    /// Fails if the channel is empty and all senders are gone, even if they go during the wait.
    ///
    /// # Cancellation
    /// A cancellation point. A message that comes together with the cancel is received. So is a
    /// message that the send arm of a [`select!`](crate::select) is about to make for this
    /// receiver.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::unbounded();
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert!(receiver.recv().is_err());
    /// ```
    #[inline(always)]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_to(|| None, |_disconnected| RecvError)
    }

    /// Returns the channel, if there are senders.
    pub(super) fn channel(&self) -> Option<&Shared<T>> {
        match &self.source {
            Source::Senders(channel) => Some(&channel.shared),
            Source::Clock(_) | Source::Never => None,
        }
    }

    /// Names the channel, for an operation of a select that receives from it.
    pub(super) fn target(&self) -> Target {
        Target::Receives(match &self.source {
            Source::Senders(channel) => Arc::as_ptr(channel).cast(),
            Source::Clock(timer) => Arc::as_ptr(timer).cast(),
            Source::Never => ptr::null(),
        })
    }

    /// Receives a message without waiting for a sender.
    ///
    /// If only the send arm of a [`select!`](crate::select) waits, at a rendezvous, the receiver waits while that arm makes its
    /// message. It does so once, should the arm give up. Where [`forbid_suspend`](fibra_runtime::task::forbid_suspend) is in
    /// force it skips such arms, and takes a message from a sender that waits behind them.
    ///
    /// # Errors
    /// If the channel is empty; the error says whether all senders are gone.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, TryRecvError};
    /// let (sender, receiver) = channel::unbounded();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Err(TryRecvError::Disconnected)));
    /// ```
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        wait::charge();
        match &self.source {
            Source::Senders(channel) => channel.shared.try_recv(None),
            Source::Clock(timer) => timer.try_recv(),
            Source::Never => Err(TryRecvError::Empty),
        }
    }

    /// Receives a message, waiting no longer than `timeout`.
    ///
    /// # Errors
    /// Fails if none came in time, or if the channel is empty and all senders are gone.
    ///
    /// # Deadlines
    /// Once the send arm of a [`select!`](crate::select) has been chosen for this receiver, it waits until the message is
    /// made, however long that takes.
    ///
    /// # Cancellation
    /// A cancellation point, like [`recv`](Receiver::recv).
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, RecvTimeoutError};
    /// use std::time::{Duration, Instant};
    /// let (_sender, receiver) = channel::unbounded::<i32>();
    /// assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
    /// assert_eq!(receiver.recv_deadline(Instant::now()), Err(RecvTimeoutError::Timeout));
    /// ```
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_to(|| time::deadline(timeout), |error| error)
    }

    /// Receives a message, waiting at most until `deadline`.
    ///
    /// # Errors
    /// Fails if none came in time, or if the channel is empty and all senders are gone.
    ///
    /// # Deadlines
    /// Once the send arm of a [`select!`](crate::select) has been chosen for this receiver, it waits until the message is
    /// made, however long that takes.
    ///
    /// # Cancellation
    /// A cancellation point, like [`recv`](Receiver::recv).
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_to(|| Some(deadline), |error| error)
    }

    #[inline(always)]
    fn recv_to<E>(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
        fail: impl Fn(RecvTimeoutError) -> E,
    ) -> Result<T, E> {
        wait::checkpoint();
        match &self.source {
            Source::Senders(channel) => channel.shared.recv(deadline, fail),
            Source::Clock(timer) => timer.recv(deadline(), fail),
            Source::Never => {
                wait::sleep_within(deadline());
                Err(fail(RecvTimeoutError::Timeout))
            }
        }
    }

    /// Counts the messages in the channel.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel;
    /// let (sender, receiver) = channel::bounded(1);
    /// assert!(receiver.is_empty());
    /// sender.send(1).unwrap();
    /// assert_eq!((receiver.len(), receiver.is_full(), receiver.capacity()), (1, true, Some(1)));
    /// assert!(receiver.same_channel(&receiver.clone()));
    /// ```
    pub fn len(&self) -> usize {
        wait::charge();
        match &self.source {
            Source::Senders(channel) => channel.shared.look(|state, _| state.queue.len()),
            Source::Clock(timer) => usize::from(timer.is_ready()),
            Source::Never => 0,
        }
    }

    /// Returns true if no message is in the channel, as mostly at a rendezvous.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if no message more has room, as always at a rendezvous.
    pub fn is_full(&self) -> bool {
        wait::charge();
        match &self.source {
            Source::Senders(channel) => channel.shared.look(|state, _| state.is_full()),
            Source::Clock(timer) => timer.is_ready(),
            Source::Never => true,
        }
    }

    /// Returns how many messages the channel holds at most. None if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        match &self.source {
            Source::Senders(channel) => channel.shared.capacity,
            Source::Clock(_) => Some(1),
            Source::Never => Some(0),
        }
    }

    /// Counts the senders, weak ones excluded. None for a receiver of the clock or of [`never`](super::never).
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::unbounded::<i32>();
    /// let others = (sender.clone(), receiver.clone());
    /// assert_eq!((receiver.sender_count(), receiver.receiver_count()), (2, 2));
    /// assert_eq!((sender.sender_count(), sender.receiver_count()), (2, 2));
    /// drop((others, sender));
    /// assert_eq!((receiver.sender_count(), receiver.receiver_count()), (0, 1));
    /// ```
    pub fn sender_count(&self) -> usize {
        wait::charge();
        match &self.source {
            Source::Senders(channel) => channel.senders.count(),
            Source::Clock(_) | Source::Never => 0,
        }
    }

    /// Counts the receivers, weak ones excluded. One for a receiver of the clock or of [`never`](super::never).
    pub fn receiver_count(&self) -> usize {
        wait::charge();
        match &self.source {
            Source::Senders(channel) => channel.receivers.count(),
            Source::Clock(_) | Source::Never => 1,
        }
    }

    /// Returns true if both receivers belong to one channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        match (&self.source, &other.source) {
            (Source::Senders(one), Source::Senders(other)) => Arc::ptr_eq(one, other),
            (Source::Clock(one), Source::Clock(other)) => Arc::ptr_eq(one, other),
            (Source::Never, Source::Never) => true,
            _ => false,
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        if let Source::Senders(channel) = &self.source {
            channel.receivers.increase();
        }
        Receiver { source: self.source.clone() }
    }
}

/// Shares the source, without counting a receiver.
impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        match self {
            Source::Senders(channel) => Source::Senders(Arc::clone(channel)),
            Source::Clock(timer) => Source::Clock(Arc::clone(timer)),
            Source::Never => Source::Never,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Source::Senders(channel) = &self.source {
            wait::point();
            if channel.receivers.decrease() {
                channel.shared.close_and_clear();
            }
        }
    }
}
