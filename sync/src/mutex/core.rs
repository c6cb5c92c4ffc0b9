//! The word of a mutex and its wait queue, without a clock and without a hand-off policy.
//!
//! The lock order is: the queue of a condition, then the queue of the mutex.

use std::cell::Cell;
use std::time::Instant;

use fibra_runtime::clock;

use super::state::{Arrival, Attempt, Moved, Owner, Queue, Release, Word};
use crate::wait::list::{List, Node};
use crate::wait::{Home, Lock, RawWake};

/// A mutex as its word and its waiters, longest first.
pub(crate) struct Core {
    word: Word,
    waiters: Lock<List<Waiter>>,
}

/// A waiter's data. Others touch it under the lock of the queue that it is in.
pub(crate) struct Waiter {
    owner: Owner,
    /// The worker on which the waiter runs.
    pub(crate) home: Cell<Option<Home>>,
    given: Cell<Given>,
    /// The waiter was woken, and came too late.
    pub(crate) is_bypassed: Cell<bool>,
    /// Since when an unlock of another worker knows it as bypassed.
    pub(crate) bypassed_since: Cell<Option<Instant>>,
    /// Since when it is known as the first in the queue while a woken waiter is on its way.
    first_since: Cell<Option<Instant>>,
    /// Of a condition: the round it came in, and whether it was notified and so is in the queue of the mutex.
    pub(crate) round: Cell<u64>,
    notified: Cell<bool>,
}

/// What a waiter got when it was taken out of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// The mutex.
    Lock,
    /// A wake, to compete for the mutex.
    Wake,
}

/// How an unlock treats the longest waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HandOff {
    /// The waiter is woken and competes with arrivals.
    Wake,
    /// The waiter owns the mutex at once.
    Direct,
}

/// What an unlock does about its waiters.
pub(crate) trait Policy {
    /// How the longest waiter is treated.
    fn hand_off(&self, first: &Waiter) -> HandOff;

    /// True if a waiter that is on its way since then has not come in time.
    fn is_overdue(&self, since: Instant) -> bool;
}

