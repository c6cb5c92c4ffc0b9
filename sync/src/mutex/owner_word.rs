//! The owner word: whose lock it is, and what an unlock owes to those who wait.
//!
//! ```text
//!  63                                    2 1     0
//! ┌───────────────────────────────────────┬───────┐
//! │ number of the owner, 0: free          │ flags │
//! └───────────────────────────────────────┴───────┘
//!  WAITERS  the line is not empty                             changed under the line's lock
//!  WOKEN    a waiter was woken and is on its way to the lock  set under the line's lock, cleared by that waiter
//!
//!            take_free, take                      release_alone: flags stay
//!   free ─────────────────────▶ owned ───────────────────────────────────────────────▶ free
//!     ▲                          │  ▲
//!     │ release_and_wake:        │  │ hand_over: the number of the longest waiter takes the owner's place,
//!     └── sets WOKEN ────────────┘  └── the lock is never free
//! ```
//!
//! | move | by | under the line's lock |
//! | --- | --- | --- |
//! | `take_free`, `take` | anybody who finds it free | no |
//! | `take_or_wait` | who is about to wait | yes |
//! | `release_alone` | the owner, if nobody waits or somebody is on its way already | no |
//! | `release_and_wake`, `hand_over` | the owner | yes |
//! | `admit` | who puts others into the line | yes |
//! | `emptied` | who took the last one out of the line | yes |
//!
//! What keeps a waiter from being forgotten: while the lock is free and the line is not empty, WOKEN is set, and while
//! WOKEN is set the waiter that it stands for will look at this word again. It then takes the lock, or finds an owner; in
//! both cases it clears the bit, so that the owner's unlock sees WAITERS alone and wakes the next. Therefore a woken waiter
//! whose time runs out owes nobody anything: it leaves the lock to an owner who knows of the line.
//!
//! With the line's lock held the owner uses plain stores: without that lock others only change a word that has no owner.
//!
//! The owner is a number and not an address: the number of a task or thread is never given to another, so who finds its own
//! number here does hold the lock, also when the guard of one long ended was forgotten and its memory is another task's.
//!
//! Rejected: a wake per unlock, as without WOKEN (an owner that locks again and again wakes the whole line, one by one, into
//! a lock that they cannot have), and a swap for the unlock (it frees the lock before the flags are known).

use std::fmt;

use crate::primitive::{AtomicU64, Ordering};

const WAITERS: u64 = 1;
const WOKEN: u64 = 1 << 1;
const FLAGS_MASK: u64 = WAITERS | WOKEN;
const ONE_OWNER: u64 = 1 << 2;

/// The owner word of one lock.
pub(crate) struct OwnerWord(AtomicU64);

/// The word of a lock that `number` owns.
const fn owned(number: u64, flags: u64) -> u64 {
    (number * ONE_OWNER) | flags
}

/// The flags that tell whether there are waiters.
const fn waiters(some: bool) -> u64 {
    if some { WAITERS } else { 0 }
}

/// Who comes to the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comer {
    /// One who has not waited.
    New,
    /// The one that WOKEN stands for.
    Woken,
}

/// What came of an attempt to take the lock.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    Taken,
    /// By the task or the thread of this number.
    Owned(u64),
}

/// What is to be done after waiters were put into the line.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admitted {
    /// The owner's unlock, or who is on its way to the lock, sees to them.
    Queued,
    /// The lock is free: the first of the line is to be woken.
    Wake,
}

impl OwnerWord {
    pub(crate) const fn new() -> Self {
        OwnerWord(AtomicU64::new(0))
    }

