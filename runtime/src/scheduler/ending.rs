//! The end of a runtime, and the waiters for it.
//!
//! ```text
//!  RUNNING ──begin──▶ ENDING ──quiescent: end──▶ ENDED      each move is made once
//!                       each worker cancels        workers leave,
//!                       the tasks bound to it      waiters are woken
//! ```
//!
//! A runtime is quiescent when no task is alive by the task counts (`task_counts.rs`) after the end
//! has begun. Without live tasks only outside threads spawn. Those count their task and then check
//! whether the end has begun. The thread that ends the runtime marks the beginning first and then
//! sums.
//!
//! A waiter checks the phase under the lock of the list. The thread that makes the last move then
//! takes that lock to find the waiters.

use std::cell::Cell;
use std::ptr;

use slab::Slab;

use crate::base::primitive::{AtomicU8, Ordering};
use crate::base::spin_lock::Lock;
use crate::scheduler::task_counts::Counts;
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::{RawWake, WakeHandle};
use crate::waiter::strategy::{Asleep, Flag, Waking};

const RUNNING: u8 = 0;
const ENDING: u8 = 1;
const ENDED: u8 = 2;

/// Holds the phase of a runtime, and the waiters for the last one.
pub(crate) struct Ending {
    phase: AtomicU8,
    waiters: Lock<Slab<RawWake>>,
}

impl Ending {
    pub(crate) const fn new() -> Self {
        Ending { phase: AtomicU8::new(RUNNING), waiters: Lock::new(Slab::new()) }
    }

    /// Returns true once the end has begun.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        // SeqCst: the load of the pair in `admit`.
        self.phase.load(Ordering::SeqCst) != RUNNING
    }

    /// Returns true when nothing runs any more.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire: pairs with the move to ENDED; a waiter sees what the tasks did.
        self.phase.load(Ordering::Acquire) == ENDED
    }

    /// Counts a task that is spawned from outside in `outside`.
    ///
    /// Returns false if the end has begun: then the caller counts it out again.
    #[must_use]
    pub(crate) fn admit(&self, outside: &Counts) -> bool {
        // SeqCst, both: count first, then load the phase. The ending thread stores the phase first,
        // then sums. One sees the store of its counterpart.
        outside.spawn_outside();
        !self.has_begun()
    }

    /// Starts the end. Returns true for the first caller.
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        // SeqCst: the store of the pair: it comes before the sums.
        self.phase.compare_exchange(RUNNING, ENDING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends, once no task is alive. Returns true for the first caller, which wakes all waiters.
    #[must_use]
    pub(crate) fn end(&self) -> bool {
        // SeqCst: as for `has_ended`.
        self.phase.compare_exchange(ENDING, ENDED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the next waiter that the end wakes.
    pub(crate) fn next_waiter(&self) -> Option<RawWake> {
        let mut waiters = self.waiters.lock();
        let (key, _) = waiters.iter().next()?;
        Some(waiters.remove(key))
    }

    /// Returns the flag that is raised by the end, for one waiter.
    pub(crate) fn flag(&self) -> EndFlag<'_> {
        EndFlag { ending: self, key: Cell::new(None) }
    }
}

/// The flag that one waiter for the end sleeps on.
pub(crate) struct EndFlag<'a> {
    ending: &'a Ending,
    /// The key of the waiter, once it sleeps.
    key: Cell<Option<usize>>,
}

impl Flag for EndFlag<'_> {
    const SPINS: bool = false;
    const RECORD: &'static WaitRecord =
        &WaitRecord::new(&WaitDescription::new("end of runtime"), ptr::null());

    fn enter(&self, me: WakeHandle<'_>) -> Asleep {
        let mut waiters = self.ending.waiters.lock();
        if self.ending.has_ended() {
            return Asleep::Rouse;
        }
        // SAFETY: the wake is in this list until its sleeper takes it out, or the end does, both under the lock. `leave` says
        // which of them did.
        self.key.set(Some(waiters.insert(unsafe { me.raw() })));
        Asleep::Stay
    }

    fn leave(&self, _why: Waking) -> bool {
        // No other waiter has the key of one that the end has taken: none enters after the end.
        self.key.take().is_some_and(|key| self.ending.waiters.lock().try_remove(key).is_none())
    }
}
