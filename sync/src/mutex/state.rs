//! The state of a lock: whose it is, and what an unlock owes to those who wait.
//!
//! ```text
//!  the owner            number of a task or a thread, 0: free
//!
//!  signs: the phase     LOUD ──── `announce` ────▶ WAITERS   the line is not empty        changed under the line's lock
//!                        │ ◀───── `emptied` ───────  ▲
//!                        │ LONG unlocks, nobody came │ `announce`
//!                        └──────────▶ CALM ──────────┘
//!         woken         a waiter was woken and is on its way to the lock   set under the line's lock, cleared by that waiter
//!         alone         unlocks since somebody came                        the owner counts, who comes begins anew
//!
//!            take_free, take                      release_alone
//!   free ─────────────────────▶ owned ───────────────────────────────────────────────▶ free
//!     ▲                          │  ▲
//!     │ release_and_wake:        │  │ hand_over: the number of the longest waiter takes the owner's place,
//!     └── sets woken ────────────┘  └── the lock is never free
//! ```
//!
//! | move | by | under the line's lock |
//! | --- | --- | --- |
//! | `take_free`, `take` | anybody who finds it free | no |
//! | `release_alone` | the owner, if it sees nobody, or somebody is on its way already | no |
//! | `release_and_wake`, `release_to_nobody`, `hand_over` | the owner | yes |
//! | `announce` | who puts itself or others into the line, before it looks for the owner | yes |
//! | `sent` | who found the lock free and nobody on the way to it, and has taken a waiter out of the line | yes |
//! | `arrived` | that waiter, as the owner or on its way back into the line | one of the two locks |
//! | `emptied` | who took the last one out of the line | yes |
//!
//! # No waiter is forgotten
//! Who goes into the line says so, and then looks for the owner; who unlocks frees the lock, and then looks whether somebody
//! said so. Each has a fence between the two, so one of them sees the other:
//!
//! ```text
//!  unlock, LOUD         unlock, CALM          announce, from LOUD       announce, from CALM
//!  owner := 0, SeqCst   owner := 0            phase := WAITERS, SeqCst  phase := WAITERS
//!                       light fence                                     heavy fence
//!  phase?               phase?                owner?                    owner?
//! ```
//!
//! A lock is CALM once nobody has waited for long. Its unlock is then a plain store: the fence of it, and nearly half of the
//! time of a lock that nobody else wants, is left to the first waiter who comes, in a system call of some microseconds. That is
//! why a lock begins LOUD, and is so again after each waiter: there is one such call at the most for LONG unlocks, less than a
//! nanosecond for each. Where the system has no such call, it stays LOUD.
//!
//! An unlock that is CALM may have begun before a waiter ended that phase, and end long after. It finds the phase changed, by the
//! heavy fence that came in between, and looks into the line, under its lock; also when it was another waiter, meanwhile, that
//! has found the owner still there.
//!
//! While the lock is free and the line is not empty, either an unlock has yet to look, or `woken` is set; and while that is set
//! the waiter that it stands for will look for the owner again. It then takes the lock, or finds an owner; in both cases it
//! clears the sign, so that the owner's unlock sees WAITERS alone and wakes the next. Therefore a woken waiter whose time runs
//! out owes nobody anything: it leaves the lock to an owner who knows of the line.
//!
//! No change of a sign depends on what it was a moment before: those under the line's lock have one writer at a time, `woken` is only
//! set while it is clear, and cleared by the one it stands for.
//!
//! The owner is a number and not an address: the number of a task or thread is never given to another, so who finds its own
//! number here does hold the lock, also when the guard of one long ended was forgotten and its memory is another task's.
//!
//! Rejected: owner and signs in one word (its unlock is a locked instruction, lest it wipe out a sign); a wake per unlock, as
//! without `woken` (an owner that locks again and again wakes the whole line, one by one, into a lock that they cannot have).

use std::fmt;

use crate::primitive::{
    AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering, bare_light_fence, has_bare_light_fence,
    heavy_fence, prepare_fences,
};

