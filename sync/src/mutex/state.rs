//! The word of a mutex: its owner, and what an unlock owes to the waiters.
//!
//! ```text
//!  63                                          2 1         0
//! ┌─────────────────────────────────────────────┬───────────┐
//! │ address of the owner's waiter; null is free │ the flags │
//! └─────────────────────────────────────────────┴───────────┘
//!  WAITERS   the wait queue is not empty          changes under the lock of the queue only
//!  WOKEN     a woken waiter is on its way         set under that lock, cleared with the arrival
//!
//!            take_free, take       release_uncontended, release_past_queue
//!   free ─────────────────────▶ owned ─────────────────────────────▶ free
//!     ▲                          │  ▲
//!     │ release_and_wake         │  │ hand_over: the longest waiter becomes the owner,
//!     └───────── sets WOKEN ─────┘  └─ the mutex is never free
//! ```
//!
//! | transition | by | under the lock of the queue |
//! | --- | --- | --- |
//! | `take_free`, `take` | any arrival that finds the mutex free | no |
//! | `release_uncontended` | the owner, if no flag is up | no |
//! | `release_past_queue` | the owner, if the queue is empty or a woken waiter is on its way | no |
//! | `release`, `release_and_wake`, `hand_over` | the owner | yes |
//! | `take_or_queue` | an arrival that is about to enter the queue | yes |
//! | `arrive_late` | a woken waiter that takes no more than one look | yes |
//! | `add_waiters` | a notification that moves the waiters of a condition | yes |
//! | `emptied` | a change of the queue that is no unlock and leaves it empty | yes |
//!
//! # No waiter is forgotten
//! Owner and flags change in one step. A waiter enters the queue only by setting WAITERS while an owner is there. So the
//! unlock of that owner sees the flag and looks into the queue, and no fence is needed.
//!
//! While the mutex is free and the queue is not empty, WOKEN is set, and a woken waiter is on its way. That waiter takes
//! the mutex or finds an owner. In both cases it clears WOKEN in the same step, so the owner's unlock wakes the next.
//!
//! WOKEN keeps an owner that locks again and again from waking the whole queue, one by one, for nothing. Most of its
//! unlocks pass the queue over. Some look whether the woken waiter is overdue, and wake the next one as well. Then two are
//! on their way and the first arrival clears the flag. That costs one more wake, and forgets no waiter.
//!
//! The address is only compared. The task or thread at that address may have ended with a leaked guard.

#![forbid(unsafe_code)]

use std::fmt;
use std::ptr::{self, NonNull};

use crate::primitive::{AtomicPtr, Ordering};

const WAITERS: usize = 1;
const WOKEN: usize = 1 << 1;
const FLAGS: usize = WAITERS | WOKEN;

/// For changes by which an owner takes the mutex: pairs with [`FREE`].
const TAKE: Ordering = Ordering::Acquire;

/// For changes by which an owner gives the mutex up: pairs with [`TAKE`].
///
/// Flags of a free mutex change by read-modify-writes only, so a later owner still reads what this has published.
const FREE: Ordering = Ordering::Release;

/// For changes of flags, and for looks that decide nothing by themselves: nothing is published by them.
///
/// What the flags stand for is in the queue, under its lock.
const HINT: Ordering = Ordering::Relaxed;

/// Identifies a task or thread by the address of its waiter.
pub(crate) type Owner = NonNull<()>;

/// The word of a mutex.
pub(crate) struct Word(AtomicPtr<()>);

/// The word at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot(*mut ());

/// How a caller comes to the mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Arrival {
    /// It has not waited, or its wait was not ended by a wake.
    New,
    /// An unlock has woken it, and WOKEN stands for it.
    Woken,
}

/// What came of an attempt to take the mutex.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    Taken,
    Owned(Owner),
}

/// What came of an attempt to unlock without a look into the queue.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    Free,
    /// The mutex is still owned: the queue decides what comes next.
    AskQueue,
}

/// Whether the queue holds waiters after a change of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    Empty,
    Waiting,
}

/// What a notification has to do for the waiters that it has moved into the queue.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// An owner and a woken waiter take care of them.
    Wait,
    /// The first one is to be woken, for which WOKEN is set.
    WakeFirst,
}

impl Queue {
    /// Whether there is a first waiter.
    pub(crate) fn of<T>(first: Option<T>) -> Self {
        if first.is_some() { Queue::Waiting } else { Queue::Empty }
    }
}

impl Snapshot {
    /// The owner, if there is one.
    pub(crate) fn owner(self) -> Option<Owner> {
        NonNull::new(self.0.map_addr(|address| address & !FLAGS))
    }

    pub(crate) fn has_waiters(self) -> bool {
        self.0.addr() & WAITERS != 0
    }

    /// Returns true if a woken waiter is on its way.
    pub(crate) fn has_woken(self) -> bool {
        self.0.addr() & WOKEN != 0
    }

    /// With another owner, whose address leaves room for the flags.
    fn with_owner(self, owner: *mut ()) -> Self {
        debug_assert!(owner.addr() & FLAGS == 0, "waiters are aligned");
        Snapshot(owner.wrapping_byte_add(self.0.addr() & FLAGS))
    }

    fn with(self, flags: usize) -> Self {
        Snapshot(self.0.map_addr(|address| address | flags))
    }

    fn without(self, flags: usize) -> Self {
        Snapshot(self.0.map_addr(|address| address & !flags))
    }

    /// With WAITERS as `queue` says.
    fn of_queue(self, queue: Queue) -> Self {
        match queue {
            Queue::Empty => self.without(WAITERS),
            Queue::Waiting => self.with(WAITERS),
        }
    }

