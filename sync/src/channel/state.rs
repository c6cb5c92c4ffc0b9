//! What is under a channel's lock, and every change that is made there.
//!
//! ```text
//!   a message:   sender's ──put──▶ queue ──take──▶ receiver's
//!                   │                                 ▲
//!                   └── put: to the longest waiting ──┘
//!
//!   room:        free ──reserve──▶ held by a send arm ──fulfil──▶ message in the queue
//!                  ▲                     │                              │
//!                  └─────── release ─────┴───────────── take ───────────┘
//!                                      whenever room comes free the longest waiting sender gets it
//!
//!   a receiver   waits ──reserve──▶ Partner: unlinked, lent to a send arm ──give──▶ has the message
//!   (rendezvous):  │
//!                  └───(a future)─▶ promised ──redeem──▶ has the message
//!                                      └─ goes away; then the message is put, or returned if there is no room
//! ```
//!
//! `room` counts the slots that are neither full nor reserved. A rendezvous is a ring of no slots: it never has room, so
//! that a sender waits until a receiver takes the message out of its hands. An unbounded channel has room without end.
//!
//! No receiver waits in its list while a message lies in the queue, or a sender with its message waits: who comes second takes
//! the message, or gives it away. So room that comes free is never given to a sender whose message a receiver waits for.
//!
//! A receiver and the arm of a select make a pair at a rendezvous only, where they never both wait, except for the two arms of
//! one select. In a channel with slots they may, as long as all slots are reserved: the arm waits for room, as at a channel that
//! is full. If it were lent the receiver, whoever holds a slot could send meanwhile, and the message would lie in the queue
//! until the arm has made its own, which may never be if that is made of what comes of the first.
//!
//! The end of the senders is the end of the messages once no future holds one that it may leave behind: until then receivers
//! wait, and they are told again.
//!
//! Nobody who waits is given more than one thing: who pops a node gives under the same hold of the lock, and a list passes
//! over the nodes of those who were claimed elsewhere. Woken without being given anything means to try again.

use std::ptr::NonNull;

use super::outcome::{Freed, Pairing, Put, PutBack, Reserve, Take, Taken};
use super::partner::Partner;
use super::places::{Grant, Receiving, Sending};
use super::queue::{Block, Popped, Queue};
use super::returned::{Chain, Returned};
use crate::crowd::Crowd;
use crate::wait::list::{List, Node};
use crate::wait::{Claim, RawWake};

/// The state of a channel.
pub(crate) struct State<T> {
    room: usize,
    /// It is no rendezvous. Never changes.
    has_slots: bool,
    /// One side is gone.
    disconnected: bool,
    queue: Queue<T>,
    /// What was given to futures that went away with it, in the order in which it was given: older than what lies in the
    /// queue.
    returned: Chain<T>,
    hands: Hands,
    receivers: List<Receiving<T>>,
    /// Futures, one for each send arm that holds a [`Grant::Promise`], but for those that went away.
    promised: List<Receiving<T>>,
    senders: List<Sending<T>>,
    /// Who wants to know when there is something to receive, or a place to send to, without doing it.
    receive_watchers: Crowd,
    send_watchers: Crowd,
}

/// What is known of the messages that were put into the hands of receivers.
struct Hands {
    /// The number of the next one.
    number: u64,
    /// How many are in the hands of futures that have not been polled since: each of them may come back.
    loose: usize,
}

impl<T> State<T> {
    /// Bounded by `capacity`, or not.
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        State {
            room: capacity.unwrap_or(usize::MAX),
            has_slots: capacity != Some(0),
            disconnected: false,
            queue: capacity.map_or(Queue::chain(), Queue::ring),
            returned: Chain::new(),
            hands: Hands { number: 0, loose: 0 },
            receivers: List::new(),
            promised: List::new(),
            senders: List::new(),
            receive_watchers: Crowd::new(),
            send_watchers: Crowd::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.returned.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.room == 0
    }

