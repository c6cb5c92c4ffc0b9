//! The wait of a future for one direction of a descriptor: the place where its waker is kept.
//!
//! The reactor's edge takes the node out of the list, as it does a task's, and calls the waker: no task waits in between. The
//! memory is had at the first wait, and used for all that follow.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fibra_runtime::wait::{self, Polled};

use crate::readiness::Direction;
use crate::source::{Source, Waiter};

/// See the [module](self).
pub(super) struct Watch {
    direction: Direction,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The last poll gave way, so that the next one does not.
    gave_way: bool,
}

type Sleep = Polled<Waiter<Arc<Source>>>;

// SAFETY: all that it can do takes `&mut self`.
unsafe impl Sync for Watch {}

impl Watch {
    pub(super) fn new(direction: Direction) -> Watch {
        Watch { direction, sleep: None, gave_way: false }
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// Counts an operation. True if the task that polls has used up its turn: the poll wakes itself and is pending. Never
    /// twice in a row, since an executor of others does not know of turns.
    pub(super) fn gives_way(&mut self) -> bool {
        self.gave_way = wait::charge_poll() && !self.gave_way;
        self.gave_way
    }

    /// Pending until that direction may be ready, from then on by an edge that calls the waker of the last poll. The source
    /// is the same each time, and some reactor hears of it.
    pub(super) fn poll(&mut self, source: &Arc<Source>, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(Polled::new(Waiter::new(Arc::clone(source), self.direction))));
        let polled = sleep.as_mut().poll(context);
        // Does nothing to one that is not over.
        sleep.as_mut().renew();
        polled.map(|_notified| ())
    }
}