    /// Takes the lock if it is free and nobody waits. One locked instruction.
    #[inline]
    pub(crate) fn take_free(&self, me: u64) -> bool {
        // Acquire: pairs with the Release of `release_alone`, `release_and_wake` and `hand_over`.
        self.0.compare_exchange(0, owned(me, 0), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock if it is free.
    pub(crate) fn take(&self, me: u64, comer: Comer) -> Attempt {
        self.change(|seen| match seen / ONE_OWNER {
            0 => Ok(owned(me, comer.leaves(seen))),
            owner => Err(owner),
        })
    }

    /// Takes the lock if it is free, else notes that there are waiters and that `comer` is no more on its way. Under the
    /// line's lock, by one who goes into the line if it is owned.
    pub(crate) fn take_or_wait(&self, me: u64, comer: Comer) -> Attempt {
        let mut owner = 0;
        let _ = self.change(|seen| {
            owner = seen / ONE_OWNER;
            match owner {
                0 => Ok(owned(me, comer.leaves(seen))),
                _ => Ok(owned(owner, comer.leaves(seen) | WAITERS)),
            }
        });
        if owner == 0 { Attempt::Taken } else { Attempt::Owned(owner) }
    }

    fn change(&self, mut to: impl FnMut(u64) -> Result<u64, u64>) -> Attempt {
        // Relaxed: only a guess; the exchange decides.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let next = match to(seen) {
                Ok(next) => next,
                Err(owner) => return Attempt::Owned(owner),
            };
            // As in `take_free`.
            match self.0.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Attempt::Taken,
                Err(now) => seen = now,
            }
        }
    }

    /// Frees the lock if there is nobody to wake. By the owner. False if it is still held, and the line is to be asked.
    #[inline]
    pub(crate) fn release_alone(&self) -> bool {
        // Relaxed: the owner wrote it, or was handed it by a wake; the flags are only a guess.
        let seen = self.0.load(Ordering::Relaxed);
        seen & FLAGS_MASK == 0 && self.release_from(seen).is_ok() || self.release_flagged()
    }

    #[cold]
    fn release_flagged(&self) -> bool {
        // Relaxed: as above.
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & FLAGS_MASK != WAITERS {
            match self.release_from(seen) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn release_from(&self, seen: u64) -> Result<u64, u64> {
        // Release: pairs with the Acquire of who takes the lock.
        self.0.compare_exchange(seen, seen & FLAGS_MASK, Ordering::Release, Ordering::Relaxed)
    }

    /// True if somebody waits. Momentary.
    pub(crate) fn has_waiters(&self) -> bool {
        // Relaxed: only a hint, nothing is read through it.
        self.0.load(Ordering::Relaxed) & WAITERS != 0
    }

    /// Frees the lock for the waiter that was just taken out of the line and is going to be woken, and for all others. By
    /// the owner, under the line's lock.
    pub(crate) fn release_and_wake(&self, more: bool) {
        // Release: as in `release_alone`. A plain store: see above.
        self.0.store(WOKEN | waiters(more), Ordering::Release);
    }

    /// Frees the lock, the line being empty. By the owner, under the line's lock.
    pub(crate) fn release_to_nobody(&self) {
        // Relaxed: flags only change under the line's lock while the lock is owned. Release: as in `release_alone`.
        self.0.store(self.0.load(Ordering::Relaxed) & WOKEN, Ordering::Release);
    }

    /// Makes the waiter that was just taken out of the line the owner. By the owner, under the line's lock.
    pub(crate) fn hand_over(&self, to: u64, more: bool) {
        // As in `release_to_nobody`; the new owner sees the rest by its wake, those after it by the Release.
        let woken = self.0.load(Ordering::Relaxed) & WOKEN;
        self.0.store(owned(to, woken | waiters(more)), Ordering::Release);
    }

    /// Notes that waiters were put into the line. Under its lock.
    pub(crate) fn admit(&self) -> Admitted {
        let mut wake = false;
        let _ = self.change(|seen| {
            wake = seen / ONE_OWNER == 0 && seen & WOKEN == 0;
            Ok(seen | WAITERS | if wake { WOKEN } else { 0 })
        });
        if wake { Admitted::Wake } else { Admitted::Queued }
    }

    /// Notes that the line is empty, which it was not. Under its lock.
    pub(crate) fn emptied(&self) {
        // Relaxed: nothing is published. The bit is set, since the line had somebody.
        let before = self.0.fetch_sub(WAITERS, Ordering::Relaxed);
        debug_assert!(before & WAITERS != 0, "an empty line is emptied");
    }

    /// The number of the owner, 0 if there is none. Momentary.
    pub(crate) fn owner(&self) -> u64 {
        // Relaxed: nothing is read through it.
        self.0.load(Ordering::Relaxed) / ONE_OWNER
    }
}

impl Comer {
    /// The flags that are left when this one has come.
    fn leaves(self, seen: u64) -> u64 {
        match self {
            Comer::New => seen & FLAGS_MASK,
            Comer::Woken => seen & WAITERS,
        }
    }
}

impl fmt::Debug for OwnerWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a picture for people, nothing is read through it.
        let seen = self.0.load(Ordering::Relaxed);
        f.debug_struct("OwnerWord")
            .field("owner", &(seen / ONE_OWNER))
            .field("waiters", &(seen & WAITERS != 0))
            .field("woken", &(seen & WOKEN != 0))
            .finish()
    }
}
