//! The set of registrations of one descriptor: the reactor of each worker whose tasks wait for it.
//!
//! Mostly that is one. Where tasks of several workers wait at once, each of these workers needs a
//! registration of its own: a worker whose task computes reports nothing until that task ends.

#![forbid(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::reactor::{Handle, Registration};
use crate::readiness::set::SetId;

/// Waits in a row without other waiters, after which the other reactors leave the set.
///
/// A reactor in the set costs its worker a look at every edge. To come back costs two system calls.
const LEAVE_AFTER: u32 = 4;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct RegistrationSet {
    registrations: Vec<Registration>,
    /// Their common id, once they are several.
    shared: Option<SetId>,
    /// Waits in a row without other waiters, while they are several.
    lone: u32,
}

impl RegistrationSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// Returns the reactors of the set.
    pub(crate) fn handles(&self) -> impl Iterator<Item = &Arc<Handle>> {
        self.registrations.iter().map(Registration::handle)
    }

    pub(crate) fn add(&mut self, registration: Registration) {
        self.registrations.reserve_exact(1);
        self.registrations.push(registration);
    }

    /// Returns the id of the present set.
    pub(crate) fn set_id(&mut self) -> SetId {
        match &self.registrations[..] {
            [] => SetId::NOWHERE,
            [one] => SetId::at(one.handle().id()),
            _ => *self.shared.get_or_insert_with(SetId::shared),
        }
    }

    /// Counts a wait. Returns true if all reactors but the caller's are to leave now.
    ///
    /// A descriptor of one reactor moves at once if no task waits there: a move costs far less than
    /// a wake across threads.
    pub(crate) fn is_left(&mut self, has_no_waiters: bool) -> bool {
        if self.registrations.len() < 2 || !has_no_waiters {
            self.lone = 0;
            return false;
        }
        self.lone += 1;
        self.shared.is_none() || self.lone >= LEAVE_AFTER
    }

    /// Deregisters `fd` from the reactors that leave the set.
    pub(crate) fn cancel_where(&mut self, fd: RawFd, leaves: impl Fn(&Handle) -> bool) {
        for registration in self.registrations.extract_if(.., |registration| leaves(registration.handle())) {
            registration.cancel(fd);
            (self.shared, self.lone) = (None, 0);
        }
    }
}
