//! The pools whose takes have failed, and who of them is to have the next stack.
//!
//! ```text
//!           take fails             others give             take fails
//!   sated ─────────────▶ hungry ────────────────▶ told ────────────────▶ hungry again
//!     ▲                    │                        │                         │
//!     └────────────────────┴──── take succeeds, ────┴─────────────────────────┘
//!                                or its own give
//! ```
//!
//! Who gives looks for the first that is hungry. It keeps what it gives if that is itself. Otherwise all it has goes to the exchange,
//! and the hungry one is told, which tries again. Of one that is hungry for the first time the giver may be faster with its own next
//! take, so that a stack does not travel for each task; to one that is so *again* it leaves a chance: it fails once itself, unless
//! that one has taken what it was told of. So no worker starves beside one that always has something to start.
//!
//! `hungry` says whether there is somebody, for those who do not take the lock. A worker that found nothing tries again by
//! itself, so the word of it may come late.

use std::sync::PoisonError;

use crate::base::primitive::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

#[derive(Default)]
pub(super) struct Line {
    /// Written under the lock.
    hungry: AtomicBool,
    /// How often a stack came back that somebody waited for.
    served: AtomicU64,
    /// The one that has waited longest is the first.
    waiting: Mutex<Vec<Waiting>>,
    /// The number of the last pool.
    pools: AtomicU64,
}

/// The number of a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Who(u64);

struct Waiting {
    who: Who,
    told: bool,
    again: bool,
}

/// Who is to have what a pool has or was given.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Nobody,
    /// The pool itself.
    Own,
    /// Another one. `again`: it is to have a chance before this one.
    Other {
        who: Who,
        again: bool,
    },
}

impl Line {
    /// A number for one more pool.
    pub(super) fn number(&self) -> Who {
        // Relaxed: the number is all there is to it.
        Who(self.pools.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn is_hungry(&self) -> bool {
        // Relaxed: a hint that may come late; the stacks pass through the exchange's mutex. A plain load on every give.
        self.hungry.load(Ordering::Relaxed)
    }

    /// How often a stack came back that somebody waited for, so far.
    pub(super) fn served(&self) -> u64 {
        // Relaxed: somebody who waits looks now and then whether it has changed.
        self.served.load(Ordering::Relaxed)
    }

    /// A take has failed.
    pub(super) fn join(&self, who: Who) {
        let mut waiting = self.lock();
        match waiting.iter_mut().find(|waits| waits.who == who) {
            Some(waits) => (waits.told, waits.again) = (false, true),
            None => waiting.push(Waiting { who, told: false, again: false }),
        }
        self.note(&waiting);
    }

    /// A take has succeeded, or the pool is no more.
    pub(super) fn leave(&self, who: Who) {
        let mut waiting = self.lock();
        waiting.retain(|waits| waits.who != who);
        self.note(&waiting);
    }

    /// Who is to have a stack that `own` was given.
    pub(super) fn after_give(&self, own: Who) -> Next {
        match self.lock().iter().find(|waits| !waits.told) {
            None => Next::Nobody,
            Some(waits) if waits.who == own => Next::Own,
            Some(waits) => Next::Other { who: waits.who, again: waits.again },
        }
    }

    /// Who else is to have what lies unused in `own`.
    pub(super) fn beside(&self, own: Who) -> Option<Who> {
        self.lock().iter().find(|waits| !waits.told && waits.who != own).map(|waits| waits.who)
    }

    /// A stack for this one lies in the exchange now.
    pub(super) fn tell(&self, who: Who) {
        let mut waiting = self.lock();
        if let Some(waits) = waiting.iter_mut().find(|waits| waits.who == who) {
            waits.told = true;
        }
        self.note(&waiting);
        self.serve();
    }

    /// This one has kept what it was given.
    pub(super) fn serve_own(&self, own: Who) {
        self.leave(own);
        self.serve();
    }

    /// True if this one was told and has not tried since.
    pub(super) fn is_told(&self, who: Who) -> bool {
        self.lock().iter().any(|waits| waits.who == who && waits.told)
    }

    fn serve(&self) {
        // Relaxed: as in `served`.
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, waiting: &[Waiting]) {
        // Relaxed: as in `is_hungry`.
        self.hungry.store(waiting.iter().any(|waits| !waits.told), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        // Nothing panics halfway through a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
