//! A future's wait for one direction of a descriptor, which keeps its waker.
//!
//! The reactor's edge takes the node out of the list, as it does a task's, and calls the waker. No
//! task waits in between. The first wait allocates the node, and all later waits use it.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use fibra_runtime::wait::{self, Polled};

use super::endpoints::{EventSource, Polls};
use super::recheck::recheck_later;
use crate::reactor::Handle;
use crate::readiness::Edge;
use crate::readiness::set::{Reliance, SetId};
use crate::readiness::source::{self, Link, Source, Waiter};
use crate::sys::Direction;
use crate::waiting::attempt::Attempt;

/// See the [module](self).
pub(super) struct Watch {
    direction: Direction,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The last poll gave way, so that the next one does not.
    gave_way: bool,
}

type Sleep = Polled<Waiter<Arc<Source>, Link>>;

// SAFETY: all methods take `&mut self`.
unsafe impl Sync for Watch {}

impl Watch {
    pub(super) fn new(direction: Direction) -> Watch {
        Watch { direction, sleep: None, gave_way: false }
    }

    /// Tries `call`. If it would block, an event calls the waker when another try is worthwhile.
    ///
    /// `what` is the same socket each time.
    pub(super) fn run<T>(
        &mut self,
        what: &impl Polls,
        origin: Option<&Arc<Handle>>,
        context: &mut Context<'_>,
        mut call: impl FnMut() -> io::Result<Attempt<T>>,
    ) -> Poll<io::Result<T>> {
        // Never twice in a row, since a foreign executor does not renew the budget.
        self.gave_way = wait::charge_poll() && !self.gave_way;
        if self.gave_way {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let events = what.events(self.direction);
        loop {
            if let Some(outcome) = events.source.attempt(self.direction, &mut call) {
                return Poll::Ready(outcome);
            }
            match attach(&events, origin) {
                Ok(reliance) => ready!(self.wait(&events, reliance.set_id, context)),
                Err(error) => {
                    // No event will come: the next poll has to look for itself.
                    events.source.readiness().edge(Edge::new().ready(self.direction, true));
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Waits until that direction may be ready; the edge calls the waker of the last poll.
    fn wait(&mut self, events: &EventSource<'_>, set_id: SetId, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| {
            let (source, reliance) = (Arc::clone(events.source), Reliance::all(set_id));
            Box::pin(Polled::new(Waiter::new(source, self.direction, reliance, source::link())))
        });
        sleep.strategy().rely_on(set_id);
        let polled = sleep.as_mut().poll(context);
        // Does nothing to a sleep that is not over.
        sleep.as_mut().renew();
        if polled.is_pending() && events.rechecks {
            recheck_later(events.source);
        }
        polled.map(|_notified| ())
    }
}

/// Registers the descriptor, if there is one, and returns the reactors that know it.
fn attach(events: &EventSource<'_>, origin: Option<&Arc<Handle>>) -> io::Result<Reliance> {
    let Some((registered, fd)) = events.registered else { return Ok(Reliance::all(SetId::NOWHERE)) };
    match registered.attach_here(fd.as_raw_fd())? {
        Some(reliance) => Ok(reliance),
        None => registered.attach_elsewhere(fd.as_raw_fd(), origin),
    }
}