impl Waiter {
    /// Makes the data of a task or thread that is going to wait.
    pub(crate) const fn new(owner: Owner) -> Self {
        Waiter {
            owner,
            home: Cell::new(None),
            given: Cell::new(Given::Wake),
            is_bypassed: Cell::new(false),
            bypassed_since: Cell::new(None),
            first_since: Cell::new(None),
            round: Cell::new(0),
            notified: Cell::new(false),
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// What the waiter was given. For the waiter, once it was woken.
    pub(crate) fn given(&self) -> Given {
        self.given.get()
    }

    /// True once a notification has put the waiter of a condition into the queue of the mutex.
    ///
    /// Under the lock of the condition.
    pub(crate) fn is_notified(&self) -> bool {
        self.notified.get()
    }
}

impl Core {
    pub(crate) const fn new() -> Self {
        Core { word: Word::new(), waiters: Lock::new(List::new()) }
    }

    /// The word, for what needs no queue.
    #[inline]
    pub(crate) fn word(&self) -> &Word {
        &self.word
    }

    /// Takes the mutex if it is free. Else enters the queue: a woken waiter at its front. True if taken.
    ///
    /// # Safety
    /// `node` is in no list, and stays alive and in place until it is taken out of this queue, by [`Core::leave`] or by a
    /// waker; its data is only touched under the lock of the queue.
    pub(crate) unsafe fn enter(&self, node: &Node<Waiter>, wake: RawWake, arrival: Arrival) -> bool {
        let mut waiters = self.waiters.lock();
        let waiter = node.data();
        if self.word.take_or_queue(waiter.owner, arrival) == Attempt::Taken {
            waiter.given.set(Given::Lock);
            return true;
        }
        waiter.first_since.set(None);
        match arrival {
            // SAFETY: by this function's contract.
            Arrival::New => unsafe { waiters.push_back(node, wake) },
            Arrival::Woken => {
                waiter.is_bypassed.set(true);
                // SAFETY: as above.
                unsafe { waiters.push_front(node, wake) }
            }
        }
        self.note_first(&waiters);
        false
    }

    /// Leaves the queue. False if a waker was first, whose wake is then on its way.
    ///
    /// # Safety
    /// `node` is in this queue or in no list.
    pub(crate) unsafe fn leave(&self, node: &Node<Waiter>) -> bool {
        let mut waiters = self.waiters.lock();
        // SAFETY: by this function's contract.
        let left = unsafe { waiters.remove(node) };
        if left {
            self.changed(&waiters);
        }
        left
    }

    /// Looks for the mutex a last time, for a woken waiter whose time is over. True if taken.
    pub(crate) fn arrive_late(&self, me: Owner) -> bool {
        let _waiters = self.waiters.lock();
        self.word.arrive_late(me) == Attempt::Taken
    }

    /// Unlocks, and says which waiter is to be woken. By the owner.
    #[inline]
    pub(crate) fn release(&self, policy: &impl Policy) -> Option<RawWake> {
        match self.word.release_past_queue() {
            Release::Free => None,
            Release::AskQueue => self.release_to_queue(policy),
        }
    }

    /// Unlocks with regard to the longest waiter, and says which one is to be woken. By the owner.
    #[cold]
    pub(crate) fn release_to_queue(&self, policy: &impl Policy) -> Option<RawWake> {
        let mut waiters = self.waiters.lock();
        let Some(first) = waiters.front() else {
            self.word.release(Queue::Empty);
            return None;
        };
        let (owner, home) = (first.owner, first.home.get());
        match policy.hand_off(first) {
            HandOff::Direct => {
                let wake = Self::take_first_out(&mut waiters, Given::Lock);
                self.word.hand_over(owner, Self::queue(&waiters));
                self.note_first(&waiters);
                wake
            }
            HandOff::Wake if self.is_one_on_its_way(first, policy) => {
                self.word.release(Queue::Waiting);
                None
            }
            HandOff::Wake => {
                let wake = Self::take_first_out(&mut waiters, Given::Wake);
                self.word.release_and_wake(Self::queue(&waiters));
                if let Some(next) = waiters.front() {
                    // A waiter of the same worker does not come before the woken one. So it needs no clock yet.
                    let is_elsewhere = home.is_none() || next.home.get() != home;
                    next.first_since.set(is_elsewhere.then(clock::now));
                }
                wake
            }
        }
    }

    /// True if a woken waiter is on its way that may still come in time.
    fn is_one_on_its_way(&self, first: &Waiter, policy: &impl Policy) -> bool {
        if !self.word.look().has_woken() {
            return false;
        }
        match first.first_since.get() {
            Some(since) => !policy.is_overdue(since),
            None => {
                first.first_since.set(Some(clock::now()));
                true
            }
        }
    }

    /// Puts up to `limit` of the longest waiters of a condition into the queue, as long as they are `wanted`.
    ///
    /// Returns how many they were, and which one is to be woken.
    ///
    /// # Safety
    /// The caller holds the lock of `from`, whose waiters wait for this very mutex.
    pub(crate) unsafe fn admit(
        &self,
        from: &mut List<Waiter>,
        limit: usize,
        wanted: impl Fn(&Waiter) -> bool,
    ) -> (usize, Option<RawWake>) {
        let mut waiters = self.waiters.lock();
        let mut count = 0;
        while count < limit
            && let Some(waiter) = from.front()
            && wanted(waiter)
        {
            waiter.notified.set(true);
            // SAFETY: both locks are held, and `notified` tells the waiter where its node is.
            unsafe { from.shift_to(&mut waiters) };
            count += 1;
        }
        if count == 0 {
            return (0, None);
        }
        let wake = match self.word.add_waiters() {
            Moved::Wait => None,
            Moved::WakeFirst => Self::take_first_out(&mut waiters, Given::Wake),
        };
        self.changed(&waiters);
        (count, wake)
    }

    fn take_first_out(waiters: &mut List<Waiter>, given: Given) -> Option<RawWake> {
        waiters.pop_front_with(|waiter| waiter.given.set(given)).map(|(wake, ())| wake)
    }

    fn queue(waiters: &List<Waiter>) -> Queue {
        if waiters.is_empty() { Queue::Empty } else { Queue::Waiting }
    }

    /// Notes what has become of the queue, after a change that is no unlock.
    fn changed(&self, waiters: &List<Waiter>) {
        match Self::queue(waiters) {
            Queue::Empty => self.word.emptied(),
            Queue::Waiting => self.note_first(waiters),
        }
    }

    /// Notes the time for the first waiter, if it waits for a woken waiter to come.
    fn note_first(&self, waiters: &List<Waiter>) {
        if let Some(first) = waiters.front()
            && first.first_since.get().is_none()
            && self.word.look().has_woken()
        {
            first.first_since.set(Some(clock::now()));
        }
    }
}
