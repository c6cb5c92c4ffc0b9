//! The registrations of a descriptor with reactors.
//!
//! Registration is lazy: a descriptor that never waits costs no `epoll_ctl`. The first wait registers it with
//! the reactor of the waiting worker, edge-triggered and for both directions, and the registration stays.
//! Only the reactor of its own worker wakes a task in time: any other worker may be in a task that computes.
//! So a wait on another worker moves the registration if no task waits, and else adds one. A registration
//! reports what is ready already, so no event is lost in between. The new one is made before the old one is
//! cancelled, so a failed move leaves all as it was.

#![forbid(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError};

use fibra_runtime::driver;

use super::set::RegistrationSet;
use crate::primitive::{Mutex, MutexGuard};
use crate::reactor::Handle;
use crate::readiness::set::{Reliance, SetId};
use crate::readiness::source::Source;

/// See the [module](self).
pub(crate) struct Registered {
    source: Arc<Source>,
    set: Mutex<RegistrationSet>,
}

impl Registered {
    pub(crate) fn new(fd: RawFd) -> Registered {
        Registered { source: Arc::new(Source::new(fd)), set: Mutex::default() }
    }

    #[inline]
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Registers with the reactor of the caller's worker. Returns `None` if there is none.
    ///
    /// If that fails, a reactor that knows the descriptor already will do.
    pub(crate) fn attach_here(&self, fd: RawFd) -> io::Result<Option<Reliance>> {
        let set_id = self.source.set_id();
        if driver::current_id().is_some_and(|here| set_id == SetId::at(here)) {
            return Ok(Some(Reliance::one(set_id)));
        }
        match driver::current::<Handle>() {
            Some(here) => self.attach(fd, &here).map(Some),
            None => Ok(None),
        }
    }

    /// Registers with the reactor `here`, which has not ended.
    #[cold]
    pub(crate) fn attach(&self, fd: RawFd, here: &Arc<Handle>) -> io::Result<Reliance> {
        let mut set = self.set();
        set.cancel_where(fd, Handle::is_closed);
        if set.handles().all(|handle| handle.id() != here.id()) {
            match here.register(fd, &self.source) {
                Ok(registration) => set.add(registration),
                // Another reactor reports its events.
                Err(_) if !set.is_empty() => return Ok(Reliance::all(self.settle(&mut set))),
                Err(error) => return Err(error),
            }
        }
        let mut is_left = false;
        let set_id = self.source.settle(|has_no_waiters| {
            is_left = set.is_left(has_no_waiters);
            if is_left { SetId::at(here.id()) } else { set.set_id() }
        });
        if is_left {
            set.cancel_where(fd, |handle| handle.id() != here.id());
        }
        Ok(Reliance { set_id, woken_by: SetId::at(here.id()) })
    }

    /// Registers for a waker, with `other` if the caller has no reactor and no live one knows `fd` yet.
    pub(crate) fn attach_anywhere(&self, fd: RawFd, other: Option<&Arc<Handle>>) -> io::Result<Reliance> {
        match self.attach_here(fd)? {
            Some(reliance) => Ok(reliance),
            None => self.attach_elsewhere(fd, other),
        }
    }

    /// Registers for a caller without a reactor, with `other` if no live one knows `fd` yet.
    pub(crate) fn attach_elsewhere(&self, fd: RawFd, other: Option<&Arc<Handle>>) -> io::Result<Reliance> {
        let mut set = self.set();
        set.cancel_where(fd, Handle::is_closed);
        if set.is_empty()
            && let Some(other) = other.filter(|other| !other.is_closed())
        {
            set.add(other.register(fd, &self.source)?);
        }
        let set_id = self.settle(&mut set);
        // A reactor that closes after this look finds the source, and changes its set of reactors.
        if set.handles().any(|handle| !handle.is_closed()) {
            return Ok(Reliance::all(set_id));
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no reactor hears of this socket: make it in a task of a runtime with I/O, or poll it there, while that runs",
        ))
    }

    /// Returns a live reactor of the set.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn reactor(&self) -> Option<Arc<Handle>> {
        self.set().handles().find(|handle| !handle.is_closed()).cloned()
    }

    /// Stores the id of the present set in the source.
    fn settle(&self, set: &mut RegistrationSet) -> SetId {
        let set_id = set.set_id();
        self.source.settle(|_| set_id)
    }

    /// Deregisters.
    ///
    /// The owner of `fd` calls it before it closes the descriptor or gives it away, without waiters.
    pub(crate) fn detach(&self, fd: RawFd) {
        // The owner is alone by now, and its handover has synchronised.
        if self.source.set_id() != SetId::NOWHERE {
            self.set().cancel_where(fd, |_| true);
        }
    }

    fn set(&self) -> MutexGuard<'_, RegistrationSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reactors of the set.
    #[cfg(test)]
    pub(crate) fn reactors(&self) -> Vec<driver::Id> {
        self.set().handles().map(|handle| handle.id()).collect()
    }
}

impl Deref for Registered {
    type Target = Source;

    #[inline]
    fn deref(&self) -> &Source {
        &self.source
    }
}
