//! Broadcast channel: every message goes to every receiver.
//!
//! Names and meaning are those of tokio, without `async`. A sender never waits: the channel keeps
//! the last `capacity` messages, and a slower receiver is told how many it lost. The channel is
//! closed once all senders are dropped; a [`WeakSender`] does not count.
//!
//! Each message is one counted allocation. Receivers clone it outside of the lock, and a slow clone
//! makes no other task wait. The last receiver of a message gets the message itself instead of a
//! clone. Waiting allocates nothing.
//!
//! A [`select!`](crate::select) waits for a message by `wait(receiver)`, as at [`oneshot`](crate::oneshot).
//!
//! ```
//! # use fibra_runtime as fibra;
//! # use fibra_sync as sync;
//! # fibra::Runtime::builder().workers(1).build()?.run(|| {
//! let (sender, mut first) = sync::broadcast::channel(16);
//! let mut second = sender.subscribe();
//! let task = fibra::spawn(move || first.recv());
//! assert_eq!(sender.send("news"), Ok(2));
//! assert_eq!(second.recv(), Ok("news"));
//! assert_eq!(task.join().unwrap(), Ok("news"));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra_runtime::task::Shielded;
use fibra_runtime::time;

use crate::budget;
use crate::drop_all::drop_all;
use crate::messages::shown;
use crate::wait::{self, ArmPolicy, QueueArm, Waiters};
use error::{RecvError, RecvTimeoutError, SendError, TryRecvError};
use ring::{Received, Ring, Sent};

pub(crate) use ring::State;

pub mod error;
mod ring;

/// Makes a channel that keeps `capacity` messages, and its first receiver.
///
/// The capacity is rounded up to a power of two.
///
/// # Panics
/// Panics if the capacity is zero, or more than half of [`usize::MAX`].
///
/// # Examples
/// ```
/// let (sender, mut receiver) = fibra_sync::broadcast::channel(16);
/// sender.send(1).unwrap();
/// drop(sender);
/// assert!(receiver.recv().is_ok() && receiver.recv().is_err());
/// ```
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// Sends to all receivers of a [`channel`]. Clones share the channel.
///
/// # Differences from tokio
/// Several receivers may clone a message at once, so messages are `Sync` as well as `Send`.
pub struct Sender<T> {
    ring: Arc<Ring<Arc<T>>>,
}

/// Receives each message of a [`channel`] that is sent after it subscribed.
///
/// # Fairness
/// A message wakes all waiting receivers in the order of arrival.
pub struct Receiver<T> {
    ring: Arc<Ring<Arc<T>>>,
    /// The position of its next message.
    next: u64,
}

