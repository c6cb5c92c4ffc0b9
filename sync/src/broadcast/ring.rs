//! The messages of a broadcast channel, behind one lock.
//!
//! ```text
//!            oldest                      tail
//!              │                          │       positions count messages since the beginning, and never wrap;
//!              ▼                          ▼       the message at p lies in slot p mod capacity
//!  ┌─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//!  │     │  0  │  0  │  1  │  2  │  2  │     │    how many receivers have yet to see it; the last one empties it
//!  └─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//!                       ▲     ▲
//!                     next   next                 a position of each receiver; before `oldest` it lags
//! ```
//!
//! A message that leaves a slot is handed out, so that no value of the user is dropped or cloned under the lock. A receiver
//! waits at the tail only, so each send serves all receivers that wait.
//!
//! The lock also orders the upgrade of a weak sender and the drop of the last sender. The count of senders comes to zero once
//! and stays there: only the owner of a sender, or an upgrade that finds one counted, counts another.

#![forbid(unsafe_code)]

use std::time::Instant;

use crate::wait::{self, QueueArm, Until, WaitDescription, WaitQueue};

static BROADCAST: WaitDescription = WaitDescription::new("broadcast");

/// How many messages a dropped receiver skips under one hold of the lock.
const SKIPS: u64 = 64;

/// The lane of receivers that wait for a message.
const RECEIVERS: usize = 0;

/// The lane of senders that wait for the last receiver to go.
const CLOSINGS: usize = 1;

/// The messages and the counts of a channel, and its waiters. `V` is cheap to clone, and its clone runs no code of the user.
pub(super) struct Ring<V> {
    queue: WaitQueue<State<V>, (), 2>,
}

/// What the lock protects.
pub struct State<V> {
    /// A power of two of them.
    slots: Box<[Slot<V>]>,
    /// The position of the next message.
    pub(super) tail: u64,
    /// Zero is final: the channel is closed.
    pub(super) senders: usize,
    pub(super) weak_senders: usize,
    pub(super) receivers: usize,
    /// Receivers that are being dropped, and skip what they have not seen.
    leaving: usize,
}

struct Slot<V> {
    unseen: usize,
    value: Option<V>,
}

/// The result of a send.
#[must_use]
pub(super) struct Sent<V> {
    pub(super) receivers: usize,
    /// To be dropped outside of the lock.
    pub(super) overwritten: Option<V>,
}

/// What a receiver found.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Received<V> {
    Message(V),
    Lagged(u64),
    Empty,
    Closed,
}

impl<V: Clone> Ring<V> {
    /// Makes a ring of `capacity` slots, a power of two, with one sender.
    pub(super) fn new(capacity: usize) -> Self {
        let slots = (0..capacity).map(|_| Slot { unseen: 0, value: None }).collect();
        let state = State { slots, tail: 0, senders: 1, weak_senders: 0, receivers: 0, leaving: 0 };
        Ring { queue: WaitQueue::new(state) }
    }

    /// Runs `f` under the lock.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut State<V>) -> R) -> R {
        self.queue.with(|state, _| f(state))
    }

    /// Looks at the state, as an operation that counts.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut State<V>) -> R) -> R {
        wait::charge();
        self.with(look)
    }

    /// Adds a message and wakes the receivers. Gives the message back if there is no receiver.
    pub(super) fn send(&self, value: V) -> Result<Sent<V>, V> {
        self.queue.with(|state, waiters| {
            let sent = state.send(value)?;
            waiters.serve_all(RECEIVERS);
            Ok(sent)
        })
    }

    /// Makes an arm of a select, for a receiver whose `policy` says when it is ready.
    pub(super) fn arm<'a, P>(&'a self, policy: &'a P) -> QueueArm<'a, State<V>, (), 2, P> {
        QueueArm::new(&self.queue, RECEIVERS, (), policy).described(&BROADCAST)
    }

    /// Waits until there is a message for a receiver at `next`, or the channel closes. None if the deadline came first.
    pub(super) fn receive(&self, next: &mut u64, deadline: Option<Instant>) -> Option<Received<V>> {
        let until = Until::unwind(deadline).spinning().described(&BROADCAST);
        self.queue.wait_for(RECEIVERS, until, |state| state.take(next))
    }

    /// Variant of [`receive`](Ring::receive) for futures.
    pub(super) async fn receive_async(&self, next: &mut u64) -> Received<V> {
        self.queue.wait_for_async(RECEIVERS, |state| state.take(next)).await
    }

    /// Waits until there is no receiver. Returns false if the deadline came first.
    pub(super) fn wait_closed(&self, deadline: Option<Instant>) -> bool {
        let until = Until::unwind(deadline).described(const { &WaitDescription::new("broadcast close") });
        self.queue.wait_for(CLOSINGS, until, |state| state.has_no_receiver().then_some(())).is_some()
    }

    /// Variant of [`wait_closed`](Ring::wait_closed) for futures.
    pub(super) async fn wait_closed_async(&self) {
        self.queue.wait_for_async(CLOSINGS, |state| state.has_no_receiver().then_some(())).await;
    }

    /// Removes a sender, and wakes the receivers if it was the last.
    pub(super) fn remove_sender(&self) {
        self.queue.with(|state, waiters| {
            state.senders -= 1;
            if state.senders == 0 {
                waiters.serve_all(RECEIVERS);
            }
        });
    }

    /// Removes a receiver, which [skips](State::skip) the messages up to the returned position, and then [leaves](Ring::leave).
    pub(super) fn unsubscribe(&self) -> u64 {
        self.with(|state| {
            state.receivers -= 1;
            state.leaving += 1;
            state.tail
        })
    }

    /// Ends the drop of a receiver, and wakes senders that wait for the last one to go.
    pub(super) fn leave(&self) {
        self.queue.with(|state, waiters| {
            state.leaving -= 1;
            if state.has_no_receiver() {
                waiters.serve_all(CLOSINGS);
            }
        });
    }
}

