//! A channel for one value, from one sender to one receiver.
//!
//! Names and meaning are those of tokio, without `async`. The channel is one allocation; waiting allocates nothing.
//!
//! ```
//! # use fibra_runtime as fibra;
//! # use fibra_sync as sync;
//! # fibra::Runtime::builder().workers(1).build()?.run(|| {
//! let (sender, receiver) = sync::oneshot::channel();
//! fibra::spawn(move || sender.send(6 * 7));
//! assert_eq!(receiver.recv(), Ok(42));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A [`select!`](crate::select) waits for its value beside other things:
//! ```
//! # use fibra_runtime as fibra;
//! # use fibra_sync as sync;
//! # fibra::Runtime::builder().workers(1).build()?.run(|| {
//! let ((sender, receiver), stop) = (sync::oneshot::channel(), sync::ManualResetEvent::new(false));
//! fibra::spawn(move || sender.send(6 * 7));
//! sync::select! {
//!     wait(receiver) => assert_eq!(receiver.recv(), Ok(42)),
//!     wait(stop) => unreachable!("the event was never set"),
//! }
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(unsafe_code)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fibra_runtime::task::shield;
use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::wait::{self, QueueArm};
use error::{RecvError, RecvTimeoutError, TryRecvError};
use state::Side;

pub(crate) use state::{Half, State};

pub mod error;
#[expect(unsafe_code, reason = "the side that leaves second frees the channel")]
mod state;

/// Makes a channel for one value.
///
/// # Fairness
/// A send never waits, and each side has one waiter at most.
///
/// # Examples
/// ```
/// let (sender, mut receiver) = fibra_sync::oneshot::channel();
/// let thread = std::thread::spawn(move || receiver.recv());
/// sender.send("done").unwrap();
/// assert_eq!(thread.join().unwrap(), Ok("done"));
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = state::pair();
    (Sender { half: Some(sender) }, Receiver { half: Some(receiver), gave_way: false })
}

/// Sends the one value of a [`channel`].
///
/// Dropped without a send it ends the receiver's wait.
pub struct Sender<T> {
    /// None once it has sent.
    half: Option<Half<T>>,
}

/// Receives the one value of a [`channel`].
///
/// It is a future as well, for code that is `async`.
pub struct Receiver<T> {
    /// None once the outcome was received.
    half: Option<Half<T>>,
    /// True if its last poll gave way to other tasks.
    gave_way: bool,
}

impl<T> Sender<T> {
    /// Sends the value. Never waits.
    ///
    /// A value that was sent may still never be received: the receiver that is dropped after drops it.
    ///
    /// # Errors
    /// Gives the value back if the receiver is dropped or closed.
    pub fn send(mut self, value: T) -> Result<(), T> {
        wait::point();
        match self.half.take() {
            Some(half) => half.send(value),
            None => unreachable!("a send consumes the sender"),
        }
    }

    /// Returns true if the receiver is dropped or closed, so that a send would fail.
    ///
    /// # Examples
    /// ```
    /// let (mut sender, receiver) = fibra_sync::oneshot::channel::<u8>();
    /// assert!(!sender.is_closed() && !sender.closed_timeout(std::time::Duration::ZERO));
    /// drop(receiver);
    /// sender.closed();
    /// assert!(sender.is_closed() && sender.closed_deadline(std::time::Instant::now()));
    /// ```
    pub fn is_closed(&self) -> bool {
        wait::charge();
        self.half().is_closed()
    }

    /// Waits until the receiver is dropped or closed.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::oneshot;
    /// use std::time::{Duration, Instant};
    /// let (mut sender, receiver) = oneshot::channel::<u8>();
    /// assert!(!sender.closed_timeout(Duration::from_millis(1)));
    /// drop(receiver);
    /// sender.closed();
    /// assert!(sender.closed_deadline(Instant::now()));
    /// ```
    pub fn closed(&mut self) {
        self.closed_to(None);
    }

    /// Waits until the receiver is dropped or closed, at most for `timeout`.
    ///
    /// Returns true if it is.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn closed_timeout(&mut self, timeout: Duration) -> bool {
        self.closed_to(time::deadline(timeout))
    }

    /// Waits until the receiver is dropped or closed, at most until `deadline`.
    ///
    /// Returns true if it is.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn closed_deadline(&mut self, deadline: Instant) -> bool {
        self.closed_to(Some(deadline))
    }

    /// Waits until the receiver is dropped or closed, as a future.
    ///
    /// The future may be dropped at any time.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use fibra_sync as sync;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let (mut sender, receiver) = sync::oneshot::channel::<u8>();
    /// let task = fibra::spawn(move || drop(receiver));
    /// fibra::block_on(sender.closed_async());
    /// assert_eq!(sender.send(1), Err(1));
    /// # task.join().unwrap();
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn closed_async(&mut self) {
        budget::charge().await;
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Polls whether the receiver is dropped or closed, for hand-written futures.
    ///
    /// # Examples
    /// ```
    /// let (mut sender, receiver) = fibra_sync::oneshot::channel::<u8>();
    /// drop(receiver);
    /// fibra_runtime::block_on(std::future::poll_fn(|cx| sender.poll_closed(cx)));
    /// assert_eq!(sender.send(1), Err(1));
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.half().poll(Side::Sender, cx)
    }

    fn closed_to(&mut self, deadline: Option<Instant>) -> bool {
        wait::checkpoint();
        self.half().wait(Side::Sender, deadline)
    }

    fn half(&self) -> &Half<T> {
        match &self.half {
            Some(half) => half,
            None => unreachable!("a send consumes the sender"),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(half) = self.half.take() {
            wait::point();
            half.leave(Side::Sender);
        }
    }
}

