//! The state under a channel's lock, and every change of it.
//!
//! ```text
//!   message:  sender ──put──▶ queue ──take──▶ receiver
//!                │                              ▲
//!                └──put: to the first waiter ───┘
//!
//!   slot:     free ──reserve──▶ held by a send arm ──fulfil──▶ message in the queue
//!               ▲                      │                              │
//!               └─────── release ──────┴───────────── take ───────────┘
//!                              a slot that comes free goes to the first waiting sender
//!
//!   receiver: waits ──reserve, pair──▶ lent to a send arm ──give──▶ has the message
//!                                      (rendezvous)
//! ```
//!
//! `room` counts the slots that are neither full nor reserved. An unbounded channel has room without end. A rendezvous has one
//! slot, which is open to senders only while a future waits to receive. Otherwise a sender waits until a receiver takes the
//! message out of the sender's node.
//!
//! Receivers that block are handed their message. None of them waits while a message lies in the queue or a sender with a
//! message waits. Futures may be dropped at any time, so they are only notified: a future then tries again. Each message that
//! enters the queue notifies one waiting future. A future that is notified and dropped passes the notification on.
//!
//! In a channel with slots a receiver and a send arm may both wait, as long as all slots are reserved: the arm waits for room, as
//! at a full channel. If the arm were lent the receiver, the owner of a slot could send meanwhile, and its message would lie in
//! the queue until the arm has made its own, which may depend on the first message.
//!
//! A waiter is served and gets its message or its right to send under one hold of the lock. A waiter
//! that is served without either tries again.

#![forbid(unsafe_code)]

use super::error::TrySendError;
use super::outcome::{Missing, Refused};
use super::places::{FUTURES, Grant, LANES, Place, RECEIVERS, SENDERS, WATCHERS, Waiting};
use super::queue::{Popped, Queue, Slot};
use crate::wait::Lent;

/// State of a channel.
pub(crate) struct State<T> {
    room: usize,
    /// False for a rendezvous. Never changes.
    has_slots: bool,
    /// True once one side is gone.
    disconnected: bool,
    pub(super) queue: Queue<T>,
}