    /// After the arrival of a caller.
    fn arrived(self, arrival: Arrival) -> Self {
        match arrival {
            Arrival::New => self,
            Arrival::Woken => self.without(WOKEN),
        }
    }
}

impl Word {
    pub(crate) const fn new() -> Self {
        Word(AtomicPtr::new(ptr::null_mut()))
    }

    /// Looks at the word.
    pub(crate) fn look(&self) -> Snapshot {
        Snapshot(self.0.load(HINT))
    }

    #[inline]
    fn exchange(&self, seen: Snapshot, next: Snapshot, order: Ordering) -> Result<(), Snapshot> {
        self.0.compare_exchange(seen.0, next.0, order, HINT).map(drop).map_err(Snapshot)
    }

    /// Changes flags, and says what they were.
    fn change(&self, change: impl Fn(Snapshot) -> Snapshot) -> Snapshot {
        let mut seen = self.look();
        while let Err(now) = self.exchange(seen, change(seen), HINT) {
            seen = now;
        }
        seen
    }

    /// Takes the mutex if it is free and has no waiters, in one try. One locked instruction.
    #[inline]
    pub(crate) fn take_free(&self, me: Owner) -> bool {
        let free = Snapshot(ptr::null_mut());
        self.exchange(free, free.with_owner(me.as_ptr()), TAKE).is_ok()
    }

    /// Takes the mutex if it is free.
    pub(crate) fn take(&self, me: Owner, arrival: Arrival) -> Attempt {
        let mut seen = self.look();
        loop {
            if let Some(owner) = seen.owner() {
                return Attempt::Owned(owner);
            }
            match self.exchange(seen, seen.with_owner(me.as_ptr()).arrived(arrival), TAKE) {
                Ok(()) => return Attempt::Taken,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the mutex if it is free. Else notes an arrival that enters the queue next, under its lock.
    pub(crate) fn take_or_queue(&self, me: Owner, arrival: Arrival) -> Attempt {
        self.take_or(me, arrival, |seen| seen.with(WAITERS))
    }

    /// Takes the mutex if it is free. Else notes that a woken waiter has come and does not wait any longer.
    pub(crate) fn arrive_late(&self, me: Owner) -> Attempt {
        self.take_or(me, Arrival::Woken, |seen| seen)
    }

    fn take_or(&self, me: Owner, arrival: Arrival, queue: impl Fn(Snapshot) -> Snapshot) -> Attempt {
        let mut seen = self.look();
        loop {
            let (next, attempt) = match seen.owner() {
                None => (seen.with_owner(me.as_ptr()), Attempt::Taken),
                Some(owner) => (queue(seen), Attempt::Owned(owner)),
            };
            let next = next.arrived(arrival);
            // Flags that are up already need no step: an owner with waiters unlocks under the lock of the queue.
            if next == seen {
                return attempt;
            }
            match self.exchange(seen, next, TAKE) {
                Ok(()) => return attempt,
                Err(now) => seen = now,
            }
        }
    }

    /// Frees the mutex if no flag is up, in one try. By the owner. One locked instruction.
    #[inline]
    pub(crate) fn release_uncontended(&self) -> bool {
        let seen = self.look();
        seen.without(FLAGS) == seen && self.exchange(seen, Snapshot(ptr::null_mut()), FREE).is_ok()
    }

    /// Frees the mutex without a look into the queue. By the owner. One locked instruction.
    ///
    /// That is so if the queue is empty. It is also so if a woken waiter is on its way and `passes_over` returns true.
    pub(crate) fn release_past_queue(&self, passes_over: impl Fn() -> bool) -> Release {
        let mut seen = self.look();
        loop {
            if seen.has_waiters() && !(seen.has_woken() && passes_over()) {
                return Release::AskQueue;
            }
            match self.exchange(seen, seen.with_owner(ptr::null_mut()), FREE) {
                Ok(()) => return Release::Free,
                Err(now) => seen = now,
            }
        }
    }

    /// Frees the mutex and wakes no waiter. By the owner, under the lock of the queue.
    pub(crate) fn release(&self, queue: Queue) {
        self.0.store(self.look().with_owner(ptr::null_mut()).of_queue(queue).0, FREE);
    }

    /// Frees the mutex for the waiter that was just taken out of the queue, and for all others.
    ///
    /// By the owner, under the lock of the queue.
    pub(crate) fn release_and_wake(&self, queue: Queue) {
        self.0.store(Snapshot(ptr::null_mut()).with(WOKEN).of_queue(queue).0, FREE);
    }

    /// Makes the waiter that was just taken out of the queue the owner.
    ///
    /// By the owner, under the lock of the queue. The new owner sees the rest by its wake.
    pub(crate) fn hand_over(&self, to: Owner, queue: Queue) {
        self.0.store(self.look().with_owner(to.as_ptr()).of_queue(queue).0, FREE);
    }

    /// Notes waiters that a notification puts into the queue, under its lock.
    ///
    /// The caller wakes the first one, unless the mutex is owned and a woken waiter is on its way.
    pub(crate) fn add_waiters(&self) -> Moved {
        let before = self.change(|seen| seen.with(FLAGS));
        match before.owner().is_some() && before.has_woken() {
            true => Moved::Wait,
            false => Moved::WakeFirst,
        }
    }

    /// Notes that the queue has become empty without an unlock, under its lock.
    pub(crate) fn emptied(&self) {
        self.change(|seen| seen.without(WAITERS));
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("owner", &self.owner())
            .field("waiters", &self.has_waiters())
            .field("woken", &self.has_woken())
            .finish()
    }
}
