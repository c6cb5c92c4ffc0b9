//! The line before a lock: its state and those who wait for it, longest first.
//!
//! An unlock wakes the longest waiter, which competes with whoever comes by. One that lost goes back to the front, and is
//! marked as bypassed; the policy of the lock decides when such a one gets the lock handed over instead.
//!
//! The lock order is: a condition's list, then the line.

use std::cell::Cell;
use std::time::Instant;

use super::state::{Attempt, Comer, Signs, State, Unlocked};
use crate::primitive::AtomicU64;
use crate::wait::list::{List, Node};
use crate::wait::{Home, Lock, RawWake};

/// The state of a lock, and its waiters.
pub(crate) struct Line {
    owner: AtomicU64,
    waiters: Lock<List<Seat>, Signs>,
}

/// What is known of one who waits. Touched by others under the lock of the list that the node is in.
pub(crate) struct Seat {
    number: u64,
    /// The worker on which the waiter runs.
    pub(crate) home: Cell<Option<Home>>,
    given: Cell<Given>,
    /// Woken, and came too late.
    pub(crate) bypassed: Cell<bool>,
    /// Since when it has been seen bypassed by an unlock elsewhere.
    pub(crate) since: Cell<Option<Instant>>,
    /// For a condition's waiters: the round they came in, and whether they were notified and hence are in the line.
    pub(crate) round: Cell<u64>,
    notified: Cell<bool>,
}

/// What a waiter was given by who took it out of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// The lock.
    Lock,
    /// A wake, to look again.
    Wake,
}

/// How the lock is to be passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// The longest waiter is woken and competes.
    Wake,
    /// The longest waiter owns the lock at once.
    HandOver,
}

impl Seat {
    /// Makes the seat of the task or the thread `number`.
    pub(crate) const fn new(number: u64) -> Self {
        Seat {
            number,
            home: Cell::new(None),
            given: Cell::new(Given::Wake),
            bypassed: Cell::new(false),
            since: Cell::new(None),
            round: Cell::new(0),
            notified: Cell::new(false),
        }
    }

    /// The number of the task or the thread that waits.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What the waiter was given. By the waiter, once it has been woken.
    pub(crate) fn given(&self) -> Given {
        self.given.get()
    }

    /// True once a condition's notification has put the waiter into the line. Under the condition's lock.
    pub(crate) fn is_notified(&self) -> bool {
        self.notified.get()
    }
}

impl Line {
    pub(crate) const fn new() -> Self {
        Line { owner: AtomicU64::new(0), waiters: Lock::beside(Signs::new(), List::new()) }
    }

    #[inline]
    fn state(&self) -> State<'_> {
        State { owner: &self.owner, signs: self.waiters.what_is_beside() }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(crate) fn take_free(&self, me: u64) -> bool {
        self.state().take_free(me)
    }

    /// The same; `comer` is no more on its way then.
    pub(crate) fn take(&self, me: u64, comer: Comer) -> Attempt {
        self.state().take(me, comer)
    }

    /// The number of the owner, 0 if there is none. Momentary.
    pub(crate) fn owner(&self) -> u64 {
        self.state().owner()
    }

    /// True if somebody waits. Momentary.
    pub(crate) fn has_waiters(&self) -> bool {
        self.state().has_waiters()
    }

    /// Takes the lock if it is free, else goes into the line: who was woken before goes to the front. True if taken.
    ///
    /// # Safety
    /// `node` is in no list, and stays alive and in place until it is taken out of this line, by [`Line::leave`] or by a
    /// waker; its data is only touched under the line's lock.
    pub(crate) unsafe fn enter(&self, node: &Node<Seat>, wake: RawWake, comer: Comer) -> bool {
        let mut waiters = self.waiters.lock();
        let state = self.state();
        state.arrived(comer);
        state.announce();
        if state.take(node.data().number, Comer::New) == Attempt::Taken {
            if waiters.is_empty() {
                state.emptied();
            }
            node.data().given.set(Given::Lock);
            return true;
        }
        match comer {
            // SAFETY: by this function's contract.
            Comer::New => unsafe { waiters.push_back(node, wake) },
            Comer::Woken => {
                node.data().bypassed.set(true);
                // SAFETY: as above.
                unsafe { waiters.push_front(node, wake) }
            }
        }
        false
    }

