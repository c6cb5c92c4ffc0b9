//! Names for the sets of reactors where descriptors are registered, and what a sleep relies on.

#![forbid(unsafe_code)]

use fibra_runtime::driver;

/// Names the set of reactors where a descriptor is registered. Ids are only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetId(u64);

impl SetId {
    /// The id of a descriptor that is registered nowhere.
    pub(crate) const NOWHERE: SetId = SetId(0);
    /// The id after a reactor of the set has ended: no task sleeps before the set is known again.
    pub(crate) const ABANDONED: SetId = SetId(u64::MAX);

    /// Returns the id of the set of one reactor.
    #[inline]
    pub(crate) fn at(reactor: driver::Id) -> SetId {
        SetId(reactor.number())
    }

    /// Returns a fresh id for a set of several reactors.
    pub(crate) fn shared() -> SetId {
        SetId::at(driver::Id::fresh())
    }

    pub(crate) fn from_number(number: u64) -> SetId {
        SetId(number)
    }

    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// Says what a sleep relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reliance {
    /// The reactors that know the descriptor.
    pub(crate) set_id: SetId,
    /// The reactor whose edges wake the waiter; `NOWHERE` if the edges of all do. If each reactor woke all waiters, a connection
    /// would wake as many tasks as workers wait on one listener, that number of times.
    pub(crate) woken_by: SetId,
}

impl Reliance {
    /// Returns the reliance of a waiter that every edge wakes.
    pub(crate) fn all(set_id: SetId) -> Reliance {
        Reliance { set_id, woken_by: SetId::NOWHERE }
    }

    /// Returns the reliance of a waiter on the only reactor.
    #[inline(always)]
    pub(crate) fn one(set_id: SetId) -> Reliance {
        Reliance { set_id, woken_by: set_id }
    }
}
