//! Channels whose messages come from the clock.
//!
//! A receiver makes its message itself. So no sender wakes it: it sleeps until the message is due, and takes the message if no
//! other receiver did.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::clock;
use fibra_runtime::task::is_cancelled;

use super::error::{RecvTimeoutError, TryRecvError};
use crate::wait::{self, Lock};

/// A message at a set time, or one in each period.
pub(super) struct Timer<T> {
    /// When the next message is due; none after the last.
    next: Lock<Option<Instant>>,
    period: Option<Duration>,
    /// Makes the message out of the time at which it was due.
    pub(super) message: fn(Instant) -> T,
}

impl Timer<Instant> {
    /// Makes a timer that is first due at `first`, and again after each `period`.
    pub(super) fn new(first: Instant, period: Option<Duration>) -> Self {
        Timer { next: Lock::new(Some(first)), period, message: |due| due }
    }
}

impl<T> Timer<T> {
    /// Returns when the next message is due.
    pub(super) fn due(&self) -> Option<Instant> {
        *self.next.lock()
    }

    /// Returns true if the next message is due.
    pub(super) fn is_ready(&self) -> bool {
        self.due().is_some_and(|due| due <= clock::now())
    }

    /// Takes the message if it is due.
    // Its frame is of no use to a receiver of large messages, which come from senders.
    #[inline(never)]
    pub(super) fn try_recv(&self) -> Result<T, TryRecvError> {
        self.take(clock::now(), None).map(self.message).ok_or(TryRecvError::Empty)
    }

    /// Takes the time of the message that is due `now`. The receiver has waited since `came`, if at all.
    pub(super) fn take(&self, now: Instant, came: Option<Instant>) -> Option<Instant> {
        let mut next = self.next.lock();
        let due = next.filter(|due| *due <= now)?;
        // Messages that became due while no receiver waited are missed.
        *next = self.period.and_then(|period| due.max(came.unwrap_or(now)).checked_add(period));
        Some(due)
    }

    /// Waits for the message. `fail` makes the error.
    #[cold]
    #[inline(never)]
    pub(super) fn recv<E>(
        &self,
        deadline: Option<Instant>,
        fail: impl FnOnce(RecvTimeoutError) -> E,
    ) -> Result<T, E> {
        let came = clock::now();
        let (mut now, mut late) = (came, deadline.is_some_and(|deadline| deadline <= came));
        loop {
            if let Some(due) = self.take(now, Some(came)) {
                return Ok((self.message)(due));
            }
            if late {
                return Err(fail(RecvTimeoutError::Timeout));
            }
            match deadline {
                Some(deadline) => wait::sleep_within(earlier(self.due(), Some(deadline))),
                None => wait::sleep_to(self.due()),
            }
            // The message is looked for last: it may be due at the deadline.
            late = deadline.is_some_and(is_late);
            now = clock::now();
        }
    }
}

/// Returns true if a wait until `deadline` is over. Without unwinding a cancel ends it too.
pub(super) fn is_late(deadline: Instant) -> bool {
    deadline <= clock::now() || (!wait::CAN_UNWIND && is_cancelled())
}

/// Returns the earlier of two times; `None` is never.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
