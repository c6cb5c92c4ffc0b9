//! The version of a watched value, and the waiters for the next one.
//!
//! ```text
//!  63                                  1 0
//! ┌─────────────────────────────────────┬────────┐
//! │ version: one more with each change  │ CLOSED │     CLOSED: the last sender is gone; it stays
//! └─────────────────────────────────────┴────────┘
//! ```
//!
//! * The version moves while the value is locked for writing, and is read while the value is locked for reading: the two
//!   always belong together.
//! * A sender moves the version first, and wakes the waiters once the value is unlocked, under the lock of the queue. A
//!   receiver looks at the word under that lock before it waits. So it is either served or sees the move.
//! * A future that finds the value locked by a sender looks again under the lock of the queue. The sender wakes it once the
//!   value is unlocked, changed or not.

#![forbid(unsafe_code)]

use std::time::Instant;

use super::error::{RecvError, RecvTimeoutError};
use crate::primitive::{AtomicU64, Ordering};
use crate::wait::{self, QueueArm, Until, WaitDescription, WaitQueue};

static CHANGE: WaitDescription = WaitDescription::new("watch change");

const CLOSED: u64 = 1;
const ONE_VERSION: u64 = 2;

/// The lane of receivers that wait for a change.
const CHANGES: usize = 0;

/// The lane of senders that wait for the last receiver to go.
const CLOSINGS: usize = 1;

/// The lane of futures that wait for a sender to unlock the value.
const UNLOCKS: usize = 2;

/// The version, the counts of senders and receivers, and the waiters.
pub(crate) struct Versions {
    word: AtomicU64,
    queue: WaitQueue<Counts, (), 3>,
}

/// How many ends a channel has.
pub struct Counts {
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
}

/// The word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) closed: bool,
}

impl Versions {
    /// Makes version 0, with one sender.
    pub(crate) const fn new() -> Self {
        Versions { word: AtomicU64::new(0), queue: WaitQueue::new(Counts { senders: 1, receivers: 0 }) }
    }

    pub(crate) fn look(&self) -> Snapshot {
        // Acquire: pairs with the Release in `advance` and `remove_sender`: what came before the change is seen.
        let bits = self.word.load(Ordering::Acquire);
        Snapshot { version: bits / ONE_VERSION, closed: bits & CLOSED != 0 }
    }

    /// Counts a change. The caller has the value locked for writing, and [announces](Versions::announce) the change after.
    pub(crate) fn advance(&self) {
        // Release: pairs with the Acquire in `look`.
        self.word.fetch_add(ONE_VERSION, Ordering::Release);
    }

    /// Wakes receivers if the value has `changed`, and futures that found the value locked.
    pub(crate) fn announce(&self, changed: bool) {
        self.queue.with(|_, waiters| {
            if changed {
                waiters.serve_all(CHANGES);
            }
            waiters.serve_all(UNLOCKS);
        });
    }

    /// Reads or changes the counts. None falls to zero here.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Counts) -> R) -> R {
        self.queue.with(|counts, _| f(counts))
    }

    /// Removes a sender. The last one closes the channel and wakes its receivers.
    pub(crate) fn remove_sender(&self) {
        self.queue.with(|counts, waiters| {
            counts.senders -= 1;
            if counts.senders == 0 {
                // Release: pairs with the Acquire in `look`.
                self.word.fetch_or(CLOSED, Ordering::Release);
                waiters.serve_all(CHANGES);
            }
        });
    }

    /// Removes a receiver, and wakes senders that wait for the last one to go.
    pub(crate) fn remove_receiver(&self) {
        self.queue.with(|counts, waiters| {
            counts.receivers -= 1;
            if counts.receivers == 0 {
                waiters.serve_all(CLOSINGS);
            }
        });
    }

    /// Waits until the version differs from `seen`, and marks it as `seen`.
    pub(crate) fn wait_changed(
        &self,
        seen: &mut u64,
        deadline: Option<Instant>,
    ) -> Result<(), RecvTimeoutError> {
        wait::checkpoint();
        let until = Until::unwind(deadline).spinning().described(&CHANGE);
        let change = self.see_change(seen);
        match change.or_else(|| self.queue.wait_for(CHANGES, until, |_| self.see_change(seen))) {
            Some(outcome) => outcome.map_err(|RecvError| RecvTimeoutError::Closed),
            None => Err(RecvTimeoutError::Timeout),
        }
    }

    /// Variant of [`wait_changed`](Versions::wait_changed) for futures.
    pub(crate) async fn wait_changed_async(&self, seen: &mut u64) -> Result<(), RecvError> {
        match self.see_change(seen) {
            Some(outcome) => outcome,
            None => self.queue.wait_for_async(CHANGES, |_| self.see_change(seen)).await,
        }
    }

    /// Marks the present version as `seen`. Returns `None` if it was seen already, and a further
    /// one may come.
    fn see_change(&self, seen: &mut u64) -> Option<Result<(), RecvError>> {
        let now = self.look();
        if now.version != *seen {
            *seen = now.version;
            return Some(Ok(()));
        }
        now.closed.then_some(Err(RecvError))
    }

    /// Returns true if the version differs from `seen`, or no further one comes.
    pub(crate) fn has_changed(&self, seen: u64) -> bool {
        self.look() != Snapshot { version: seen, closed: false }
    }

    /// Makes an arm of a select, for a receiver whose `policy` says when it is ready.
    pub(crate) fn arm<'a, P>(&'a self, policy: &'a P) -> QueueArm<'a, Counts, (), 3, P> {
        QueueArm::new(&self.queue, CHANGES, (), policy).described(&CHANGE)
    }

    /// Waits until there is no receiver. Returns false at the deadline.
    pub(crate) fn wait_closed(&self, deadline: Option<Instant>) -> bool {
        let until = Until::unwind(deadline).described(const { &WaitDescription::new("watch closing") });
        self.queue.wait_for(CLOSINGS, until, |counts| (counts.receivers == 0).then_some(())).is_some()
    }

    /// Variant of [`wait_closed`](Versions::wait_closed) for futures.
    pub(crate) async fn wait_closed_async(&self) {
        self.queue.wait_for_async(CLOSINGS, |counts| (counts.receivers == 0).then_some(())).await;
    }

    /// Waits until a sender unlocks the value, unless it `is_free`. For futures.
    pub(crate) async fn wait_unlocked_async(&self, is_free: impl Fn() -> bool) {
        self.queue.wait_until_async(UNLOCKS, |_| is_free()).await;
    }
}
