//! Sends in two steps: a place in the channel first, the message later.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::time;

use super::error::{SendError, SendTimeoutError, TrySendError};
use super::permit::Permit;
use super::places::Grant;
use super::sender::Sender;
use crate::budget;
use crate::wait;

impl<T> Sender<T> {
    /// Reserves a place for one message.
    ///
    /// Waits while the channel is full. The [`Permit`] sends without waiting, so the message can be made once it is certain that
    /// there is a place for it.
    ///
    /// # Errors
    /// Fails if all receivers are gone, also when they go while it waits.
    ///
    /// # Cancellation
    /// A cancellation point. A task that is cancelled while it waits has reserved nothing.
    ///
    /// # Panics
    /// Panics at a rendezvous, which has no places.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::bounded(1);
    /// sender.reserve().unwrap().send(1).unwrap();
    /// assert_eq!(receiver.recv(), Ok(1));
    /// drop(sender.reserve().unwrap());
    /// assert!(sender.try_send(2).is_ok(), "the unused permit gave its place back");
    /// ```
    #[track_caller]
    pub fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.reserve_to(|| None).map_err(|_disconnected| SendError(()))
    }

    /// Reserves a place for one message, waiting no longer than `timeout`.
    ///
    /// # Errors
    /// Fails if there was no place in time, or if all receivers are gone.
    ///
    /// # Cancellation
    /// A cancellation point, like [`reserve`](Sender::reserve).
    ///
    /// # Panics
    /// Panics at a rendezvous, which has no places.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let (sender, _receiver) = fibra_sync::channel::bounded(1);
    /// let permit = sender.reserve_timeout(Duration::from_millis(1)).unwrap();
    /// assert!(sender.reserve_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    /// drop(permit);
    /// sender.reserve_deadline(Instant::now()).unwrap().send(1).unwrap();
    /// ```
    #[track_caller]
    pub fn reserve_timeout(&self, timeout: Duration) -> Result<Permit<'_, T>, SendTimeoutError<()>> {
        self.reserve_to(|| time::deadline(timeout))
    }

    /// Reserves a place for one message, waiting at most until `deadline`.
    ///
    /// # Errors
    /// Fails if there was no place in time, or if all receivers are gone.
    ///
    /// # Cancellation
    /// A cancellation point, like [`reserve`](Sender::reserve).
    ///
    /// # Panics
    /// Panics at a rendezvous, which has no places.
    #[track_caller]
    pub fn reserve_deadline(&self, deadline: Instant) -> Result<Permit<'_, T>, SendTimeoutError<()>> {
        self.reserve_to(|| Some(deadline))
    }

    #[track_caller]
    fn reserve_to(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<Permit<'_, T>, SendTimeoutError<()>> {
        self.check_places();
        wait::checkpoint();
        match self.channel().reserve() {
            Ok(grant) => Ok(self.permit(grant)),
            Err(TrySendError::Disconnected(())) => Err(SendTimeoutError::Disconnected(())),
            Err(TrySendError::Full(())) => {
                self.channel().reserve_slow(deadline()).map(|grant| self.permit(grant))
            }
        }
    }

    /// Reserves a place for one message without waiting.
    ///
    /// # Errors
    /// Fails if the channel is full, or if all receivers are gone.
    ///
    /// # Panics
    /// Panics at a rendezvous, which has no places.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::bounded(1);
    /// let permit = sender.try_reserve().unwrap();
    /// assert!(sender.try_reserve().unwrap_err().is_full());
    /// permit.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// ```
    #[track_caller]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.check_places();
        wait::charge();
        self.channel().reserve().map(|grant| self.permit(grant))
    }

    /// Reserves a place for one message: [`reserve`](Sender::reserve), as a future.
    ///
    /// A dropped future has reserved nothing. It stands in the queue from its first poll on, or from the next one where the first
    /// one only yields. A future that was given a place and is neither polled nor dropped keeps it.
    ///
    /// # Errors
    /// Fails if all receivers are gone, also when they go while it waits.
    ///
    /// # Panics
    /// Panics at a rendezvous, which has no places.
    ///
    /// # Examples
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// let (sender, receiver) = fibra_sync::channel::bounded(1);
    /// sender.send(1).unwrap();
    /// let mut reserving = pin!(sender.reserve_async());
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(reserving.as_mut().poll(&mut context).is_pending());
    /// assert_eq!(receiver.recv(), Ok(1));
    /// let Poll::Ready(Ok(permit)) = reserving.as_mut().poll(&mut context) else { panic!("there is a place") };
    /// permit.send(2).unwrap();
    /// assert_eq!(receiver.recv(), Ok(2));
    /// ```
    pub async fn reserve_async(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.check_places();
        budget::charge().await;
        self.channel().reserve_async().await.map(|grant| self.permit(grant)).ok_or(SendError(()))
    }

    /// Sends a message as a future, which yields to its executor instead of blocking.
    ///
    /// A future that is dropped before it is ready has not sent: it drops the message. At a rendezvous it may have sent, since
    /// a receiver that comes takes the message at once. Blocking code uses [`send`](Sender::send).
    ///
    /// A waiting future that was given a place and is neither polled nor dropped keeps it, as in
    /// [`reserve_async`](Sender::reserve_async).
    ///
    /// # Errors
    /// Gives the message back if all receivers are gone, also when they go while it waits.
    ///
    /// # Examples
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// let (sender, receiver) = fibra_sync::channel::bounded(1);
    /// let mut sending = pin!(async { sender.send_async(1).await.is_ok() && sender.send_async(2).await.is_ok() });
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert_eq!(sending.as_mut().poll(&mut context), Poll::Pending);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(sending.as_mut().poll(&mut context), Poll::Ready(true));
    /// ```
    pub fn send_async(&self, message: T) -> impl Future<Output = Result<(), SendError<T>>> {
        let mut message = message;
        // A block keeps the message in one place. An `async fn` would move it, and have room for it twice.
        async move {
            budget::charge().await;
            loop {
                match self.channel().try_send(message) {
                    Ok(()) => return Ok(()),
                    Err(TrySendError::Disconnected(refused)) => return Err(SendError(refused)),
                    Err(TrySendError::Full(refused)) => message = refused,
                }
                if self.channel().has_slots() {
                    let grant = self.channel().reserve_async().await;
                    return Permit::new(self.channel(), grant).send_in_poll(message);
                }
                match self.channel().send_once(message).await {
                    None => return Ok(()),
                    Some(refused) => message = refused,
                }
            }
        }
    }

    fn permit(&self, grant: Grant<T>) -> Permit<'_, T> {
        Permit::new(self.channel(), Some(grant))
    }

    #[track_caller]
    fn check_places(&self) {
        assert!(self.channel().has_slots(), "a rendezvous has no place to reserve: use `send`");
    }
}
