//! The messages of a broadcast channel, and who waits for the next.
//!
//! ```text
//!            oldest                      tail
//!              │                          │       positions count messages since the beginning, and never wrap;
//!              ▼                          ▼       the message at p lies in slot p mod capacity
//!  ┌─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//!  │     │  0  │  0  │  1  │  2  │  2  │     │    how many receivers have yet to see it; the last one empties it
//!  └─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//!                       ▲     ▲
//!                     next   next                 a place of each receiver's own; before `oldest` it lags
//! ```
//!
//! All of it is under one lock, and what leaves a slot is handed out, so that nothing of the user's is dropped or cloned
//! under it. A receiver that waits stands at the tail, hence the sleepers' positions ascend in their list, and a send
//! wakes those before the tail that it made and nobody who came after.
//!
//! The lock also decides between an upgrade of a weak sender and the drop of the last sender: the count of senders comes to
//! zero once and stays there, since only who has a sender, or finds one counted under the lock, counts another.

use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

/// How many messages a receiver that goes passes over under one hold of the lock.
const SKIPS: u64 = 64;

/// Messages, senders, receivers and sleepers. `V` is cheap to clone, and no code of the user's runs when it is.
pub(crate) struct Ring<V> {
    state: Lock<State<V>>,
}

pub(crate) struct State<V> {
    /// A power of two of them.
    slots: Box<[Slot<V>]>,
    /// The position of the next message.
    tail: u64,
    /// Zero is final: the channel is closed.
    senders: usize,
    weak_senders: usize,
    receivers: usize,
    /// Each with the position it waits for.
    sleepers: List<u64>,
    /// Those who wait for the last receiver to go.
    mourners: List,
}

struct Slot<V> {
    unseen: usize,
    value: Option<V>,
}

/// What a send did.
#[must_use]
pub(crate) struct Sent<V> {
    pub(crate) receivers: usize,
    /// To be dropped outside of the lock.
    pub(crate) overwritten: Option<V>,
    /// Somebody is to be woken, by [`State::next_before`] and this.
    pub(crate) tail: Option<u64>,
}

/// What a receiver found.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Received<V> {
    Message(V),
    Lagged(u64),
    Empty,
    Closed,
}

