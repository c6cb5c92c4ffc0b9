//! Where one descriptor is registered: with the reactor of each worker whose tasks wait for it.
//!
//! Mostly that is one. Where tasks of several workers wait at the same time each of these workers has to hear by itself: the
//! others may be in a task that computes, and hear nothing until it ends.

#![forbid(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::reactor::{Handle, Registration};
use crate::readiness::set::Home;

/// After so many waits in a row that found nobody else waiting, the reactors leave that hear of a descriptor besides that of
/// the last one's worker. Each of them costs its worker a look at every edge; to come back costs two system calls.
const LEAVE_AFTER: u32 = 4;

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
