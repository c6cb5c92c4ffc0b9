//! Waiting for what is no descriptor: a [`Source`] that no reactor knows, and that is rung by hand.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use fibra_runtime::wait::{self, Waking};

use crate::place::{Hearing, Home};
use crate::readiness::{Clearing, Direction};
use crate::source::{self, Source, Waiter};

/// See the [module](self). The two directions are two lists of waiters; what each waits for is its user's to say.
pub(crate) struct Bell(Arc<Source>);

impl Bell {
    /// Asks `look` until it finds something, and sleeps in between until somebody rings. `None` once the deadline has
    /// passed. A task that is cancelled in its sleep unwinds from here; one that unwinds already goes on to wait. Where nothing
    /// can be unwound a cancel ends what has a deadline, as that does.
    pub(crate) fn wait<T>(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        loop {
            // Before the look: a ring that comes after it is not overlooked.
            let seen = self.0.readiness().load();
            if let Some(found) = look() {
                return Some(found);
            }
            if self.0.readiness().blocked(direction, seen) == Clearing::Overtaken {
                continue;
            }
            let (nobody, link) = (Hearing::all(Home::NOWHERE), source::link());
            match wait::sleep(&Waiter::new(&*self.0, direction, nobody, &link), deadline) {
                Waking::Notified => {}
                Waking::TimedOut => return None,
                Waking::Cancelled => wait::unwind_cancelled(),
            }
        }
    }

    /// Lets everybody of that direction look again. To be called after the change that they wait for, without its lock.
    pub(crate) fn ring(&self, direction: Direction) {
        self.0.ring(direction);
    }

    /// What is rung, for futures that wait.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.0
    }
}

impl Default for Bell {
    fn default() -> Bell {
        Bell(Arc::new(Source::new()))
    }
}