impl<T> Receiver<T> {
    /// Waits for the value.
    ///
    /// # Cancellation
    /// A cancellation point. The receiver is dropped by the unwinding, and with it a value that has come.
    ///
    /// # Errors
    /// Fails if the sender is dropped, or this side was [closed](Receiver::close) before a value
    /// came.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::oneshot::{self, error::RecvError};
    /// let (sender, mut receiver) = oneshot::channel();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.recv(), Ok(1));
    /// let (sender, mut receiver) = oneshot::channel::<u8>();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Err(RecvError));
    /// ```
    #[inline(always)]
    pub fn recv(mut self) -> Result<T, RecvError> {
        self.await_outcome(None);
        self.take_outcome(RecvError)
    }

    /// Waits for the value, at most for `timeout`.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// Fails if no value came in time, or none comes any more, as after one was received.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::oneshot::{self, error::RecvTimeoutError};
    /// use std::time::{Duration, Instant};
    /// let (sender, mut receiver) = oneshot::channel();
    /// let early = receiver.recv_timeout(Duration::from_millis(1));
    /// assert_eq!(early, Err(RecvTimeoutError::Timeout));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.recv_deadline(Instant::now()), Ok(1));
    /// ```
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_to(time::deadline(timeout))
    }

    /// Waits for the value, at most until `deadline`.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// As for [`recv_timeout`](Receiver::recv_timeout).
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_to(Some(deadline))
    }

    #[inline(always)]
    fn recv_to(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        match self.await_outcome(deadline) {
            true => self.take_outcome(RecvTimeoutError::Closed),
            false => Err(RecvTimeoutError::Timeout),
        }
    }

    /// Waits until a receive need not wait. Returns false if the deadline came first.
    #[inline(always)]
    fn await_outcome(&self, deadline: Option<Instant>) -> bool {
        wait::checkpoint();
        self.half.as_ref().is_none_or(|half| half.wait(Side::Receiver, deadline))
    }

    /// Takes the value without waiting.
    ///
    /// # Errors
    /// Fails if none has come yet, or none will come, as after one was received.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::oneshot::{self, error::TryRecvError};
    /// let (sender, mut receiver) = oneshot::channel();
    /// assert_eq!((receiver.is_empty(), receiver.try_recv()), (true, Err(TryRecvError::Empty)));
    /// sender.send(1).unwrap();
    /// receiver.close();
    /// assert_eq!((receiver.is_empty(), receiver.try_recv()), (false, Ok(1)));
    /// assert_eq!((receiver.is_terminated(), receiver.try_recv()), (true, Err(TryRecvError::Closed)));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        wait::charge();
        match self.has_outcome() {
            true => self.take_outcome(TryRecvError::Closed),
            false => Err(TryRecvError::Empty),
        }
    }

    /// Returns true if a receive need not wait.
    pub(crate) fn has_outcome(&self) -> bool {
        self.half.as_ref().is_none_or(Half::has_outcome)
    }

    /// Makes an arm of a select, where a receive has to wait.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, State<T>, (), 2, Half<T>> {
        self.half.as_ref().expect("a receiver whose outcome was received does not wait").arm()
    }

    /// Refuses later sends. A value that was sent can still be received.
    ///
    /// # Examples
    /// ```
    /// let (sender, mut receiver) = fibra_sync::oneshot::channel();
    /// receiver.close();
    /// assert_eq!(sender.send(1), Err(1));
    /// assert!(receiver.is_empty());
    /// ```
    pub fn close(&mut self) {
        if let Some(half) = &self.half {
            wait::point();
            half.close();
        }
    }

    /// Returns true if the outcome was received, so that no value will come.
    pub fn is_terminated(&self) -> bool {
        self.half.is_none()
    }

    /// Returns true if there is no value to receive now.
    pub fn is_empty(&self) -> bool {
        wait::charge();
        !self.has_value()
    }

    fn has_value(&self) -> bool {
        self.half.as_ref().is_some_and(Half::has_value)
    }

    /// Leaves the channel, with the value if there is one, and with `closed` otherwise.
    #[inline(always)]
    fn take_outcome<E>(&mut self, closed: E) -> Result<T, E> {
        match self.half.take() {
            Some(half) => half.take_or(closed),
            None => Err(closed),
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let Some(half) = self.half.take() else { return };
        wait::point();
        if let Some(channel) = half.leave(Side::Receiver) {
            // With a value that was not received: no cancellation cuts its destructor short.
            shield(|| drop(channel));
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    /// # Panics
    /// Panics if the outcome was received before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let half = self.half.as_ref().expect("a oneshot receiver was polled after its outcome was received");
        if half.poll(Side::Receiver, cx).is_pending() {
            return Poll::Pending;
        }
        if budget::gives_way(&mut self.gave_way, cx) {
            return Poll::Pending;
        }
        Poll::Ready(self.take_outcome(RecvError))
    }
}

shown!([T] Sender<T>: it => closed: it.half().is_closed());
shown!([T] Receiver<T>: it => terminated: it.is_terminated(), empty: !it.has_value());
