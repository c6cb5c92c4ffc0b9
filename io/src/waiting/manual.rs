//! Waiting for what is no descriptor: a [`Source`] that no reactor knows, and that is rung by hand.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use fibra_runtime::wait::{self, Waking};

use crate::readiness::Clearing;
use crate::readiness::set::{Hearing, Home};
use crate::readiness::source::{self, Link, Source, Waiter};
use crate::sys::Direction;
use crate::waiting::cancel::{check_may_wait, end_by_cancel};

#[cfg(test)]
mod tests;

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
        look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let found = self.wait_by(direction, look, |waiter| match wait::sleep(waiter, deadline) {
            Waking::Cancelled => wait::unwind_cancelled(),
            why => Ok(why),
        });
        found.unwrap_or_else(|never: Infallible| match never {})
    }

    /// The same for an operation that fails in a task that is cancelled and cannot be unwound.
    pub(crate) fn wait_or_fail<T>(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        look: impl FnMut() -> Option<T>,
    ) -> io::Result<Option<T>> {
        check_may_wait()?;
        self.wait_by(direction, look, |waiter| match wait::sleep_or_fail(waiter, deadline) {
            Waking::Cancelled => Err(end_by_cancel()),
            why => Ok(why),
        })
    }

    fn wait_by<T, E>(
        &self,
        direction: Direction,
        mut look: impl FnMut() -> Option<T>,
        sleep: impl Fn(&Waiter<&Source, &Link>) -> Result<Waking, E>,
    ) -> Result<Option<T>, E> {
        loop {
            // Before the look: a ring that comes after it is not overlooked.
            let seen = self.0.readiness().load();
            if let Some(found) = look() {
                return Ok(Some(found));
            }
            if self.0.readiness().blocked(direction, seen) == Clearing::Overtaken {
                continue;
            }
            let (nobody, link) = (Hearing::all(Home::NOWHERE), source::link());
            if sleep(&Waiter::new(&*self.0, direction, nobody, &link))? == Waking::TimedOut {
                // What has come before is not left because nobody has rung for it yet.
                return Ok(look());
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
