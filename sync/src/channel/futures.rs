//! The doors for futures: the same waits, between two polls.

use std::future::pending;
use std::pin::pin;

use super::error::{RecvError, SendError, TryRecvError, TrySendError};
use super::outcome::Pairing;
use super::places::Receiving;
use super::receiver::{Receiver, Source};
use super::returned::Returned;
use super::sender::Sender;
use super::shared::{Shared, UntilSent, withdrawal};
use crate::turn;
use crate::wait::list::Node;
use crate::wait::{Asleep, Polled, WaitStrategy, WakeHandle, Waking, Withdrawal};

impl<T> Sender<T> {
    /// Sends a message, for futures: [`send`](Sender::send) that gives way to its executor instead of waiting.
    ///
    /// Dropped before it is done the future may have sent the message or dropped it.
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
    pub async fn send_async(&self, message: T) -> Result<(), SendError<T>> {
        turn::charge().await;
        let mut sent = self.channel().try_send(message);
        loop {
            let message = match sent {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(message)) => return Err(SendError(message)),
                Err(TrySendError::Full(message)) => message,
            };
            let mut until = pin!(Polled::new(UntilSent::new(self.channel(), message)));
            until.as_mut().await;
            match until.strategy().unsent() {
                None => return Ok(()),
                Some(message) => sent = self.channel().try_send(message),
            }
        }
    }
}

impl<T> Receiver<T> {
    /// Receives a message, for futures: [`recv`](Receiver::recv) that gives way to its executor instead of waiting.
    ///
    /// Dropped before it is done the future has received nothing: a message that it was given goes to the next receiver.
    /// Until there is one the message counts in [`len`](Receiver::len), beyond the channel's capacity if that is exhausted.
    ///
    /// Between that gift and its next poll, or its drop, the channel has not come to its end for the other receivers, even if
    /// all senders are gone: they wait, for the message may be theirs yet. Who keeps such a future and does not poll it keeps
    /// them waiting; a receive that waits, by the very one who keeps it, would wait for ever.
    ///
    /// # Errors
    /// When the channel is empty and all senders are gone, also when they go while it waits.
    ///
    /// # Panics
    /// On a receiver of the clock ([`after`](super::after), [`at`](super::at), [`tick`](super::tick)) whose message is not
    /// due yet: executors have clocks of their own.
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
        turn::charge().await;
        loop {
            let channel = match &self.source {
                Source::Senders(channel) => &channel.shared,
                Source::Clock(timer) => match timer.try_recv(None) {
                    Ok(message) => return Ok(message),
                    Err(_not_due) => {
                        panic!("the clock of a channel wakes no future: use one of the executor")
                    }
                },
                Source::Nobody => return pending().await,
            };
            match channel.try_recv_unpaired() {
                Ok(message) => return Ok(message),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(TryRecvError::Empty) => {}
            }
            let mut until = pin!(Polled::new(UntilGiven::new(channel)));
            until.as_mut().await;
            if let Some(message) = until.strategy().given() {
                return Ok(message);
            }
        }
    }
}

/// A future that receives, until it was given a message. Unlike a receiver that sleeps it may go away with it.
struct UntilGiven<'a, T> {
    channel: &'a Shared<T>,
    node: Node<Receiving<T>>,
}

// SAFETY: the node is only touched under the channel's lock, and by the owner of this when it is in no list; with `T` the
// message in it may go to another thread.
unsafe impl<T: Send> Send for UntilGiven<'_, T> {}

impl<'a, T> UntilGiven<'a, T> {
    fn new(channel: &'a Shared<T>) -> Self {
        UntilGiven { channel, node: Node::with(Receiving::of_future()) }
    }

    /// The message, after a wait that was not in vain.
    fn given(&self) -> Option<T> {
        let message = self.node.data().message.take();
        if message.is_some() {
            self.channel.keep();
        }
        message
    }
}

impl<T> Drop for UntilGiven<'_, T> {
    fn drop(&mut self) {
        if let Some(message) = self.node.data().message.take() {
            self.channel.take_back(Returned::new(message, self.node.data().number.get()));
        }
    }
}

impl<T> WaitStrategy for UntilGiven<'_, T> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.channel.state();
        if state.holds_message() {
            return Asleep::Rouse;
        }
        // SAFETY: the node stays until the sleep is over, is in no list, and is only touched under this lock; its wake is
        // taken out of it under the lock, and `before_awake` answers `Served` from then on. Used once: if it was not taken
        // here it is dropped.
        let enlisted = unsafe { state.pair_future(&self.node, me.raw()) };
        match enlisted {
            Pairing::Lent(sender) => {
                drop(state);
                sender.wake();
                Asleep::Stay
            }
            Pairing::Given(sender) => {
                drop(state);
                sender.wake();
                Asleep::Rouse
            }
            Pairing::Alone => {
                // SAFETY: as above.
                let watched = unsafe { state.await_message(&self.node, me.raw()) };
                drop(state);
                if watched {
                    self.channel.tell_send_watchers();
                }
                Asleep::Stay
            }
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in a list of this channel's receivers or in none.
        withdrawal(why, || unsafe { self.channel.state().withdraw_receiver(&self.node) })
    }
}
