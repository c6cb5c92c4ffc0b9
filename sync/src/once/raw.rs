//! The state of an initialization, and the waiters for the end of a run.
//!
//! ```text
//!                  begin                    end(Complete)
//!  INCOMPLETE ──────────────▶ RUNNING of ─────────────────▶ COMPLETE      for ever
//!      ▲                      its owner
//!      │   end(Incomplete)    │      ▲
//!      └──────────────────────┤      │ begin with force
//!                             └──▶ POISONED
//!                      end(Poisoned)
//!
//!  63                                     2 1     0
//! ┌────────────────────────────────────────┬───────┐
//! │ while RUNNING: the number of its owner │ phase │
//! └────────────────────────────────────────┴───────┘
//! ```
//!
//! * Only the owner ends its run: it stores the next phase, and then takes out waiters under the lock of the list. A caller
//!   looks at the word under that lock before it blocks. So it is either found in the list or sees the store.
//! * Each end of a run concerns the waiters in front. Behind them are those that wait for completion only. A failed run
//!   wakes the front up to the first waiter that runs next. The others wait on, for the end of that run.
//! * A failed run wakes no waiter once another run has begun. So no waiter enters the front part while a waker empties it:
//!   a caller waits there during a run, or before the first run to hear of a poisoning.

use std::num::NonZeroU64;

use crate::primitive::{AtomicU64, Ordering};
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

const INCOMPLETE: u64 = 0;
const POISONED: u64 = 1;
const RUNNING: u64 = 2;
const COMPLETE: u64 = 3;

const PHASE_MASK: u64 = 3;
const OWNER_SHIFT: u32 = 2;

/// The state of an initialization, and its waiters.
pub(crate) struct RawOnce {
    word: AtomicU64,
    waiters: Lock<List<Role>>,
}

/// The end of a run that a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Runs its own initializer if the present one fails.
    Successor,
    /// Returns at a failure.
    Listener,
    /// Waits for the completion only.
    Finisher,
}

/// The next step of a caller with an initializer.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begun {
    /// It runs its initializer, and then calls `end`.
    Run { poisoned: bool },
    /// An initializer has run to its end.
    Complete,
    /// An initializer failed, and this caller does not force it.
    Poisoned,
    /// Another initializer runs.
    Busy,
    /// The caller runs in its own initializer.
    Recursive,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Complete,
    Incomplete,
    Poisoned,
}

/// The word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Incomplete,
    Poisoned,
    Running { owner: u64 },
    Complete,
}

impl Phase {
    fn of(bits: u64) -> Self {
        match bits & PHASE_MASK {
            INCOMPLETE => Phase::Incomplete,
            POISONED => Phase::Poisoned,
            RUNNING => Phase::Running { owner: bits >> OWNER_SHIFT },
            _ => Phase::Complete,
        }
    }
}

impl RawOnce {
    pub(crate) const fn new() -> Self {
        RawOnce { word: AtomicU64::new(INCOMPLETE), waiters: Lock::new(List::new()) }
    }

    pub(crate) const fn completed() -> Self {
        RawOnce { word: AtomicU64::new(COMPLETE), waiters: Lock::new(List::new()) }
    }

    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Acquire: pairs with the Release in `end`: what the initializer wrote is seen.
        self.word.load(Ordering::Acquire) == COMPLETE
    }

    pub(crate) fn phase(&self) -> Phase {
        // Acquire: as in `is_complete`.
        Phase::of(self.word.load(Ordering::Acquire))
    }

    /// Begins a run of `me`, if it may run.
    pub(crate) fn begin(&self, me: NonZeroU64, force: bool) -> Begun {
        // Acquire, here and below: pairs with the Release in `end`: what an initializer wrote is seen, also a failed one.
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let poisoned = match Phase::of(seen) {
                Phase::Complete => return Begun::Complete,
                Phase::Running { owner } if owner == me.get() => return Begun::Recursive,
                Phase::Running { .. } => return Begun::Busy,
                Phase::Poisoned if !force => return Begun::Poisoned,
                Phase::Poisoned => true,
                Phase::Incomplete => false,
            };
            let running = me.get() << OWNER_SHIFT | RUNNING;
            match self.word.compare_exchange(seen, running, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Begun::Run { poisoned },
                Err(now) => seen = now,
            }
        }
    }

    /// Ends the run of the caller, which then wakes the waiters of [`next_after`](RawOnce::next_after).
    pub(crate) fn end(&self, how: End) {
        let phase = match how {
            End::Complete => COMPLETE,
            End::Incomplete => INCOMPLETE,
            End::Poisoned => POISONED,
        };
        // Release: pairs with the Acquire in `phase`, `is_complete` and `begin`.
        self.word.store(phase, Ordering::Release);
    }

    /// Takes out the next waiter for an ended run, under the lock of the list. `successor` is false at the first call.
    pub(crate) fn next_after(&self, waiters: &mut List<Role>, successor: &mut bool) -> Option<RawWake> {
        match self.phase() {
            Phase::Complete => waiters.pop_front(),
            // The end of that run wakes them.
            Phase::Running { .. } => None,
            Phase::Incomplete | Phase::Poisoned if *successor => None,
            Phase::Incomplete | Phase::Poisoned => waiters.pop_front_if(|role| {
                *successor = *role == Role::Successor;
                *role != Role::Finisher
            }),
        }
    }

    pub(crate) fn waiters(&self) -> &Lock<List<Role>> {
        &self.waiters
    }

    /// Enters the list, unless the wait is over already.
    ///
    /// # Safety
    /// `node` is in no list and stays in place until [`leave`](RawOnce::leave) has answered true or `wake` has landed.
    pub(crate) unsafe fn enter(&self, node: &Node<Role>, wake: RawWake) -> bool {
        let mut waiters = self.waiters.lock();
        let waits = match (self.phase(), *node.data()) {
            (Phase::Complete, _) | (Phase::Poisoned, Role::Listener) => false,
            (Phase::Incomplete | Phase::Poisoned, Role::Successor) => false,
            (Phase::Running { .. }, _) | (Phase::Incomplete, _) | (Phase::Poisoned, Role::Finisher) => true,
        };
        // SAFETY: the caller's contract; this list and its nodes are only touched under this lock.
        unsafe {
            match (waits, *node.data()) {
                (false, _) => {}
                (true, Role::Finisher) => waiters.push_back(node, wake),
                (true, Role::Successor | Role::Listener) => waiters.push_front(node, wake),
            }
        }
        waits
    }

    /// Leaves the list. False if a waker was first, whose wake is then on its way.
    ///
    /// # Safety
    /// `node` was entered here.
    pub(crate) unsafe fn leave(&self, node: &Node<Role>) -> bool {
        // SAFETY: by the caller's contract the node is in this list or in none.
        unsafe { self.waiters.lock().remove(node) }
    }
}
