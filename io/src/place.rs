//! Where one descriptor is registered: with the reactor of each worker whose tasks wait for it.
//!
//! Mostly that is one. Where tasks of several workers wait at the same time each of these workers has to hear by itself: the
//! others may be in a task that computes, and hear nothing until it ends.

#![forbid(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::Arc;

use fibra_runtime::driver;

use crate::reactor::{Handle, Registration};

/// After so many waits in a row that found nobody else waiting, the reactors leave that hear of a descriptor besides that of
/// the last one's worker. Each of them costs its worker a look at every edge; to come back costs two system calls.
const LEAVE_AFTER: u32 = 4;

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
    fn shared() -> Home {
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

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Place {
    registrations: Vec<Registration>,
    /// What they are called together, if they are several and were before.
    shared: Option<Home>,
    /// Waits in a row that found nobody else, while they are several.
    lone: u32,
}

impl Place {
    pub(crate) fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    pub(crate) fn has(&self, here: &Handle) -> bool {
        self.handles().any(|handle| handle.id() == here.id())
    }

    /// The reactors that hear of the descriptor.
    pub(crate) fn handles(&self) -> impl Iterator<Item = &Arc<Handle>> {
        self.registrations.iter().map(Registration::handle)
    }

    pub(crate) fn add(&mut self, registration: Registration) {
        self.registrations.reserve_exact(1);
        self.registrations.push(registration);
    }

    /// What those are called that are registered with now.
    pub(crate) fn home(&mut self) -> Home {
        match &self.registrations[..] {
            [] => Home::NOWHERE,
            [one] => Home::at(one.handle().id()),
            _ => *self.shared.get_or_insert_with(Home::shared),
        }
    }

    /// Counts a wait, and tells whether all others are to leave now that a registration with its reactor is here. A descriptor
    /// that had one home moves at once, if nobody waits there: a move costs a twentieth of a wake across threads.
    pub(crate) fn is_left(&mut self, nobody_waits: bool) -> bool {
        if self.registrations.len() < 2 || !nobody_waits {
            self.lone = 0;
            return false;
        }
        self.lone += 1;
        self.shared.is_none() || self.lone >= LEAVE_AFTER
    }

    /// Deregisters `fd` everywhere but with `here`.
    pub(crate) fn keep_only(&mut self, here: &Handle, fd: RawFd) {
        self.cancel_where(fd, |handle| handle.id() != here.id());
    }

    /// Lets reactors go that are gone.
    pub(crate) fn forget_closed(&mut self, fd: RawFd) {
        self.cancel_where(fd, |handle| handle.is_closed());
    }

    /// Deregisters `fd` everywhere.
    pub(crate) fn cancel(&mut self, fd: RawFd) {
        self.cancel_where(fd, |_| true);
    }

    fn cancel_where(&mut self, fd: RawFd, leaves: impl Fn(&Handle) -> bool) {
        for registration in self.registrations.extract_if(.., |registration| leaves(registration.handle())) {
            registration.cancel(fd);
            (self.shared, self.lone) = (None, 0);
        }
    }
}