impl<T> Sender<T> {
    /// Makes a channel without a receiver.
    ///
    /// # Panics
    /// Panics if the capacity is zero, or more than half of [`usize::MAX`].
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::broadcast::Sender;
    /// let sender = Sender::new(2);
    /// assert!(sender.send(1).is_err() && sender.receiver_count() == 0);
    /// let mut receiver = sender.subscribe();
    /// assert_eq!(sender.send(2), Ok(1));
    /// assert_eq!((sender.len(), receiver.len()), (1, 1));
    /// assert_eq!(receiver.try_recv(), Ok(2));
    /// assert!(sender.is_empty() && receiver.is_empty() && !receiver.is_closed());
    /// ```
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a broadcast channel keeps one message at the least: give it a capacity");
        assert!(
            capacity <= usize::MAX / 2,
            "the capacity of a broadcast channel is at most half of usize::MAX"
        );
        Sender { ring: Arc::new(Ring::new(capacity.next_power_of_two())) }
    }

    /// Sends a message to all receivers, and returns the number of receivers.
    ///
    /// Never waits: it overwrites the oldest message of a full channel.
    ///
    /// # Errors
    /// Gives the message back if there is no receiver now. Later sends may succeed.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::broadcast::{self, error::SendError};
    /// let (sender, mut receiver) = broadcast::channel(4);
    /// let mut other = sender.subscribe();
    /// assert_eq!(sender.send("news"), Ok(2));
    /// assert_eq!((receiver.recv(), other.recv()), (Ok("news"), Ok("news")));
    /// drop((receiver, other));
    /// assert_eq!(sender.send("lost"), Err(SendError("lost")));
    /// ```
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        wait::point();
        match self.ring.send(Arc::new(value)) {
            Ok(Sent { receivers, overwritten }) => {
                if overwritten.is_some() {
                    // No cancellation cuts its destructor short.
                    drop(Shielded::new(overwritten));
                }
                Ok(receivers)
            }
            Err(message) => {
                Err(SendError(Arc::into_inner(message).expect("an unsent message has one owner")))
            }
        }
    }

    /// Makes a receiver of all later messages.
    pub fn subscribe(&self) -> Receiver<T> {
        wait::point();
        let next = self.ring.with(|state| state.subscribe());
        Receiver { ring: Arc::clone(&self.ring), next }
    }

    /// Makes a sender that does not keep the channel open.
    #[must_use]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(Arc::clone(&self.ring))
    }

    /// Counts the senders, this one included and weak ones excluded.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// let (sender, receiver) = sync::broadcast::channel::<u8>(16);
    /// let weak = [sender.downgrade(), sender.downgrade()];
    /// assert_eq!((sender.strong_count(), sender.weak_count()), (1, 2));
    /// let other = weak[0].upgrade();
    /// drop(weak);
    /// assert_eq!((receiver.sender_strong_count(), receiver.sender_weak_count()), (2, 0));
    /// # drop(other);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.ring.look(|state| state.senders)
    }

    /// Counts the weak senders.
    pub fn weak_count(&self) -> usize {
        self.ring.look(|state| state.weak_senders)
    }

    /// Counts the messages that some receiver has yet to see.
    ///
    /// # Examples
    /// ```
    /// let (sender, mut receiver) = fibra_sync::broadcast::channel(4);
    /// assert!(sender.is_empty());
    /// sender.send(1).unwrap();
    /// assert_eq!(sender.len(), 1);
    /// receiver.recv().unwrap();
    /// assert!(sender.is_empty() && receiver.is_empty());
    /// ```
    pub fn len(&self) -> usize {
        self.ring.look(|state| state.len())
    }

    /// Returns true if every receiver has seen all messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the receivers.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::broadcast::channel::<u8>(4);
    /// let other = receiver.resubscribe();
    /// assert_eq!(sender.receiver_count(), 2);
    /// assert!(receiver.same_channel(&other) && sender.same_channel(&sender.clone()));
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.ring.look(|state| state.receivers)
    }

    /// Returns true if both senders belong to one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ring, &other.ring)
    }

    /// Waits until there is no receiver.
    ///
    /// The last receiver has then dropped the messages that were left for it.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Deadlocks
    /// The destructor of a message that waited in this channel must not call it: the last receiver counts as gone once these
    /// destructors have returned.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let (sender, receiver) = fibra_sync::broadcast::channel::<u8>(16);
    /// assert!(!sender.closed_timeout(Duration::from_millis(1)) && !sender.closed_deadline(Instant::now()));
    /// drop(receiver);
    /// sender.closed();
    /// ```
    pub fn closed(&self) {
        self.closed_to(None);
    }

    /// Waits until there is no receiver, at most for `timeout`.
    ///
    /// Returns true if there is none.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let (sender, receiver) = fibra_sync::broadcast::channel::<u8>(4);
    /// assert!(!sender.closed_timeout(Duration::from_millis(1)));
    /// drop(receiver);
    /// assert!(sender.closed_deadline(Instant::now() + Duration::from_secs(60)));
    /// ```
    pub fn closed_timeout(&self, timeout: Duration) -> bool {
        self.closed_to(time::deadline(timeout))
    }

    /// Waits until there is no receiver, at most until `deadline`.
    ///
    /// Returns true if there is none.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn closed_deadline(&self, deadline: Instant) -> bool {
        self.closed_to(Some(deadline))
    }

    /// Waits until there is no receiver, as a future that may be dropped at any time.
    ///
    /// The destructor of a message that waited in this channel must not wait for it, as for [`closed`](Sender::closed).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use fibra_sync as sync;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let (sender, receiver) = sync::broadcast::channel::<u8>(16);
    /// let task = fibra::spawn(move || drop(receiver));
    /// fibra::block_on(sender.closed_async());
    /// assert!(sender.send(1).is_err());
    /// # task.join().unwrap();
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn closed_async(&self) {
        budget::charge().await;
        self.ring.wait_closed_async().await;
    }

    fn closed_to(&self, deadline: Option<Instant>) -> bool {
        wait::checkpoint();
        self.ring.wait_closed(deadline)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.ring.with(|state| state.senders += 1);
        Sender { ring: Arc::clone(&self.ring) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        wait::point();
        self.ring.remove_sender();
    }
}

