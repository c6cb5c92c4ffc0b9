//! Receives as futures.

#![forbid(unsafe_code)]

use std::future::pending;

use super::error::{RecvError, TryRecvError};
use super::receiver::{Receiver, Source};
use crate::budget;

impl<T> Receiver<T> {
    /// Receives a message: [`recv`](Receiver::recv), as a future.
    ///
    /// The future is notified of a message and takes it at its next poll; another receiver may be
    /// quicker. Receivers that block are served before futures. A dropped future has received
    /// nothing, and passes its notification on.
    ///
    /// A notified future that is neither polled nor dropped keeps its notification. Another waiting
    /// future may then learn of the message only by the next operation of the channel, such as a
    /// send or the end of the senders. The message stays in the channel for any receiver.
    ///
    /// At a rendezvous a `send` to a waiting future ends at once. The channel keeps one message for the next poll, or for
    /// another receiver, and counts it in [`len`](Receiver::len).
    ///
    /// # Errors
    /// Fails when the channel is empty and all senders are gone, even if they go during the wait.
    ///
    /// # Panics
    /// Panics on a receiver of the clock ([`after`](super::after), [`at`](super::at),
    /// [`tick`](super::tick)) before its message is due: executors have clocks of their own.
    ///
    /// # Examples
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// let (sender, receiver) = fibra_sync::channel::bounded(0);
    /// let mut receiving = pin!(receiver.recv_async());
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert_eq!(receiving.as_mut().poll(&mut context), Poll::Pending);
    /// sender.send(1).unwrap();
    /// assert_eq!(receiving.as_mut().poll(&mut context), Poll::Ready(Ok(1)));
    /// ```
    pub async fn recv_async(&self) -> Result<T, RecvError> {
        budget::charge().await;
        loop {
            let channel = match &self.source {
                Source::Senders(channel) => &channel.shared,
                Source::Clock(timer) => match timer.try_recv() {
                    Ok(message) => return Ok(message),
                    Err(_not_due) => {
                        panic!("the clock of a channel wakes no future: use one of the executor")
                    }
                },
                Source::Never => return pending().await,
            };
            match channel.try_recv_async() {
                Ok(message) => return Ok(message),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(TryRecvError::Empty) => {}
            }
            channel.await_message().await;
        }
    }
}
