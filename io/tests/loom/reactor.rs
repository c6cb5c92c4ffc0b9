//! A reactor without a poll: what sockets share of it, and what it does with them.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use fibra_runtime::driver;

use self::registrations::Registrations;
use crate::readiness::Edge;
use crate::readiness::source::Source;
use crate::sys::Direction;
use crate::wait::RawWake;

#[path = "../../src/reactor/registrations.rs"]
mod registrations;

/// The descriptor of every source: the system is never asked about it.
pub(crate) const FD: RawFd = -1;

pub(crate) struct Handle {
    id: driver::Id,
    registrations: Registrations,
    /// What events come with: the tokens of all registrations ever made. Of std: the kernel's.
    tokens: Mutex<Vec<usize>>,
}

impl Handle {
    /// Each of loom's objects is made by its first use.
    pub(crate) fn new() -> Arc<Handle> {
        let handle = Handle {
            id: driver::Id::fresh(),
            registrations: Registrations::default(),
            tokens: Mutex::new(Vec::new()),
        };
        assert!(handle.registrations.is_empty() && !handle.is_closed());
        Arc::new(handle)
    }

    pub(crate) fn id(&self) -> driver::Id {
        self.id
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.registrations.is_closed()
    }

    pub(crate) fn register(self: &Arc<Self>, _fd: RawFd, source: &Arc<Source>) -> io::Result<Registration> {
        let token = self.registrations.insert(source);
        self.tokens.lock().unwrap().push(token);
        Ok(Registration { handle: Arc::clone(self), token })
    }

    /// Every source is said to be ready for that, as in a batch of events.
    pub(crate) fn dispatch(&self, direction: Direction) {
        let (tokens, mut wakes) = (self.tokens.lock().unwrap().clone(), Vec::new());
        {
            let entries = self.registrations.entries();
            for source in tokens.into_iter().filter_map(|token| entries.get(token)) {
                source.edge(self.id, Edge::new().ready(direction, true), |wake| wakes.push(wake));
            }
        }
        wakes.into_iter().for_each(RawWake::wake);
    }

    /// The end of the reactor.
    pub(crate) fn close(&self) {
        let mut wakes = Vec::new();
        for source in self.registrations.close() {
            source.abandon(|wake| wakes.push(wake));
        }
        wakes.into_iter().for_each(RawWake::wake);
    }
}

#[must_use = "as in `reactor.rs`"]
pub(crate) struct Registration {
    handle: Arc<Handle>,
    token: usize,
}

impl Registration {
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn cancel(self, _fd: RawFd) {
        self.handle.registrations.remove(self.token);
    }
}
