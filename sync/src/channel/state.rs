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
//!   receiver: waits ──reserve──▶ Partner: unlinked, lent to a send arm ──give──▶ has the message
//!                                (rendezvous)
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
//! A waiter is served once: popping its node and handing over happen under one hold of the lock.
//! The lists skip nodes of a select that is decided elsewhere. A waiter that is woken and was not
//! served tries again.

use std::ptr::NonNull;

use super::outcome::{Freed, Pairing, Put, Reserve, Take, Taken};
use super::places::{Grant, Partner, Receiving, Sending};
use super::queue::{Block, Popped, Queue};
use crate::crowd::Crowd;
use crate::wait::list::{List, Node};
use crate::wait::{Claim, RawWake};

/// State of a channel.
pub(crate) struct State<T> {
    room: usize,
    /// False for a rendezvous. Never changes.
    has_slots: bool,
    /// True once one side is gone.
    disconnected: bool,
    queue: Queue<T>,
    receivers: List<Receiving<T>>,
    /// Futures that wait to be notified of a message.
    futures: List,
    senders: List<Sending<T>>,
    /// Waiters to be told of a message without receiving it. `send_watchers` are told of room.
    receive_watchers: Crowd,
    send_watchers: Crowd,
}

impl<T> State<T> {
    /// Makes a state with room for `capacity` messages, or without bound.
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        State {
            room: capacity.map_or(usize::MAX, |capacity| capacity.max(1)),
            has_slots: capacity != Some(0),
            disconnected: false,
            queue: capacity.map_or(Queue::chain(), |capacity| Queue::ring(capacity.max(1))),
            receivers: List::new(),
            futures: List::new(),
            senders: List::new(),
            receive_watchers: Crowd::new(),
            send_watchers: Crowd::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.has_slots || self.room == 0
    }

    /// Returns true if a message may enter the queue.
    #[inline]
    fn has_room(&self) -> bool {
        self.room > 0 && (self.has_slots || !self.futures.is_empty())
    }

    /// Hands `message` to the first waiting receiver, or queues it if there is room.
    #[inline]
    pub(crate) fn put(&mut self, message: T) -> Put<T> {
        if self.disconnected {
            return Put::Disconnected(message);
        }
        let message = match self.hand_over(message) {
            Ok(wake) => return Put::Handed(wake),
            Err(message) => message,
        };
        if !self.has_room() {
            return Put::Full(message);
        }
        match self.queue.push(message) {
            Ok(()) => {
                self.room -= 1;
                Put::Queued { watched: self.is_receiving_watched() }
            }
            Err(message) => Put::Cramped(message),
        }
    }

    /// Hands `message` to the first waiting receiver.
    #[inline]
    fn hand_over(&mut self, message: T) -> Result<RawWake, T> {
        if self.receivers.is_empty() {
            return Err(message);
        }
        let mut message = Some(message);
        let popped = self.receivers.pop_front_with(|to| to.message.set(message.take()));
        match (popped, message) {
            (Some((wake, ())), _) => Ok(wake),
            (None, Some(message)) => Err(message),
            (None, None) => unreachable!("only a popped receiver takes the message"),
        }
    }

    /// Returns true if futures or watchers wait to be notified of a message.
    #[inline]
    fn is_receiving_watched(&self) -> bool {
        !self.receive_watchers.is_empty() || !self.futures.is_empty()
    }

    /// Gives the queue a block to grow with. Hands it back if the queue has one already.
    pub(crate) fn supply(&mut self, block: Box<Block<T>>) -> Option<Box<Block<T>>> {
        self.queue.supply(block)
    }