impl<T: Clone> Receiver<T> {
    /// Waits for the next message.
    ///
    /// The clone is made while no lock is held, and may take its time. If it panics, the message
    /// counts as received.
    ///
    /// # Cancellation
    /// A cancellation point, which loses no message.
    ///
    /// # Errors
    /// If this receiver lost messages; the next receive goes on with the oldest that is kept. If
    /// all senders are dropped and all messages received.
    pub fn recv(&mut self) -> Result<T, RecvError> {
        taken(self.receive(None), untimed)
    }

    /// Waits for the next message, at most for `timeout`.
    ///
    /// # Cancellation
    /// A cancellation point, which loses no message.
    ///
    /// # Errors
    /// As for [`recv`](Receiver::recv), and if no message came in time.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::broadcast::{self, error::RecvTimeoutError};
    /// use std::time::{Duration, Instant};
    /// let (sender, mut receiver) = broadcast::channel(4);
    /// let brief = Duration::from_millis(1);
    /// assert_eq!(receiver.recv_timeout(brief), Err(RecvTimeoutError::Timeout));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.recv_deadline(Instant::now() + brief), Ok(1));
    /// sender.send(2).unwrap();
    /// assert_eq!(fibra_runtime::block_on(receiver.recv_async()), Ok(2));
    /// ```
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_to(time::deadline(timeout))
    }

    /// Waits for the next message, at most until `deadline`.
    ///
    /// # Cancellation
    /// A cancellation point, which loses no message.
    ///
    /// # Errors
    /// As for [`recv_timeout`](Receiver::recv_timeout).
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_to(Some(deadline))
    }

    fn recv_to(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        taken(self.receive(deadline), |error| match error {
            TryRecvError::Empty => RecvTimeoutError::Timeout,
            TryRecvError::Closed => RecvTimeoutError::Closed,
            TryRecvError::Lagged(missed) => RecvTimeoutError::Lagged(missed),
        })
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Received<Arc<T>> {
        wait::checkpoint();
        match self.receive_now() {
            Received::Empty => self.ring.receive(&mut self.next, deadline).unwrap_or(Received::Empty),
            received => received,
        }
    }

    /// Waits for the next message, as a future.
    ///
    /// Dropped before it is ready it loses no message.
    ///
    /// # Errors
    /// As for [`recv`](Receiver::recv).
    pub async fn recv_async(&mut self) -> Result<T, RecvError> {
        budget::charge().await;
        taken(self.ring.receive_async(&mut self.next).await, untimed)
    }

    /// Takes the next message without waiting.
    ///
    /// # Errors
    /// As for [`recv`](Receiver::recv), and if there is no message now.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::broadcast::{self, error::TryRecvError};
    /// let (sender, mut receiver) = broadcast::channel(1);
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// sender.send(2).unwrap();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    /// assert_eq!(receiver.try_recv(), Ok(2));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        wait::charge();
        taken(self.receive_now(), |error| error)
    }

    fn receive_now(&mut self) -> Received<Arc<T>> {
        self.ring.with(|state| state.receive(&mut self.next))
    }
}

/// Makes the receiver's own value of a message, outside of the lock. `fail` makes the error.
#[inline(always)]
fn taken<T: Clone, E>(received: Received<Arc<T>>, fail: impl FnOnce(TryRecvError) -> E) -> Result<T, E> {
    match received {
        Received::Message(message) => Ok(Arc::unwrap_or_clone(message)),
        Received::Lagged(missed) => Err(fail(TryRecvError::Lagged(missed))),
        Received::Empty => Err(fail(TryRecvError::Empty)),
        Received::Closed => Err(fail(TryRecvError::Closed)),
    }
}

