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
//! * Only the owner ends its run: it stores the next phase and serves all waiters, under the lock of the queue. A caller
//!   looks at the word under that lock before it blocks. So it is either served or sees the store.
//! * A failed run wakes all waiters that can act on it; they wait in front. The first of them to
//!   run is the next owner, so none depends on a worker that computes. The rest waits again.

#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::num::NonZeroU64;

use crate::primitive::{AtomicU64, Ordering};
use crate::wait::{Admit, Outcome, Until, WaitDescription, WaitQueue, Waiters};

const INCOMPLETE: u64 = 0;
const POISONED: u64 = 1;
const RUNNING: u64 = 2;
const COMPLETE: u64 = 3;

const PHASE_MASK: u64 = 3;
const OWNER_SHIFT: u32 = 2;

/// The state of an initialization, and its waiters.
pub(super) struct RawOnce {
    word: AtomicU64,
    waiters: WaitQueue<(), Ends>,
}

static ONCE: WaitDescription = WaitDescription::new("once")
    .owner_number(offset_of!(RawOnce, word) as isize - offset_of!(RawOnce, waiters) as isize, OWNER_SHIFT);

/// The ends of a run that a waiter hears of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ends {
    All,
    Completion,
}

/// How a run ended: the phase after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum End {
    Complete = COMPLETE,
    Incomplete = INCOMPLETE,
    Poisoned = POISONED,
}

/// The word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
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
    pub(super) const fn new() -> Self {
        RawOnce { word: AtomicU64::new(INCOMPLETE), waiters: WaitQueue::new(()) }
    }

    pub(super) const fn completed() -> Self {
        RawOnce { word: AtomicU64::new(COMPLETE), waiters: WaitQueue::new(()) }
    }

    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        // Acquire: pairs with the Release in `end`: what the initializer wrote is seen.
        self.word.load(Ordering::Acquire) == COMPLETE
    }

    pub(super) fn phase(&self) -> Phase {
        // Acquire: as in `is_complete`.
        Phase::of(self.word.load(Ordering::Acquire))
    }

    /// Begins a run of `me`, after a poisoned one only with `force`. Returns the phase before, or none if no run can begin.
    pub(super) fn begin(&self, me: NonZeroU64, force: bool) -> Option<Phase> {
        // Acquire, here and below: pairs with the Release in `end`: what an initializer wrote is seen, also a failed one.
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let before = Phase::of(seen);
            if !(before == Phase::Incomplete || before == Phase::Poisoned && force) {
                return None;
            }
            let running = me.get() << OWNER_SHIFT | RUNNING;
            match self.word.compare_exchange(seen, running, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(before),
                Err(now) => seen = now,
            }
        }
    }

    /// Ends the run of the caller, and wakes those that wait for such an end.
    pub(super) fn end(&self, how: End) {
        self.waiters.with(|(), waiters| {
            // Release: pairs with the Acquire in `phase`, `is_complete` and `begin`.
            self.word.store(how as u64, Ordering::Release);
            waiters.serve_while(0, |ends| how == End::Complete || *ends == Ends::All);
        });
    }

    /// Waits for the end of a run, unless the phase `is_over`.
    #[track_caller]
    pub(super) fn wait(&self, ends: Ends, until: Until, is_over: impl Fn(Phase) -> bool) -> Outcome<()> {
        self.waiters
            .wait(
                0,
                ends,
                until.described(&ONCE),
                |(), ends, _| self.admit(*ends, &is_over),
                || (),
                |(), _, _, _| (),
            )
            .0
    }

    /// Waits for a completion, as a future.
    pub(super) async fn wait_complete_async(&self) {
        let is_over = |phase| phase == Phase::Complete;
        let admit = |(): &mut (), ends: &mut Ends, _: &mut Waiters<'_, Ends, 1>| self.admit(*ends, is_over);
        self.waiters.wait_async(0, Ends::Completion, admit, |(), _, _, _| ()).await;
    }

    fn admit(&self, ends: Ends, is_over: impl Fn(Phase) -> bool) -> Admit<()> {
        match (is_over(self.phase()), ends) {
            (true, _) => Admit::Done(()),
            (false, Ends::All) => Admit::Front,
            (false, Ends::Completion) => Admit::Back,
        }
    }
}