    /// Leaves the line. False if a waker was first, whose wake is then on its way.
    ///
    /// # Safety
    /// `node` is in this line or in no list.
    pub(crate) unsafe fn leave(&self, node: &Node<Seat>) -> bool {
        let mut waiters = self.waiters.lock();
        // SAFETY: by this function's contract.
        let left = unsafe { waiters.remove(node) };
        if left && waiters.is_empty() {
            self.state().emptied();
        }
        left
    }

    /// Frees the lock if there is nobody to wake. By the owner.
    #[inline]
    pub(crate) fn release_alone(&self) -> Unlocked {
        self.state().release_alone()
    }

    /// Who is to be woken after an unlock that met one who came, in the manner that is asked for when it is known. By anybody.
    pub(crate) fn look(&self, manner: impl FnOnce(&Seat) -> Manner) -> Option<RawWake> {
        let mut waiters = self.waiters.lock();
        let state = self.state();
        let first = waiters.front()?;
        if manner(first) == Manner::Wake {
            return self.send_first(&mut waiters);
        }
        match state.take(first.number, Comer::New) {
            Attempt::Owned(_) => None,
            Attempt::Taken => self.take_first_out(&mut waiters, Given::Lock),
        }
    }

    /// Takes the first one out, if there is one and the lock is free for it. It is to be woken.
    fn send_first(&self, waiters: &mut List<Seat>) -> Option<RawWake> {
        let state = self.state();
        if waiters.is_empty() || !state.needs_wake() {
            return None;
        }
        state.sent();
        self.take_first_out(waiters, Given::Wake)
    }

    /// Takes the first one out, with what it is given.
    fn take_first_out(&self, waiters: &mut List<Seat>, given: Given) -> Option<RawWake> {
        let (wake, ()) = waiters.pop_front_with(|seat| seat.given.set(given))?;
        if waiters.is_empty() {
            self.state().emptied();
        }
        Some(wake)
    }

    /// Passes the lock on to the longest waiter, in the manner that is asked for when it is known. By the owner. Who is to
    /// be woken then.
    pub(crate) fn release(&self, manner: impl FnOnce(&Seat) -> Manner) -> Option<RawWake> {
        let mut waiters = self.waiters.lock();
        let state = self.state();
        // One that has been woken since, by an unlock before this one that met it, is as good as the next.
        let is_due = |manner: &Manner| *manner == Manner::HandOver || !state.is_one_on_its_way();
        let due =
            waiters.front().map(|first| (first.number, manner(first))).filter(|(_, manner)| is_due(manner));
        let Some((number, manner)) = due else {
            state.release_to_nobody();
            return None;
        };
        let wake = self.take_first_out(&mut waiters, manner.gives());
        match manner {
            Manner::HandOver => state.hand_over(number),
            Manner::Wake => state.release_and_wake(),
        }
        wake
    }

    /// Puts up to `limit` of the longest waiters of a condition into the line, as long as they are `wanted`. How many they
    /// were, and who is to be woken.
    ///
    /// # Safety
    /// The caller holds the lock of `from`, whose waiters wait for this very lock.
    pub(crate) unsafe fn admit(
        &self,
        from: &mut List<Seat>,
        limit: usize,
        wanted: impl Fn(&Seat) -> bool,
    ) -> (usize, Option<RawWake>) {
        let mut waiters = self.waiters.lock();
        let mut count = 0;
        while count < limit
            && let Some(seat) = from.front()
            && wanted(seat)
        {
            seat.notified.set(true);
            // SAFETY: both locks are held, and `notified` tells the sleeper where its node is.
            unsafe { from.shift_to(&mut waiters) };
            count += 1;
        }
        if count == 0 {
            return (0, None);
        }
        self.state().announce();
        (count, self.send_first(&mut waiters))
    }
}

impl Manner {
    fn gives(self) -> Given {
        match self {
            Manner::Wake => Given::Wake,
            Manner::HandOver => Given::Lock,
        }
    }
}