impl<T> State<T> {
    /// Makes a state with room for `capacity` messages, or without bound.
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        State {
            room: capacity.map_or(usize::MAX, |capacity| capacity.max(1)),
            has_slots: capacity != Some(0),
            disconnected: false,
            queue: Self::queue(capacity),
        }
    }

    /// Makes the empty queue of a channel.
    pub(crate) fn queue(capacity: Option<usize>) -> Queue<T> {
        capacity.map_or(Queue::chain(), |capacity| Queue::ring(capacity.max(1)))
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.has_slots || self.room == 0
    }

    /// Returns true if a message may enter the queue.
    fn has_room(&self, waiting: &Waiting<'_, T>) -> bool {
        self.room > 0 && (self.has_slots || !waiting.is_empty(FUTURES))
    }

    /// Returns true once one side is gone.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.disconnected
    }

    /// Returns true if a message may enter the queue where nothing waits.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.room > 0 && self.has_slots && !self.disconnected
    }

    /// Serves the first waiting receiver, for a message to be put into its place.
    #[inline(always)]
    pub(crate) fn serve_receiver<'a>(&self, waiting: &'a mut Waiting<'_, T>) -> Option<&'a mut Place<T>> {
        match self.disconnected {
            true => None,
            false => waiting.serve_front_data(RECEIVERS),
        }
    }

    /// Takes a slot for a message if there is room, and notifies a future and all watchers of it. No receiver waits.
    ///
    /// The caller fills it under the same hold of the lock.
    pub(crate) fn take_slot_and_tell(
        &mut self,
        waiting: &mut Waiting<'_, T>,
    ) -> Result<Slot<'_, T>, Refused> {
        match self.disconnected || self.has_room(waiting) {
            true => self.take_reserved_and_tell(waiting),
            false => Err(Refused::Full),
        }
    }

    /// Variant of [`take_slot_and_tell`](State::take_slot_and_tell) for a slot that was reserved: it is taken also if the future
    /// has gone for which a rendezvous had opened it.
    pub(crate) fn take_reserved_and_tell(
        &mut self,
        waiting: &mut Waiting<'_, T>,
    ) -> Result<Slot<'_, T>, Refused> {
        if self.disconnected {
            return Err(Refused::Disconnected);
        }
        let slot = self.take_slot()?;
        Self::tell(waiting);
        Ok(slot)
    }

    /// Exchanges the oldest message for `message`, if all slots are taken. Returns false if it did not. The caller
    /// [tells](State::tell).
    pub(crate) fn exchange_oldest(&mut self, message: &mut T) -> bool {
        self.room == 0 && !self.disconnected && self.queue.exchange_oldest(message)
    }

    /// Notifies a future and all watchers of a message in the queue.
    pub(crate) fn tell(waiting: &mut Waiting<'_, T>) {
        waiting.serve_front(FUTURES, |_| ());
        waiting.serve_all(WATCHERS);
    }

    /// Takes all messages out of the queue, and leaves the `fresh` one.
    pub(crate) fn take_all(&mut self, fresh: Queue<T>, waiting: &mut Waiting<'_, T>) -> Queue<T> {
        let taken = std::mem::replace(&mut self.queue, fresh);
        self.room += taken.len();
        self.pass_room_on(waiting);
        taken
    }

    /// Takes a slot for a message from the room that there is.
    #[inline(always)]
    pub(crate) fn take_slot(&mut self) -> Result<Slot<'_, T>, Refused> {
        let slot = self.queue.slot().ok_or(Refused::Cramped)?;
        self.room -= 1;
        Ok(slot)
    }

    /// Takes the oldest message from the queue. If there are waiters, the caller [passes the room on](State::pass_room_on).
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Popped<T>> {
        if self.queue.is_empty() {
            return None;
        }
        self.room += 1;
        self.queue.pop()
    }

    /// Serves the longest waiting sender, for its message to be taken out of its place. The queue is empty.
    #[inline]
    pub(crate) fn serve_sender<'a>(
        &self,
        waiting: &'a mut Waiting<'_, T>,
    ) -> Result<&'a mut Place<T>, Missing> {
        match waiting.front(SENDERS) {
            None if self.disconnected => Err(Missing::Disconnected),
            None => Err(Missing::Empty),
            // Even if all slots are reserved: their owners may take long, and blocked senders may
            // wait behind this arm.
            Some(Place::Arm(_)) => Err(Missing::Arm),
            Some(_) => waiting.serve_front_data(SENDERS).ok_or(Missing::Empty),
        }
    }

    /// Serves the longest waiting sender that has a message, behind arms too. The queue is empty.
    #[cold]
    pub(crate) fn serve_sender_past_arms<'a>(
        &self,
        waiting: &'a mut Waiting<'_, T>,
    ) -> Result<&'a mut Place<T>, Missing> {
        let missing = if self.disconnected { Missing::Disconnected } else { Missing::Empty };
        waiting.serve_first_data(SENDERS, Place::has_message).ok_or(missing)
    }

    /// Gives freed room to the longest waiting senders, and notifies of what is left.
    ///
    /// After the end of a side no sender gets it: senders are told of the end.
    pub(crate) fn pass_room_on(&mut self, waiting: &mut Waiting<'_, T>) {
        while !self.disconnected && self.has_room(waiting) && self.admit(waiting) {}
        if self.has_room(waiting) {
            waiting.serve_all(WATCHERS);
        }
        if !self.queue.is_empty() {
            waiting.serve_front(FUTURES, |_| ());
        }
    }

    /// Gives room to the longest waiting sender. Returns false if none waits.
    fn admit(&mut self, waiting: &mut Waiting<'_, T>) -> bool {
        let Some(place) = waiting.serve_front_data(SENDERS) else { return false };
        match place {
            Place::Message(message) => {
                let slot = self.take_slot();
                debug_assert!(slot.is_ok(), "senders wait for rings only, whose room is counted");
                if let Ok(slot) = slot {
                    slot.fill_from(message);
                }
            }
            Place::Arm(grant) => {
                self.room -= 1;
                *grant = Some(Grant::Room);
            }
        }
        true
    }

    /// Selects a send arm, if it need not wait.
    pub(crate) fn reserve(&mut self, waiting: &mut Waiting<'_, T>) -> Result<Grant<T>, TrySendError<()>> {
        if self.disconnected {
            return Err(TrySendError::Disconnected(()));
        }
        if !self.has_slots
            && let Some(partner) = waiting.lend_front(RECEIVERS)
        {
            return Ok(Grant::Partner(partner));
        }
        if self.has_room(waiting) {
            self.room -= 1;
            return Ok(Grant::Room);
        }
        Err(TrySendError::Full(()))
    }

    /// Makes a reserved slot an open one, for the message that it was reserved for.
    pub(crate) fn open_reserved(&mut self) {
        self.room += 1;
    }

    /// Gives up a slot that was reserved.
    pub(crate) fn release(&mut self, waiting: &mut Waiting<'_, T>) {
        self.room += 1;
        self.pass_room_on(waiting);
    }

    /// Lends the first waiting receiver to the first waiting sender, if that is an arm.
    ///
    /// If that has gone all receivers try again. A receiver that is returned is in vain too, and is dropped outside the lock.
    pub(crate) fn pair(&mut self, waiting: &mut Waiting<'_, T>) -> Option<Lent<Place<T>>> {
        if !waiting.front(SENDERS).is_some_and(Place::is_arm) {
            waiting.serve_all(RECEIVERS);
            return None;
        }
        let mut partner = waiting.lend_front(RECEIVERS);
        if partner.is_some() {
            waiting.serve_front_if(SENDERS, Place::is_arm, |arm| {
                if let Some(partner) = partner.take() {
                    *arm = Place::Arm(Some(Grant::Partner(partner)));
                }
            });
        }
        partner
    }

    /// Returns true if the first waiting sender is the arm of a select.
    pub(crate) fn has_arm(&self, waiting: &Waiting<'_, T>) -> bool {
        !self.holds_message(waiting) && waiting.front(SENDERS).is_some_and(Place::is_arm)
    }

    /// Returns true if a sender with its message need not wait.
    pub(crate) fn may_send(&self, waiting: &Waiting<'_, T>) -> bool {
        self.disconnected || self.has_room(waiting) || !waiting.is_empty(RECEIVERS)
    }

    /// Returns true if a send arm, which has no message yet, need not wait.
    pub(crate) fn may_reserve(&self, waiting: &Waiting<'_, T>) -> bool {
        self.disconnected || self.has_room(waiting) || (!self.has_slots && !waiting.is_empty(RECEIVERS))
    }

    /// Returns true if a receiver need not wait.
    pub(crate) fn may_receive(&self, waiting: &Waiting<'_, T>) -> bool {
        self.holds_message(waiting) || (!self.has_slots && !waiting.is_empty(SENDERS))
    }

    /// Returns true if a receiver finds a message, or the end.
    pub(crate) fn holds_message(&self, waiting: &Waiting<'_, T>) -> bool {
        self.disconnected || !self.queue.is_empty() || self.sender_has_message(waiting)
    }

    /// Returns true if a receiver that waits for no arm finds a message, or the end.
    pub(crate) fn holds_message_past_arms(&self, waiting: &Waiting<'_, T>) -> bool {
        self.disconnected || !self.queue.is_empty() || waiting.iter(SENDERS).any(Place::has_message)
    }

    /// Returns true if a waiting sender has a message.
    ///
    /// Where all slots are reserved a receiver passes over the arms that wait for room.
    fn sender_has_message(&self, waiting: &Waiting<'_, T>) -> bool {
        match self.has_slots {
            true => waiting.iter(SENDERS).any(Place::has_message),
            false => waiting.front(SENDERS).is_some_and(Place::has_message),
        }
    }

    /// Opens the slot of a rendezvous, once a future waits, to the first send arm.
    pub(crate) fn open_to_arms(&mut self, waiting: &mut Waiting<'_, T>) {
        if !waiting.is_empty(FUTURES) {
            self.pass_room_on(waiting);
        }
    }

    /// Notifies the first waiting future, if it would find a message.
    pub(crate) fn notify_future(&mut self, waiting: &mut Waiting<'_, T>) {
        if self.holds_message(waiting) {
            waiting.serve_front(FUTURES, |_| ());
        }
    }

    /// Marks the end of one side, and tells all waiters. They keep their data, and no waiter comes after.
    pub(crate) fn disconnect(&mut self, waiting: &mut Waiting<'_, T>) {
        self.disconnected = true;
        (0..LANES).for_each(|lane| _ = waiting.serve_all(lane));
    }

    /// Takes the unreceived messages after the end of the receivers, to be dropped outside the
    /// lock.
    pub(crate) fn take_unreceived(&mut self) -> Queue<T> {
        std::mem::replace(&mut self.queue, Queue::chain())
    }
}
