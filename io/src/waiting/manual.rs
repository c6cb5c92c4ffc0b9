//! A manual event source: a [`Source`] that no reactor knows, and that code notifies.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use fibra_runtime::wait::{self, WaitDescription, WaitRecord, Waking};

use crate::readiness::Clearing;
use crate::readiness::set::{Reliance, SetId};
use crate::readiness::source::{self, Link, Source, Waiter};
use crate::sys::Direction;
use crate::waiting::cancel::{check_may_wait, end_by_cancel};

#[cfg(test)]
mod tests;

static STREAM_CHANGE: WaitDescription = WaitDescription::new("stream change");

/// Lets tasks wait for a change in memory, with a wait list for each direction.
pub(crate) struct ManualSource(Arc<Source>);

impl ManualSource {
    /// Calls `look` until it finds something, and sleeps between calls.
    ///
    /// Returns `None` once the deadline has passed. A cancel in the sleep unwinds the task; a task
    /// that unwinds already waits on. In a build that cannot unwind, a cancel ends a wait with a
    /// deadline as the deadline does.
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

    /// Variant of [`wait`](Self::wait) that fails in a cancelled task that cannot be unwound.
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
            // Before the look, so that a notification after it is not overlooked.
            let seen = self.0.readiness().load();
            if let Some(found) = look() {
                return Ok(Some(found));
            }
            if self.0.readiness().blocked(direction, seen) == Clearing::Overtaken {
                continue;
            }
            let (nowhere, link) = (Reliance::all(SetId::NOWHERE), source::link());
            let record = WaitRecord::new(&STREAM_CHANGE, &*self.0);
            let waiter = Waiter::new(&*self.0, direction, nowhere, &link).recorded(&record);
            if sleep(&waiter)? == Waking::TimedOut {
                // A change whose notification is still on its way counts.
                return Ok(look());
            }
        }
    }

    /// Makes all waiters of a direction look again.
    ///
    /// Called after the change, without its lock.
    pub(crate) fn notify(&self, direction: Direction) {
        self.0.notify(direction);
    }

    /// Returns the source, for futures that wait.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.0
    }
}

impl Default for ManualSource {
    fn default() -> ManualSource {
        ManualSource(Arc::new(Source::new(-1)))
    }
}