/// Makes the error of a receive without a deadline.
fn untimed(error: TryRecvError) -> RecvError {
    match error {
        TryRecvError::Closed => RecvError::Closed,
        TryRecvError::Lagged(missed) => RecvError::Lagged(missed),
        TryRecvError::Empty => unreachable!("there is no deadline"),
    }
}

impl<T> Receiver<T> {
    /// Returns true if a receive need not wait.
    pub(crate) fn has_outcome(&self) -> bool {
        self.ring.with(|state| state.has_outcome(self.next))
    }

    /// Makes an arm of a select.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, State<Arc<T>>, (), 2, Self> {
        self.ring.arm(self)
    }

    /// Makes a further receiver, of all later messages.
    pub fn resubscribe(&self) -> Self {
        wait::point();
        let next = self.ring.with(|state| state.subscribe());
        Receiver { ring: Arc::clone(&self.ring), next }
    }

    /// Counts the messages to receive, lost ones included.
    pub fn len(&self) -> usize {
        self.ring.look(|state| state.tail - self.next) as usize
    }

    /// Returns true if this receiver has received all messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if all senders are dropped. There may still be messages.
    ///
    /// # Examples
    /// ```
    /// let (sender, mut receiver) = fibra_sync::broadcast::channel(4);
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert!(receiver.is_closed());
    /// assert_eq!(receiver.recv(), Ok(1));
    /// ```
    pub fn is_closed(&self) -> bool {
        self.sender_strong_count() == 0
    }

    /// Counts the senders, weak ones excluded.
    pub fn sender_strong_count(&self) -> usize {
        self.ring.look(|state| state.senders)
    }

    /// Counts the weak senders.
    pub fn sender_weak_count(&self) -> usize {
        self.ring.look(|state| state.weak_senders)
    }

    /// Returns true if both receivers belong to one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ring, &other.ring)
    }
}

impl<T> ArmPolicy<State<Arc<T>>, (), 2> for Receiver<T> {
    fn is_ready(&self, state: &State<Arc<T>>, (): &mut (), _waiters: &Waiters<'_, (), 2>) -> bool {
        state.has_outcome(self.next)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        wait::point();
        let end = self.ring.unsubscribe();
        drop_all(|| {
            // A few at a time, so that the lock is not held for long, and not at all while a value is dropped.
            while self.next < end {
                drop(self.ring.with(|state| state.skip(&mut self.next, end)));
            }
            self.ring.leave();
        });
    }
}

shown!([T] Sender<T>: it => receivers: it.ring.with(|state| state.receivers));
shown!([T] Receiver<T>: it => len: it.ring.with(|state| state.tail - it.next));

/// Becomes a [`Sender`] on demand, and does not keep the channel open.
///
/// It suits a registry of channels, or a task that also receives: a sender of its own would keep its
/// channel open. It keeps the memory of the channel, but none of its messages.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// use sync::broadcast::error::TryRecvError;
///
/// let (sender, mut receiver) = sync::broadcast::channel(16);
/// let weak = sender.downgrade();
/// weak.upgrade().unwrap().send("news").unwrap();
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(receiver.try_recv(), Ok("news"));
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
/// ```
pub struct WeakSender<T> {
    ring: Arc<Ring<Arc<T>>>,
}

impl<T> WeakSender<T> {
    fn new(ring: Arc<Ring<Arc<T>>>) -> Self {
        ring.with(|state| state.weak_senders += 1);
        WeakSender { ring }
    }

    /// Makes a sender, unless all are dropped, which is final.
    ///
    /// An upgrade beside the drop of the last sender comes before it, and the channel stays open,
    /// or after it and fails.
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let open = self.ring.look(|state| state.upgrade());
        open.then(|| Sender { ring: Arc::clone(&self.ring) })
    }

    /// Counts the senders, weak ones excluded. Zero is final.
    pub fn strong_count(&self) -> usize {
        self.ring.look(|state| state.senders)
    }

    /// Counts the weak senders, this one included.
    pub fn weak_count(&self) -> usize {
        self.ring.look(|state| state.weak_senders)
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(Arc::clone(&self.ring))
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.ring.with(|state| state.weak_senders -= 1);
    }
}

shown!([T] WeakSender<T>: it => senders: it.ring.with(|state| state.senders));
