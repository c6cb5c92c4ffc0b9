//! The two sleeps of a broadcast channel.

use super::ring::Ring;
use crate::wait::list::Node;
use crate::wait::{Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// Until a message comes, or the channel closes.
pub(super) struct UntilSent<'a, V: Clone> {
    pub(super) ring: &'a Ring<V>,
    pub(super) node: Node<u64>,
}

// SAFETY: the node's data does not change, the rest of it is only touched under the ring's lock, and a ring may be shared.
unsafe impl<V: Clone + Send> Send for UntilSent<'_, V> {}

impl<V: Clone> WaitStrategy for UntilSent<'_, V> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the node is in no list and stays until the sleep is over, and its wake is taken out of it under the
        // ring's lock; `before_awake` answers `Served` from then on.
        match unsafe { self.ring.enter(&self.node, me.raw()) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: it was entered there.
        match why == Waking::Notified || unsafe { self.ring.leave(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        true
    }
}

/// Until there is no receiver.
pub(super) struct UntilDeserted<'a, V: Clone> {
    pub(super) ring: &'a Ring<V>,
    pub(super) node: Node,
}

// SAFETY: the node is only touched under the ring's lock, and a ring may be shared.
unsafe impl<V: Clone + Send> Send for UntilDeserted<'_, V> {}

impl<V: Clone> WaitStrategy for UntilDeserted<'_, V> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: as in `UntilSent`.
        match unsafe { self.ring.mourn(&self.node, me.raw()) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: it was entered there.
        match why == Waking::Notified || unsafe { self.ring.mourn_no_more(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