/// Nobody waits; somebody did lately, or the lock is new.
const LOUD: u8 = 0;
/// The line is not empty.
const WAITERS: u8 = 1;
/// Nobody has waited for long.
const CALM: u8 = 2;

/// So many unlocks since somebody came make a lock calm. It saves some 2 to 4 ns for each from then on, the fence costs up to 15 µs.
const LONG: u16 = if cfg!(loom) { 2 } else { 1 << 14 };

/// What an unlock has to know of those who wait. Kept beside the lock of the line.
pub(crate) struct Signs {
    phase: AtomicU8,
    woken: AtomicBool,
    alone: AtomicU16,
}

/// The owner of a lock, and its signs.
#[derive(Clone, Copy)]
pub(crate) struct State<'a> {
    pub(crate) owner: &'a AtomicU64,
    pub(crate) signs: &'a Signs,
}

/// Who comes to the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comer {
    /// One who has not waited.
    New,
    /// The one that `woken` stands for.
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

/// What came of an attempt to unlock without a look into the line.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unlocked {
    /// It is free, and nobody is to be woken.
    Alone,
    /// It is free, and somebody has come meanwhile: the line is to be asked who needs a wake.
    Met,
    /// It is still owned: the line is to be asked to whom it goes.
    Not,
}

impl Signs {
    pub(crate) const fn new() -> Self {
        Signs { phase: AtomicU8::new(LOUD), woken: AtomicBool::new(false), alone: AtomicU16::new(0) }
    }
}