    /// Gives `message` to the longest waiting receiver, or keeps it if there is room.
    #[inline]
    pub(crate) fn put(&mut self, message: T) -> Put<T> {
        if self.disconnected {
            return Put::Disconnected(message);
        }
        let message = match self.receivers.is_empty() {
            true => message,
            false => match self.hands.give(&mut self.receivers, message) {
                Ok(wake) => return Put::Handed(wake),
                Err(message) => message,
            },
        };
        if self.room == 0 {
            return Put::Full(message);
        }
        match self.queue.push(message) {
            Ok(()) => {
                self.room -= 1;
                Put::Queued { watched: !self.receive_watchers.is_empty() }
            }
            Err(message) => Put::Cramped(message),
        }
    }

    /// Gives the queue a block to grow with. Hands it back if somebody else has done so.
    pub(crate) fn supply(&mut self, block: Box<Block<T>>) -> Option<Box<Block<T>>> {
        self.queue.supply(block)
    }

    /// Takes the oldest message.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Take<T> {
        if !self.returned.is_empty() {
            return self.take_returned();
        }
        match self.queue.pop() {
            Some(Popped { message, spent }) => {
                self.room += 1;
                let Freed { wake, watched } = self.freed();
                Take::Message(message, Taken { wake, watched, spent })
            }
            None => self.take_from_sender(),
        }
    }

    #[cold]
    fn take_returned(&mut self) -> Take<T> {
        self.returned.pop().map_or(Take::Empty, Take::Returned)
    }

    /// Takes a message of which the receiver has gone away: it goes to the one who waits longest now, or before what lies
    /// in the queue. The box is handed back if it is not needed; watchers are to be woken if it is.
    pub(crate) fn put_back(&mut self, mut returned: Box<Returned<T>>) -> PutBack<T> {
        let number = returned.number;
        let handed = self.receivers.pop_front_with(|to| {
            to.number.set(number);
            to.message.set(returned.message.take());
            to.is_future
        });
        if let Some((wake, is_future)) = handed {
            self.hands.loose += usize::from(is_future);
            return PutBack::Handed(wake, returned);
        }
        self.returned.insert(returned);
        PutBack::Kept { watched: !self.receive_watchers.is_empty() }
    }

    /// As [`put_back`](State::put_back), of a message that was in the hands of a future.
    pub(crate) fn take_back(&mut self, returned: Box<Returned<T>>) -> PutBack<T> {
        self.hands.loose -= 1;
        self.put_back(returned)
    }

    /// A future keeps the message that was put into its hands.
    pub(crate) fn keep(&mut self) {
        self.hands.loose -= 1;
    }

    /// True if no message will ever come: none is sent any more, and none comes back.
    pub(crate) fn is_over(&self) -> bool {
        self.disconnected && self.hands.loose == 0
    }

    /// Where the queue is empty: out of the hands of the longest waiting sender.
    #[inline]
    fn take_from_sender(&mut self) -> Take<T> {
        match self.senders.front() {
            None if self.is_over() => Take::Disconnected,
            None => Take::Empty,
            // Also where all slots are reserved: who holds one may take long, and there may be senders behind this one.
            Some(front) if front.is_arm => Take::Arm,
            Some(_) => {
                let popped = self.senders.pop_front_with(|from| from.message.take());
                popped.map_or(Take::Empty, Take::from_sender)
            }
        }
    }

    /// As [`take`](State::take) for one who waits for no arm: behind arms there may be a sender with its message.
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

    /// After room came free: the longest waiting sender gets it. After the end nobody does: who waits then is told of the end.
    #[inline]
    fn freed(&mut self) -> Freed {
        let wake = match self.senders.is_empty() || self.disconnected {
            true => None,
            false => self.admit(),
        };
        Freed { wake, watched: self.room > 0 && !self.send_watchers.is_empty() }
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
        if self.room > 0 {
            self.room -= 1;
            return Reserve::Granted(Grant::Room);
        }
        match self.has_slots {
            true => Reserve::Full,
            false => self.borrow_receiver(),
        }
    }

    /// Selects a send arm at a rendezvous, if a receiver waits.
    fn borrow_receiver(&mut self) -> Reserve<T> {
        let mut place = None;
        let wake = self.receivers.pop_front_if(|to| {
            place = (!to.is_future).then(|| NonNull::from(to));
            place.is_some()
        });
        match (wake, place) {
            (Some(wake), Some(place)) => Reserve::Granted(Grant::Partner(Partner::new(place, wake))),
            _ => match self.promise() {
                true => Reserve::Granted(Grant::Promise),
                false => Reserve::Full,
            },
        }
    }

    /// Makes a promise to the longest waiting receiver, which is a future. False if none waits.
    fn promise(&mut self) -> bool {
        if let Some(front) = self.receivers.front() {
            front.promised.set(true);
        }
        // SAFETY: both lists are under this lock, and `withdraw_receiver` looks which one it is.
        unsafe { self.receivers.shift_to(&mut self.promised) }
    }

    /// Sends what was promised: to a future that waits for it, or else to any receiver that waits.
    pub(crate) fn redeem(&mut self, message: T) -> Put<T> {
        match self.hands.give(&mut self.promised, message) {
            Ok(wake) => Put::Handed(wake),
            Err(message) => self.put(message),
        }
    }

    /// Takes a promise back: the future, if it is still there, is to try again.
    pub(crate) fn break_promise(&mut self) -> Option<RawWake> {
        self.promised.pop_front()
    }

    /// Sends into a slot that was reserved.
    pub(crate) fn fulfil(&mut self, message: T) -> (Put<T>, Freed) {
        self.room += 1;
        match self.put(message) {
            // It did not need the slot.
            handed @ Put::Handed(_) => (handed, self.freed()),
            put => (put, Freed { wake: None, watched: false }),
        }
    }

    /// Gives up a slot that was reserved.
    pub(crate) fn release(&mut self) -> Freed {
        self.room += 1;
        self.freed()
    }

    /// Pairs a receiver, whose place and wake are lent, with the longest waiting sender.
    pub(crate) fn pair(&mut self, place: &Receiving<T>, wake: RawWake) -> Pairing {
        self.pair_by(place, || Grant::Partner(Partner::new(place.into(), wake)))
    }

    /// Pairs a future with the longest waiting sender: the arm of a select makes it a promise. For who has found that no message
    /// is [held](State::holds_message).
    ///
    /// # Safety
    /// As for [`List::push_back`], of this state's lock.
    pub(crate) unsafe fn pair_future(&mut self, node: &Node<Receiving<T>>, wake: RawWake) -> Pairing {
        let pairing = self.pair_by(node.data(), || Grant::Promise);
        if matches!(pairing, Pairing::Lent(_)) {
            node.data().promised.set(true);
            // SAFETY: the caller's contract.
            unsafe { self.promised.push_back(node, wake) };
        }
        pairing
    }

    fn pair_by(&mut self, place: &Receiving<T>, grant: impl FnOnce() -> Grant<T>) -> Pairing {
        if self.has_slots {
            return Pairing::Alone;
        }
        let popped = self.senders.pop_front_with(|from| {
            match from.is_arm {
                true => from.grant.set(Some(grant())),
                false => place.message.set(from.message.take()),
            }
            from.is_arm
        });
        match popped {
            Some((sender, true)) => Pairing::Lent(sender),
            Some((sender, false)) => {
                self.hands.loose += usize::from(place.is_future);
                Pairing::Given(sender)
            }
            None => Pairing::Alone,
        }
    }

    /// True if a sender that has its message would not have to wait.
    pub(crate) fn may_send(&self) -> bool {
        self.disconnected || self.room > 0 || !self.receivers.is_empty()
    }

    /// True if the send arm of a select, which has none yet, would not have to wait.
    pub(crate) fn may_reserve(&self) -> bool {
        self.disconnected || self.room > 0 || (!self.has_slots && !self.receivers.is_empty())
    }

    /// The same for the select behind `claim`, which may wait here as a receiver.
    pub(crate) fn may_reserve_for(&self, claim: &Claim) -> bool {
        self.disconnected || self.room > 0 || (!self.has_slots && self.receivers.has_other_than(claim))
    }

    /// True if a receiver would not have to wait.
    pub(crate) fn may_receive(&self) -> bool {
        self.holds_message() || (!self.has_slots && !self.senders.is_empty())
    }

    /// True if the receive arm of the select behind `claim` would not have to wait.
    pub(crate) fn may_receive_for(&self, claim: &Claim) -> bool {
        self.holds_message() || (!self.has_slots && self.senders.has_other_than(claim))
    }

    /// True if a receiver finds a message, or the end.
    pub(crate) fn holds_message(&self) -> bool {
        self.is_over()
            || !self.returned.is_empty()
            || !self.queue.is_empty()
            || (!self.senders.is_empty() && self.sender_has_message())
    }

    /// The same for one who waits for no arm.
    pub(crate) fn holds_message_past_arms(&self) -> bool {
        self.holds_message() || self.has_message_behind_arms()
    }

    /// Where any sender waits: whether a receiver finds the message of one.
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

    /// Enlists a receiver. True if watchers of the sending side are to be woken.
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

    /// Enlists a sender. True if watchers of the receiving side are to be woken.
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
        // One that waits for room has nothing for a receiver.
        !self.has_slots && !self.receive_watchers.is_empty()
    }

    /// Withdraws a receiver. False if somebody else has unlinked it.
    ///
    /// # Safety
    /// `node` is in a list of this state's receivers or in none.
    pub(crate) unsafe fn withdraw_receiver(&mut self, node: &Node<Receiving<T>>) -> bool {
        let list = match node.data().promised.get() {
            true => &mut self.promised,
            false => &mut self.receivers,
        };
        // SAFETY: the caller's contract; the mark tells which list.
        unsafe { list.remove(node) }
    }

    /// Withdraws a sender. False if somebody else has unlinked it.
    ///
    /// # Safety
    /// `node` is in this list or in none.
    pub(crate) unsafe fn withdraw_sender(&mut self, node: &Node<Sending<T>>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.senders.remove(node) }
    }

    /// Who watches the receiving side.
    pub(crate) fn receive_watchers(&mut self) -> &mut Crowd {
        &mut self.receive_watchers
    }

    /// Who watches the sending side.
    pub(crate) fn send_watchers(&mut self) -> &mut Crowd {
        &mut self.send_watchers
    }

    /// Marks the end of one side.
    pub(crate) fn disconnect(&mut self) {
        self.disconnected = true;
    }

    /// At the end: anybody who waits. What it waits with stays with it, and it never waits here again.
    pub(crate) fn next_to_tell(&mut self) -> Option<RawWake> {
        self.receivers
            .pop_front()
            .or_else(|| self.senders.pop_front())
            .or_else(|| self.receive_watchers.next_of_all())
            .or_else(|| self.send_watchers.next_of_all())
    }

    /// After the end of the receivers: what nobody will receive, to be dropped outside the lock.
    pub(crate) fn take_unreceived(&mut self) -> (Chain<T>, Queue<T>) {
        let returned = std::mem::replace(&mut self.returned, Chain::new());
        (returned, std::mem::replace(&mut self.queue, Queue::chain()))
    }
}

impl Hands {
    /// Gives `message` to the longest waiting of `receivers`.
    #[inline]
    fn give<T>(&mut self, receivers: &mut List<Receiving<T>>, message: T) -> Result<RawWake, T> {
        let mut message = Some(message);
        let popped = receivers.pop_front_with(|to| {
            to.number.set(self.number);
            to.message.set(message.take());
            to.is_future
        });
        match (popped, message) {
            (Some((wake, is_future)), _) => {
                self.number += 1;
                self.loose += usize::from(is_future);
                Ok(wake)
            }
            (None, Some(message)) => Err(message),
            (None, None) => unreachable!("it is given to who was popped"),
        }
    }
}