impl<V: Clone> Ring<V> {
    /// Makes a ring of `capacity` slots, a power of two, with one sender.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = (0..capacity).map(|_| Slot { unseen: 0, value: None }).collect();
        Ring {
            state: Lock::new(State {
                slots,
                tail: 0,
                senders: 1,
                weak_senders: 0,
                receivers: 0,
                sleepers: List::new(),
                mourners: List::new(),
            }),
        }
    }

    pub(crate) fn state(&self) -> &Lock<State<V>> {
        &self.state
    }

    /// Waits for the message at `node`'s position, unless there is something to be told already.
    ///
    /// # Safety
    /// `node` is in no list and stays in place until [`leave`](Ring::leave) has answered true or `wake` has landed.
    pub(crate) unsafe fn enter(&self, node: &Node<u64>, wake: RawWake) -> bool {
        let mut state = self.state.lock();
        let waits = *node.data() == state.tail && state.senders > 0;
        if waits {
            // SAFETY: the caller's contract; the list and its nodes are only touched under this lock.
            unsafe { state.sleepers.push_back(node, wake) };
        }
        waits
    }

    /// Waits no more. False if a waker was first, whose wake is then on its way.
    ///
    /// # Safety
    /// `node` was entered here.
    pub(crate) unsafe fn leave(&self, node: &Node<u64>) -> bool {
        // SAFETY: by the caller's contract the node is in this list or in none.
        unsafe { self.state.lock().sleepers.remove(node) }
    }

    /// As [`enter`](Ring::enter), for who waits for the last receiver to go.
    ///
    /// # Safety
    /// As for `enter`.
    pub(crate) unsafe fn mourn(&self, node: &Node, wake: RawWake) -> bool {
        let mut state = self.state.lock();
        let waits = state.receivers > 0;
        if waits {
            // SAFETY: the caller's contract; the list and its nodes are only touched under this lock.
            unsafe { state.mourners.push_back(node, wake) };
        }
        waits
    }

    /// As [`leave`](Ring::leave), for who waits for the last receiver to go.
    ///
    /// # Safety
    /// As for `leave`.
    pub(crate) unsafe fn mourn_no_more(&self, node: &Node) -> bool {
        // SAFETY: by the caller's contract the node is in this list or in none.
        unsafe { self.state.lock().mourners.remove(node) }
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

    /// Adds a message. Gives it back if nobody would receive it.
    pub(crate) fn send(&mut self, value: V) -> Result<Sent<V>, V> {
        if self.receivers == 0 {
            return Err(value);
        }
        let index = self.index(self.tail);
        let slot = &mut self.slots[index];
        slot.unseen = self.receivers;
        let overwritten = slot.value.replace(value);
        self.tail += 1;
        let tail = (!self.sleepers.is_empty()).then_some(self.tail);
        Ok(Sent { receivers: self.receivers, overwritten, tail })
    }

    /// The next message of a receiver whose place is `next`.
    pub(crate) fn receive(&mut self, next: &mut u64) -> Received<V> {
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

    /// Counts one receiver that has seen the message at `position`, and the message; moved out if it was the last.
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

    /// Passes over some messages from `next` to `end`, at most to one that nobody else is to see: that is handed out.
    pub(crate) fn skip(&mut self, next: &mut u64, end: u64) -> Option<V> {
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

    /// Counts a receiver. Its place: it sees what is sent from now on.
    pub(crate) fn subscribe(&mut self) -> u64 {
        self.receivers += 1;
        self.tail
    }

    /// Counts a receiver no more. Where what it has to [`skip`](State::skip) ends.
    pub(crate) fn unsubscribe(&mut self) -> u64 {
        self.receivers -= 1;
        self.tail
    }

    /// Counts a sender; by who has one.
    pub(crate) fn add_sender(&mut self) {
        self.senders += 1;
    }

    /// Counts a sender; by who has a weak one. False if the last is gone, and the channel closed with it.
    #[must_use]
    pub(crate) fn upgrade(&mut self) -> bool {
        let open = self.senders > 0;
        if open {
            self.senders += 1;
        }
        open
    }

    /// Counts a sender no more. True if it was the last: all sleepers are to be woken, by
    /// [`next_before`](State::next_before) and [`u64::MAX`].
    #[must_use]
    pub(crate) fn remove_sender(&mut self) -> bool {
        self.senders -= 1;
        self.senders == 0
    }

    pub(crate) fn add_weak_sender(&mut self) {
        self.weak_senders += 1;
    }

    pub(crate) fn remove_weak_sender(&mut self) {
        self.weak_senders -= 1;
    }

    pub(crate) fn senders(&self) -> usize {
        self.senders
    }

    pub(crate) fn weak_senders(&self) -> usize {
        self.weak_senders
    }

    /// Whom to wake next of those who waited for a message before `tail`.
    pub(crate) fn next_before(&mut self, tail: u64) -> Option<RawWake> {
        self.sleepers.pop_front_if(|position| *position < tail)
    }

    /// Whom to wake next of those who waited for the last receiver to go, while there is none.
    pub(crate) fn next_mourner(&mut self) -> Option<RawWake> {
        match self.receivers {
            0 => self.mourners.pop_front(),
            _ => None,
        }
    }

    pub(crate) fn receivers(&self) -> usize {
        self.receivers
    }

    /// How many messages there are after `next`, also those that are lost already.
    pub(crate) fn len_after(&self, next: u64) -> u64 {
        self.tail - next
    }

    /// How many messages somebody has yet to see.
    ///
    /// Each receiver has yet to see all after its place, so what nobody has yet to see comes first.
    pub(crate) fn len(&self) -> usize {
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