impl State<'_> {
    /// Takes the lock if it is free. One locked instruction.
    #[inline]
    pub(crate) fn take_free(self, me: u64) -> bool {
        self.exchange(me).is_ok()
    }

    #[inline]
    fn exchange(self, me: u64) -> Result<u64, u64> {
        // Acquire: pairs with the Release of all who free the lock or hand it over.
        self.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
    }

    /// The same; `comer` is no more on its way then.
    pub(crate) fn take(self, me: u64, comer: Comer) -> Attempt {
        // SeqCst: after `announce` this is the load of the pair.
        let seen = self.owner.load(Ordering::SeqCst);
        if seen != 0 {
            return Attempt::Owned(seen);
        }
        match self.exchange(me) {
            Ok(_) => {
                self.arrived(comer);
                Attempt::Taken
            }
            Err(owner) => Attempt::Owned(owner),
        }
    }

    /// `comer` has come: it has the lock, or the lock of the line, into which it is about to go.
    pub(crate) fn arrived(self, comer: Comer) {
        if comer == Comer::Woken {
            // Relaxed: who reads it has had one of the two locks after, or sees it by what `announce` stores next.
            self.signs.woken.store(false, Ordering::Relaxed);
        }
    }

    /// Says that there are waiters. Under the line's lock, before a look for the owner.
    pub(crate) fn announce(self) {
        // Relaxed: an owner that counts at this moment may undo it, which costs a fence more than necessary.
        self.signs.alone.store(0, Ordering::Relaxed);
        // SeqCst: the store of the pair, whose other side is in `release_loud`.
        if self.signs.phase.swap(WAITERS, Ordering::SeqCst) == CALM {
            // The other side is in `release_alone`.
            heavy_fence();
        }
    }

    /// True if the lock is free and nobody is on the way to it. Under the line's lock.
    pub(crate) fn needs_wake(self) -> bool {
        // SeqCst: after `announce` this is the load of the pair. Relaxed: who cleared the sign and unlocked is seen by that load.
        self.owner.load(Ordering::SeqCst) == 0 && !self.is_one_on_its_way()
    }

    /// True if a waiter was woken and has not come yet. Under the line's lock, or by the owner; else a guess.
    pub(crate) fn is_one_on_its_way(self) -> bool {
        // Relaxed: as in `needs_wake`.
        self.signs.woken.load(Ordering::Relaxed)
    }

    /// Notes that the waiter that was just taken out of the line is going to be woken. Under the line's lock.
    pub(crate) fn sent(self) {
        debug_assert!(!self.is_one_on_its_way(), "two waiters are on their way to one lock");
        // Relaxed: as in `arrived`; the waiter itself sees it by its wake.
        self.signs.woken.store(true, Ordering::Relaxed);
    }

    /// Notes that the line is empty, which it was not. Under its lock.
    pub(crate) fn emptied(self) {
        // Relaxed: who misses it looks into the line.
        self.signs.phase.store(LOUD, Ordering::Relaxed);
    }

    /// Frees the lock if there is nobody to wake. By the owner.
    #[inline]
    pub(crate) fn release_alone(self) -> Unlocked {
        // Relaxed: of a change that is not seen here the load below tells.
        if self.signs.phase.load(Ordering::Relaxed) != CALM {
            return self.release_loud();
        }
        // Release: pairs with the Acquire of who takes the lock.
        self.owner.store(0, Ordering::Release);
        bare_light_fence();
        // Relaxed: what is in the line is read under its lock.
        match self.signs.phase.load(Ordering::Relaxed) {
            CALM => Unlocked::Alone,
            _ => Unlocked::Met,
        }
    }

    #[inline(never)]
    fn release_loud(self) -> Unlocked {
        let signs = self.signs;
        if !self.is_one_on_its_way() {
            // Relaxed: a count for the choice of a phase, by which nobody is found or missed.
            let alone = signs.alone.load(Ordering::Relaxed).saturating_add(1);
            signs.alone.store(alone, Ordering::Relaxed);
            if self.has_waiters() || alone >= LONG && has_bare_light_fence() {
                return Unlocked::Not;
            }
            if alone >= LONG {
                return self.release_and_prepare();
            }
        }
        self.release_by_a_fence()
    }

    /// Makes the fences ready, which may take the system ten milliseconds, once the lock is free and nobody waits for a wake.
    #[cold]
    fn release_and_prepare(self) -> Unlocked {
        self.signs.alone.store(0, Ordering::Relaxed);
        let unlocked = self.release_by_a_fence();
        if unlocked == Unlocked::Alone {
            prepare_fences();
        }
        unlocked
    }

    fn release_by_a_fence(self) -> Unlocked {
        // SeqCst: the store of the pair; and a Release as in `release_alone`.
        self.owner.swap(0, Ordering::SeqCst);
        // SeqCst: the load of the pair, that tells also of the sign that was cleared before.
        match self.signs.phase.load(Ordering::SeqCst) == WAITERS && !self.is_one_on_its_way() {
            true => Unlocked::Met,
            false => Unlocked::Alone,
        }
    }

    /// Frees the lock for the waiter that was just taken out of the line and is going to be woken, and for all others. By
    /// the owner, under the line's lock.
    pub(crate) fn release_and_wake(self) {
        self.sent();
        // Release: as in `release_alone`. Who comes into the line does so under its lock: nobody has to be looked for.
        self.owner.store(0, Ordering::Release);
    }

    /// Frees the lock where nobody has to be woken. By the owner, under the line's lock.
    pub(crate) fn release_to_nobody(self) {
        let signs = self.signs;
        // Relaxed: as in `release_loud`. The phase only changes under the line's lock.
        if signs.alone.load(Ordering::Relaxed) >= LONG && has_bare_light_fence() && !self.has_waiters() {
            signs.alone.store(0, Ordering::Relaxed);
            signs.phase.store(CALM, Ordering::Relaxed);
        }
        // As in `release_and_wake`.
        self.owner.store(0, Ordering::Release);
    }

    /// Makes the waiter that was just taken out of the line the owner. By the owner, under the line's lock.
    pub(crate) fn hand_over(self, to: u64) {
        // Release: as in `release_alone`; the new owner sees the rest by its wake.
        self.owner.store(to, Ordering::Release);
    }

    /// True if somebody waits. Momentary.
    pub(crate) fn has_waiters(self) -> bool {
        // Relaxed: only a hint, nothing is read through it.
        self.signs.phase.load(Ordering::Relaxed) == WAITERS
    }

    /// The number of the owner, 0 if there is none. Momentary.
    pub(crate) fn owner(self) -> u64 {
        // Relaxed: nothing is read through it.
        self.owner.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("owner", &self.owner())
            .field("waiters", &self.has_waiters())
            .field("woken", &self.is_one_on_its_way())
            .finish()
    }
}
