//! The repeated try of a system call by a future.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use fibra_runtime::wait;

use super::endpoints::{EventSource, Polls};
use super::recheck::recheck_later;
use crate::reactor::Handle;
use crate::readiness::Edge;
use crate::readiness::set::{Reliance, SetId};
use crate::sys::Direction;
use crate::waiting::attempt::Attempt;
use crate::waiting::edge_wait::EdgeWait;

/// See the [module](self).
pub(super) struct Watch {
    wait: EdgeWait,
    /// The last poll gave way, so that the next one does not.
    gave_way: bool,
}

// SAFETY: all methods take `&mut self`.
unsafe impl Sync for Watch {}

impl Watch {
    pub(super) fn new(direction: Direction) -> Watch {
        Watch { wait: EdgeWait::new(direction), gave_way: false }
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
        let direction = self.wait.direction();
        let events = what.events(direction);
        loop {
            if let Some(outcome) = events.source.attempt(direction, &mut call) {
                return Poll::Ready(outcome);
            }
            match attach(&events, origin) {
                Ok(reliance) => ready!(self.wait(&events, reliance.set_id, context)),
                Err(error) => {
                    // No event will come: the next poll has to look for itself.
                    events.source.readiness().edge(Edge::new().ready(direction, true));
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Waits until that direction may be ready.
    fn wait(&mut self, events: &EventSource<'_>, set_id: SetId, context: &mut Context<'_>) -> Poll<()> {
        let polled = self.wait.poll(events.source, set_id, context);
        if polled.is_pending() && events.rechecks {
            recheck_later(events.source);
        }
        polled
    }
}

/// Registers the descriptor, if there is one, and returns the reactors that know it.
fn attach(events: &EventSource<'_>, origin: Option<&Arc<Handle>>) -> io::Result<Reliance> {
    let Some((registered, fd)) = events.registered else { return Ok(Reliance::all(SetId::NOWHERE)) };
    registered.attach_anywhere(fd.as_raw_fd(), origin)
}
