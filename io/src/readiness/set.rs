//! Names for the sets of reactors where descriptors are registered, and what a sleep relies on.

#![forbid(unsafe_code)]

use fibra_runtime::driver;

/// Which reactors are sure to hear of a descriptor: one, or several that nobody has left since. To be compared only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(u64);

impl Home {
    /// That of a descriptor that is registered nowhere.
    pub(crate) const NOWHERE: Home = Home(0);
    /// That of a descriptor one of whose reactors is gone. Nobody may sleep before it is known who else hears of it.
    pub(crate) const ABANDONED: Home = Home(u64::MAX);

    /// One reactor.
    #[inline]
    pub(crate) fn at(reactor: driver::Id) -> Home {
        Home(reactor.number())
    }

    /// Several that never were a home before.
    pub(crate) fn shared() -> Home {
        Home::at(driver::Id::fresh())
    }

    pub(crate) fn from_number(number: u64) -> Home {
        Home(number)
    }

    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// What a sleep relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hearing {
    /// Who hears of the descriptor.
    pub(crate) home: Home,
    /// Whose edges wake the sleeper: those of one of them, or if this is nowhere, of all. Where several hear of a descriptor, each
    /// wakes the tasks of its own worker. If each woke everybody, as many tasks as workers on one listener would be woken by a
    /// connection as often as their number squared.
    pub(crate) ear: Home,
}

impl Hearing {
    /// Of a sleeper whom every edge wakes.
    pub(crate) fn all(home: Home) -> Hearing {
        Hearing { home, ear: Home::NOWHERE }
    }

    /// Of one whom the only reactor wakes that there is.
    #[inline(always)]
    pub(crate) fn one(home: Home) -> Hearing {
        Hearing { home, ear: home }
    }
}
