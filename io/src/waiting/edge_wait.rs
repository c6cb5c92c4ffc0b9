//! A wait for the next edge of a descriptor that is polled, and keeps a waker.
//!
//! The reactor's edge takes the node out of the list, as it does a task's, and calls the waker. No
//! task waits in between. The first wait allocates the node, and all later waits use it.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fibra_runtime::wait::Polled;

use crate::readiness::set::{Reliance, SetId};
use crate::readiness::source::{self, Link, Source, Waiter};
use crate::sys::Direction;

/// See the [module](self).
pub(crate) struct EdgeWait {
    direction: Direction,
    sleep: Option<Pin<Box<Sleep>>>,
}

type Sleep = Polled<Waiter<Arc<Source>, Link>>;

impl EdgeWait {
    pub(crate) fn new(direction: Direction) -> EdgeWait {
        EdgeWait { direction, sleep: None }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Waits until that direction may be ready; the edge calls the waker of the last poll.
    ///
    /// `source` is the same each time.
    pub(crate) fn poll(
        &mut self,
        source: &Arc<Source>,
        set_id: SetId,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| {
            let (source, reliance) = (Arc::clone(source), Reliance::all(set_id));
            Box::pin(Polled::new(Waiter::new(source, self.direction, reliance, source::link())))
        });
        sleep.strategy().rely_on(set_id);
        let polled = sleep.as_mut().poll(context);
        // Does nothing to a sleep that is not over.
        sleep.as_mut().renew();
        polled.map(|_notified| ())
    }
}
