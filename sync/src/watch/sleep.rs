//! The waits of a watch channel.

use std::cell::Cell;
use std::pin::pin;
use std::time::Instant;

use super::error::{RecvError, RecvTimeoutError};
use super::versions::Versions;
use crate::wait::list::Node;
use crate::wait::{self, Asleep, Polled, WaitStrategy, WakeHandle, Waking, Withdrawal};

impl Versions {
    /// Sleeps until there is another version than `seen`, which becomes `seen`.
    pub(super) fn await_change(
        &self,
        seen: &mut u64,
        deadline: Option<Instant>,
    ) -> Result<(), RecvTimeoutError> {
        wait::checkpoint();
        loop {
            if let Some(outcome) = self.see_change(seen) {
                return outcome.map_err(|RecvError| RecvTimeoutError::Closed);
            }
            match wait::sleep(&self.until_changed(*seen), deadline) {
                Waking::Notified => {}
                Waking::TimedOut => return Err(RecvTimeoutError::Timeout),
                Waking::Cancelled => wait::unwind_cancelled(),
            }
        }
    }

    /// As [`await_change`](Versions::await_change), for futures.
    pub(super) async fn await_change_async(&self, seen: &mut u64) -> Result<(), RecvError> {
        loop {
            if let Some(outcome) = self.see_change(seen) {
                return outcome;
            }
            pin!(Polled::new(self.until_changed(*seen))).await;
        }
    }

    /// Makes the present version the one that was `seen`. None if it was, and another may come.
    fn see_change(&self, seen: &mut u64) -> Option<Result<(), RecvError>> {
        let now = self.look();
        if now.version != *seen {
            *seen = now.version;
            return Some(Ok(()));
        }
        now.closed.then_some(Err(RecvError))
    }

    fn until_changed(&self, seen: u64) -> UntilChanged<'_> {
        UntilChanged { versions: self, node: Node::with(seen) }
    }

    /// Sleeps until there is no receiver. False if the deadline came first.
    pub(super) fn await_desertion(&self, deadline: Option<Instant>) -> bool {
        match wait::sleep(&self.until_deserted(), deadline) {
            Waking::Notified => true,
            Waking::TimedOut => false,
            Waking::Cancelled => wait::unwind_cancelled(),
        }
    }

    /// As [`await_desertion`](Versions::await_desertion), for futures.
    pub(super) async fn await_desertion_async(&self) {
        pin!(Polled::new(self.until_deserted())).await;
    }

    /// Until a sender lets the value go, for futures; unless it `is_free`.
    pub(super) async fn await_free_async(&self, is_free: impl Fn() -> bool) {
        let node = Node::with(Cell::new(0));
        pin!(Polled::new(UntilFree { versions: self, is_free, node })).await;
    }

    fn until_deserted(&self) -> UntilDeserted<'_> {
        UntilDeserted { versions: self, node: Node::new() }
    }
}

/// Until the value changes, or the channel closes.
struct UntilChanged<'a> {
    versions: &'a Versions,
    node: Node<u64>,
}

// SAFETY: the node's data does not change, and the rest of it is only touched under the lock of its list.
unsafe impl Send for UntilChanged<'_> {}

impl WaitStrategy for UntilChanged<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the node is in no list and stays until the sleep is over, and its wake is taken out of it under the
        // lock of the list; `before_awake` answers `Served` from then on.
        match unsafe { self.versions.enter(&self.node, me.raw()) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: it was entered there.
        match why == Waking::Notified || unsafe { self.versions.leave(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        true
    }
}

/// Until there is no receiver.
struct UntilDeserted<'a> {
    versions: &'a Versions,
    node: Node,
}

// SAFETY: the node is only touched under the lock of its list.
unsafe impl Send for UntilDeserted<'_> {}

impl WaitStrategy for UntilDeserted<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: as in `UntilChanged`.
        match unsafe { self.versions.mourn(&self.node, me.raw()) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: it was entered there.
        match why == Waking::Notified || unsafe { self.versions.mourn_no_more(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}

/// Until a sender lets the value go.
struct UntilFree<'a, F> {
    versions: &'a Versions,
    is_free: F,
    node: Node<Cell<u64>>,
}

// SAFETY: the node and its data are only touched under the lock of the list.
unsafe impl<F: Send> Send for UntilFree<'_, F> {}

impl<F: Fn() -> bool> WaitStrategy for UntilFree<'_, F> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: as in `UntilChanged`.
        match unsafe { self.versions.stand_aside(&self.node, me.raw(), &self.is_free) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: it was entered there.
        match why == Waking::Notified || unsafe { self.versions.stand_aside_no_more(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
