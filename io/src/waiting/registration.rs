//! A source, and the reactors that it is registered with.

#![forbid(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError};

use fibra_runtime::driver;

use super::set::Place;
use crate::primitive::{Mutex, MutexGuard};
use crate::reactor::Handle;
use crate::readiness::set::{Hearing, Home};
use crate::readiness::source::Source;
use crate::wait;

/// See the [module](self).
pub(crate) struct Registered {
    source: Arc<Source>,
    place: Mutex<Place>,
}

impl Registered {
    pub(crate) fn new() -> Registered {
        Registered { source: Arc::new(Source::new()), place: Mutex::default() }
    }

    #[inline]
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Forgets where it is registered, by one who has found that `fd` is another file by now; who waits looks again.
    pub(crate) fn renew(&self, fd: RawFd) {
        let mut wakes = Vec::new();
        let mut place = self.place();
        place.cancel(fd);
        self.source.abandon(|wake| wakes.push(wake));
        drop(place);
        wait::wake_each(wakes);
    }

    /// Sees to it that the reactor of the caller's worker hears of this descriptor, or if that cannot be had, another one. `None`,
    /// and nothing is done, where there is none.
    pub(crate) fn attach_here(&self, fd: RawFd) -> io::Result<Option<Hearing>> {
        let home = self.source.home();
        if driver::current_id().is_some_and(|here| home == Home::at(here)) {
            return Ok(Some(Hearing::one(home)));
        }
        match driver::current::<Handle>() {
            Some(here) => self.attach(fd, &here).map(Some),
            None => Ok(None),
        }
    }

    /// The same of the reactor `here`, which is not gone.
    #[cold]
    pub(crate) fn attach(&self, fd: RawFd, here: &Arc<Handle>) -> io::Result<Hearing> {
        let mut place = self.place();
        place.forget_closed(fd);
        if !place.has(here) {
            match here.register(fd, &self.source) {
                Ok(registration) => place.add(registration),
                // It is heard of elsewhere.
                Err(_) if !place.is_empty() => return Ok(Hearing::all(self.settle(&mut place))),
                Err(error) => return Err(error),
            }
        }
        let mut is_left = false;
        let home = self.source.settle(|nobody_waits| {
            is_left = place.is_left(nobody_waits);
            if is_left { Home::at(here.id()) } else { place.home() }
        });
        if is_left {
            place.keep_only(here, fd);
        }
        Ok(Hearing { home, ear: Home::at(here.id()) })
    }

    /// The same from where no reactor of ours is: any live one will do, `other` if there is none yet.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn attach_from_afar(&self, fd: RawFd, other: Option<&Arc<Handle>>) -> io::Result<Hearing> {
        let mut place = self.place();
        place.forget_closed(fd);
        if place.is_empty()
            && let Some(other) = other.filter(|other| !other.is_closed())
        {
            place.add(other.register(fd, &self.source)?);
        }
        let home = self.settle(&mut place);
        // One that closes after this look finds the source, and changes its home.
        if place.handles().any(|handle| !handle.is_closed()) {
            return Ok(Hearing::all(home));
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no reactor hears of this socket: make it in a task of a runtime with I/O, or poll it there, while that runs",
        ))
    }

    /// A live reactor that hears of this descriptor, if there is one.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn reactor(&self) -> Option<Arc<Handle>> {
        self.place().handles().find(|handle| !handle.is_closed()).cloned()
    }

    /// Says who hears of the descriptor now.
    fn settle(&self, place: &mut Place) -> Home {
        let home = place.home();
        self.source.settle(|_| home)
    }

    /// Deregisters. Called by the owner of `fd` before it closes it or gives it away, so nobody waits any more.
    pub(crate) fn detach(&self, fd: RawFd) {
        // The owner is alone by now, and what it was handed came with its own synchronisation.
        if self.source.home() != Home::NOWHERE {
            self.place().cancel(fd);
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who hears of this descriptor.
    #[cfg(test)]
    pub(crate) fn ears(&self) -> Vec<driver::Id> {
        self.place().handles().map(|handle| handle.id()).collect()
    }
}

impl Deref for Registered {
    type Target = Source;

    #[inline]
    fn deref(&self) -> &Source {
        &self.source
    }
}
