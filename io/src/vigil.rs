//! Sources of which the system does not tell all: their reactor has the writers look again, four times a second.
//!
//! ```text
//!   a wait ── enters its source ──▶ Vigil ◀── each park: cut to the next round, and when that is due everybody is woken,
//!                                             and the list is empty again
//! ```
//!
//! Whoever goes on waiting enters again. So it costs one timeout for all of them, and nothing while there is nobody.

#![forbid(unsafe_code)]

use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use fibra_runtime::clock;

use crate::op::RECHECK;
use crate::primitive::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::source::Source;

#[cfg(all(test, not(loom)))]
#[path = "vigil/tests.rs"]
mod tests;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Vigil {
    /// A hint for each park: false while the list is empty.
    has_sources: AtomicBool,
    round: Mutex<Round>,
}

#[derive(Default)]
struct Round {
    sources: Vec<Arc<Source>>,
    /// Some while there are sources.
    due: Option<Instant>,
    /// The reactor is gone.
    is_closed: bool,
}

/// What came of entering a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the first of a round has to break a park that may be longer"]
pub(crate) enum Entered {
    /// It is the first of the round: the reactor has to look how long it may park.
    First,
    /// The reactor knows of the round.
    Later,
    /// There is no reactor any more.
    Closed,
}

impl Vigil {
    /// Takes a source in for the next round; where it may be in already, it is looked for.
    pub(crate) fn enter(&self, source: &Arc<Source>, may_be_in: bool) -> Entered {
        let mut round = self.lock();
        if round.is_closed {
            return Entered::Closed;
        }
        if may_be_in && round.sources.iter().any(|present| Arc::ptr_eq(present, source)) {
            return Entered::Later;
        }
        round.sources.push(Arc::clone(source));
        if round.due.is_some() {
            return Entered::Later;
        }
        round.due = Some(clock::now() + RECHECK);
        // Relaxed: who parks without seeing it is unparked after this, and looks again.
        self.has_sources.store(true, Ordering::Relaxed);
        Entered::First
    }

    /// How long a park may last that was to last for `timeout`.
    pub(crate) fn cut(&self, timeout: Option<Duration>) -> Option<Duration> {
        if timeout.is_some_and(|timeout| timeout.is_zero()) || !self.may_have_sources() {
            return timeout;
        }
        let left = self.lock().due.map(|due| due.saturating_duration_since(clock::now()));
        [timeout, left].into_iter().flatten().min()
    }

    /// Ends the round if it is due: who is to look again.
    pub(crate) fn take_due(&self) -> Vec<Arc<Source>> {
        if !self.may_have_sources() {
            return Vec::new();
        }
        let mut round = self.lock();
        match round.due.is_some_and(|due| due <= clock::now()) {
            true => self.end(&mut round),
            false => Vec::new(),
        }
    }

    /// Lets nobody in any more, and hands out who is here.
    pub(crate) fn close(&self) -> Vec<Arc<Source>> {
        let mut round = self.lock();
        round.is_closed = true;
        self.end(&mut round)
    }

    fn end(&self, round: &mut Round) -> Vec<Arc<Source>> {
        round.due = None;
        // Relaxed: see `enter`. Both stores are made under the lock, so that the last one is right.
        self.has_sources.store(false, Ordering::Relaxed);
        mem::take(&mut round.sources)
    }

    /// False if there is nobody to hand out.
    #[inline]
    pub(crate) fn may_have_sources(&self) -> bool {
        // Relaxed: see `enter`.
        self.has_sources.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