impl<V: Clone> State<V> {
    fn index(&self, position: u64) -> usize {
        // The cut is meant: only the low bits matter.
        position as usize & (self.slots.len() - 1)
    }

    fn oldest(&self) -> u64 {
        self.tail.saturating_sub(self.slots.len() as u64)
    }

    fn take(&mut self, next: &mut u64) -> Option<Received<V>> {
        Some(self.receive(next)).filter(|received| !matches!(received, Received::Empty))
    }

    fn has_no_receiver(&self) -> bool {
        self.receivers == 0 && self.leaving == 0
    }

    /// Adds a message. Gives it back if there is no receiver.
    fn send(&mut self, value: V) -> Result<Sent<V>, V> {
        if self.receivers == 0 {
            return Err(value);
        }
        let index = self.index(self.tail);
        let slot = &mut self.slots[index];
        slot.unseen = self.receivers;
        let overwritten = slot.value.replace(value);
        self.tail += 1;
        Ok(Sent { receivers: self.receivers, overwritten })
    }

    /// Takes the next message for a receiver at `next`.
    pub(super) fn receive(&mut self, next: &mut u64) -> Received<V> {
        let oldest = self.oldest();
        if *next < oldest {
            let missed = oldest - *next;
            *next = oldest;
            return Received::Lagged(missed);
        }
        match self.see(*next) {
            Some(value) => {
                *next += 1;
                Received::Message(value)
            }
            None if self.senders == 0 => Received::Closed,
            None => Received::Empty,
        }
    }

    /// Returns true if a receiver at `next` need not wait.
    pub(super) fn has_outcome(&self, next: u64) -> bool {
        next != self.tail || self.senders == 0
    }

    /// Counts the message at `position` as seen by one receiver. Returns it; the last receiver gets the message itself.
    fn see(&mut self, position: u64) -> Option<V> {
        if position == self.tail {
            return None;
        }
        let index = self.index(position);
        let slot = &mut self.slots[index];
        slot.unseen -= 1;
        match slot.unseen {
            0 => slot.value.take(),
            _ => slot.value.clone(),
        }
    }

    /// Skips some messages from `next` to `end`. Stops at a message that no other receiver is to see, and hands it out.
    pub(super) fn skip(&mut self, next: &mut u64, end: u64) -> Option<V> {
        *next = (*next).max(self.oldest());
        let pause = end.min(*next + SKIPS);
        while *next < pause {
            let index = self.index(*next);
            let slot = &mut self.slots[index];
            slot.unseen -= 1;
            *next += 1;
            if slot.unseen == 0 {
                return slot.value.take();
            }
        }
        None
    }

    /// Adds a receiver. Returns its position: it sees what is sent from now on.
    pub(super) fn subscribe(&mut self) -> u64 {
        self.receivers += 1;
        self.tail
    }

    /// Adds a sender, for the owner of a weak one. Returns false if the channel is closed.
    #[must_use]
    pub(super) fn upgrade(&mut self) -> bool {
        let open = self.senders > 0;
        if open {
            self.senders += 1;
        }
        open
    }

    /// Counts the messages that some receiver has yet to see.
    ///
    /// A receiver has yet to see all messages after its position, so those that all have seen come first.
    pub(super) fn len(&self) -> usize {
        let (mut low, mut high) = (self.oldest(), self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.slots[self.index(middle)].unseen {
                0 => low = middle + 1,
                _ => high = middle,
            }
        }
        (self.tail - low) as usize
    }
}