    /// Takes the oldest message.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Take<T> {
        match self.queue.pop() {
            Some(Popped { message, spent }) => {
                self.room += 1;
                Take::Message(message, Taken { freed: self.freed(), spent })
            }
            None => self.take_from_sender(),
        }
    }

    /// Takes the message of the longest waiting sender. The queue is empty.
    #[inline]
    fn take_from_sender(&mut self) -> Take<T> {
        match self.senders.front() {
            None if self.disconnected => Take::Disconnected,
            None => Take::Empty,
            // Even if all slots are reserved: their owners may take long, and blocked senders may
            // wait behind this arm.
            Some(front) if front.is_arm => Take::Arm,
            Some(_) => {
                let popped = self.senders.pop_front_with(|from| from.message.take());
                popped.map_or(Take::Empty, Take::from_sender)
            }
        }
    }

    /// Takes a message, if need be of a sender behind arms, for a receiver that waits for no arm.
    #[cold]
    pub(crate) fn take_past_arms(&mut self) -> Take<T> {
        match self.take() {
            Take::Arm => {
                let popped = self.senders.pop_first_with(|from| !from.is_arm, |from| from.message.take());
                popped.map_or(Take::Empty, Take::from_sender)
            }
            taken => taken,
        }
    }

    /// Gives freed room to the longest waiting sender.
    ///
    /// After the end of a side no sender gets it: senders are told of the end.
    #[inline(always)]
    fn freed(&mut self) -> Option<Freed> {
        match self.senders.is_empty() && self.send_watchers.is_empty() && self.futures.is_empty() {
            true => None,
            false => Some(self.freed_to_waiters()),
        }
    }

    #[inline(never)]
    fn freed_to_waiters(&mut self) -> Freed {
        let wake = match self.senders.is_empty() || self.disconnected || !self.has_room() {
            true => None,
            false => self.admit(),
        };
        Freed {
            wake,
            sending_watched: !self.send_watchers.is_empty() && self.has_room(),
            receiving_watched: !self.queue.is_empty() && !self.futures.is_empty(),
        }
    }

    #[inline]
    fn admit(&mut self) -> Option<RawWake> {
        let (wake, message) = self.senders.pop_front_with(|from| {
            if from.is_arm {
                from.grant.set(Some(Grant::Room));
            }
            from.message.take()
        })?;
        self.room -= 1;
        if let Some(message) = message {
            let kept = self.queue.push(message);
            debug_assert!(kept.is_ok(), "senders wait for rings only, whose room is counted");
        }
        Some(wake)
    }

    /// Selects a send arm, if it need not wait.
    pub(crate) fn reserve(&mut self) -> Reserve<T> {
        if self.disconnected {
            return Reserve::Disconnected;
        }
        if !self.has_slots
            && let Some(partner) = self.borrow_receiver()
        {
            return Reserve::Granted(Grant::Partner(partner));
        }
        if self.has_room() {
            self.room -= 1;
            return Reserve::Granted(Grant::Room);
        }
        Reserve::Full
    }

    /// Takes the first waiting receiver out of the list, for a send arm at a rendezvous.
    fn borrow_receiver(&mut self) -> Option<Partner<T>> {
        let (wake, place) = self.receivers.pop_front_with(|to| NonNull::from(to))?;
        Some(Partner::new(place, wake))
    }

    /// Sends into a slot that was reserved.
    pub(crate) fn fulfil(&mut self, message: T) -> (Put<T>, Option<Freed>) {
        self.room += 1;
        if self.disconnected {
            return (Put::Disconnected(message), None);
        }
        let message = match self.hand_over(message) {
            // It did not need the slot.
            Ok(wake) => return (Put::Handed(wake), self.freed()),
            Err(message) => message,
        };
        match self.queue.push(message) {
            Ok(()) => {
                self.room -= 1;
                (Put::Queued { watched: self.is_receiving_watched() }, None)
            }
            Err(message) => (Put::Cramped(message), None),
        }
    }

    /// Gives up a slot that was reserved.
    pub(crate) fn release(&mut self) -> Option<Freed> {
        self.room += 1;
        self.freed()
    }

    /// Pairs a receiver, whose place and wake are lent, with the first waiting sender.
    pub(crate) fn pair(&mut self, place: &Receiving<T>, wake: RawWake) -> Pairing {
        let popped = self.senders.pop_front_with(|from| {
            match from.is_arm {
                true => from.grant.set(Some(Grant::Partner(Partner::new(place.into(), wake)))),
                false => place.message.set(from.message.take()),
            }
            from.is_arm
        });
        match popped {
            Some((sender, true)) => Pairing::Lent(sender),
            Some((sender, false)) => Pairing::Given(sender),
            None => Pairing::Alone,
        }
    }

    /// Returns true if a sender with its message need not wait.
    pub(crate) fn may_send(&self) -> bool {
        self.disconnected || self.has_room() || !self.receivers.is_empty()
    }

    /// Returns true if a send arm, which has no message yet, need not wait.
    pub(crate) fn may_reserve(&self) -> bool {
        self.disconnected || self.has_room() || (!self.has_slots && !self.receivers.is_empty())
    }

    /// Returns true if the send arm of the select behind `claim` need not wait.
    ///
    /// That select may wait here as a receiver, too.
    pub(crate) fn may_reserve_for(&self, claim: &Claim) -> bool {
        self.disconnected || self.has_room() || (!self.has_slots && self.receivers.has_other_than(claim))
    }

    /// Returns true if a receiver need not wait.
    pub(crate) fn may_receive(&self) -> bool {
        self.holds_message() || (!self.has_slots && !self.senders.is_empty())
    }

    /// Returns true if the receive arm of the select behind `claim` need not wait.
    pub(crate) fn may_receive_for(&self, claim: &Claim) -> bool {
        self.holds_message() || (!self.has_slots && self.senders.has_other_than(claim))
    }

    /// Returns true if a receiver finds a message, or the end.
    pub(crate) fn holds_message(&self) -> bool {
        self.disconnected || !self.queue.is_empty() || (!self.senders.is_empty() && self.sender_has_message())
    }

    /// Returns true if a receiver that waits for no arm finds a message, or the end.
    pub(crate) fn holds_message_past_arms(&self) -> bool {
        self.holds_message() || self.has_message_behind_arms()
    }

    /// Returns true if a receiver finds the message of a waiting sender. There is a waiting sender.
    #[cold]
    fn sender_has_message(&self) -> bool {
        match self.has_slots {
            true => self.has_message_behind_arms(),
            false => self.senders.front().is_some_and(|front| !front.is_arm),
        }
    }

    fn has_message_behind_arms(&self) -> bool {
        self.senders.has(|from| !from.is_arm)
    }

    /// Enlists a receiver. Returns true if watchers of the sending side are to be woken.
    ///
    /// # Safety
    /// As for [`List::push_back`], of this state's lock.
    pub(crate) unsafe fn await_message(&mut self, node: &Node<Receiving<T>>, wake: RawWake) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.receivers.push_back(node, wake) };
        self.has_watchers_of_receivers()
    }

    /// Enlists the receive arm `arm` of a select.
    ///
    /// # Safety
    /// As for [`List::push_back_for`], of this state's lock.
    pub(crate) unsafe fn await_message_for(
        &mut self,
        node: &Node<Receiving<T>>,
        wake: RawWake,
        claim: &Claim,
        arm: usize,
    ) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.receivers.push_back_for(node, wake, claim, arm) };
        self.has_watchers_of_receivers()
    }

    /// They are arms of selects, to which a receiver is room only at a rendezvous.
    fn has_watchers_of_receivers(&self) -> bool {
        !self.has_slots && !self.send_watchers.is_empty()
    }

    /// Enlists a sender. Returns true if watchers of the receiving side are to be woken.
    ///
    /// # Safety
    /// As for [`List::push_back`], of this state's lock.
    pub(crate) unsafe fn await_room(&mut self, node: &Node<Sending<T>>, wake: RawWake) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.senders.push_back(node, wake) };
        !self.receive_watchers.is_empty()
    }

    /// Enlists the send arm `arm` of a select.
    ///
    /// # Safety
    /// As for [`List::push_back_for`], of this state's lock.
    pub(crate) unsafe fn await_room_for(
        &mut self,
        node: &Node<Sending<T>>,
        wake: RawWake,
        claim: &Claim,
        arm: usize,
    ) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.senders.push_back_for(node, wake, claim, arm) };
        // An arm that waits for room has nothing for a receiver.
        !self.has_slots && !self.receive_watchers.is_empty()
    }

    /// Withdraws a receiver. Returns false if a sender has unlinked it.
    ///
    /// # Safety
    /// `node` is in this list or in none.
    pub(crate) unsafe fn withdraw_receiver(&mut self, node: &Node<Receiving<T>>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.receivers.remove(node) }
    }

    /// Enlists a future. Opens the slot of a rendezvous to the first waiting send arm, which is to be woken.
    ///
    /// # Safety
    /// As for [`List::push_back`], of this state's lock.
    pub(crate) unsafe fn enlist_future(&mut self, node: &Node, wake: RawWake) -> Option<Freed> {
        // SAFETY: the caller's contract.
        unsafe { self.futures.push_back(node, wake) };
        match self.has_slots {
            true => None,
            false => self.freed(),
        }
    }

    /// Withdraws a future. Returns false if it was notified.
    ///
    /// # Safety
    /// `node` is in this list or in none.
    pub(crate) unsafe fn withdraw_future(&mut self, node: &Node) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.futures.remove(node) }
    }

    /// Takes the first waiting future out of the list, if it would find a message.
    pub(crate) fn next_future(&mut self) -> Option<RawWake> {
        match self.holds_message() {
            true => self.futures.pop_front(),
            false => None,
        }
    }

    /// Withdraws a sender. Returns false if it was unlinked by a receiver or by the end.
    ///
    /// # Safety
    /// `node` is in this list or in none.
    pub(crate) unsafe fn withdraw_sender(&mut self, node: &Node<Sending<T>>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.senders.remove(node) }
    }

    /// Returns the watchers of the receiving side.
    pub(crate) fn receive_watchers(&mut self) -> &mut Crowd {
        &mut self.receive_watchers
    }

    /// Returns the watchers of the sending side.
    pub(crate) fn send_watchers(&mut self) -> &mut Crowd {
        &mut self.send_watchers
    }

    /// Marks the end of one side.
    pub(crate) fn disconnect(&mut self) {
        self.disconnected = true;
    }

    /// Takes out any waiter, to be told of the end. It keeps its message, and never waits here
    /// again.
    pub(crate) fn next_to_tell(&mut self) -> Option<RawWake> {
        self.receivers
            .pop_front()
            .or_else(|| self.senders.pop_front())
            .or_else(|| self.futures.pop_front())
            .or_else(|| self.receive_watchers.next_of_all())
            .or_else(|| self.send_watchers.next_of_all())
    }

    /// Takes the unreceived messages after the end of the receivers, to be dropped outside the
    /// lock.
    pub(crate) fn take_unreceived(&mut self) -> Queue<T> {
        std::mem::replace(&mut self.queue, Queue::chain())
    }
}
