//! One mio poll for each worker, behind the runtime's driver seam.
//!
//! ```text
//!   worker ── owns ──▶ Reactor ── park: epoll_wait, then for each event ─┐
//!                         │                                              ▼
//!   sockets ─ share ─▶ Handle { registry, registrations of sources } ── token ──▶ Source::edge ──▶ Ready
//! ```
//!
//! The [`Reactor`] is the worker's alone. The [`Handle`] is what sockets find in the runtime's
//! typed slot; it outlives the reactor as long as a socket is registered with it. What becomes of a
//! token whose descriptor has left, and of sources whose reactor ends, is in `registrations.rs`.
//!
//! A worker that parks for less than two milliseconds waits with `ppoll(2)` on the epoll descriptor
//! itself, because mio rounds up to whole milliseconds. A longer park is cut to whole milliseconds
//! and the rest left to the next one: an early return is a spurious one, which the seam allows. So
//! a timer is late by the kernel's slack only, and the extra system call is paid once for each
//! timer that expires, never for an event.
//!
//! Rejected: a pointer as token (tokio's way). It saves the registrations's lock, which is taken
//! once for each batch of events, and costs deferred release and `unsafe`.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra_runtime::driver::{self, Driver, Factory, Parts, Ready, Unpark};
use fibra_runtime::limit::Refusal;
use fibra_runtime::wait;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};

use self::registrations::Registrations;
use crate::network::Network;
use crate::readiness::Edge;
use crate::readiness::source::Source;
use crate::sys;
use crate::sys::Direction;

mod registrations;
pub(crate) mod simulated;
#[cfg(test)]
mod tests;

/// Events fetched by one park. More of them stay with the kernel until the next.
///
/// Few, so that what is touched to hear an event (the source, the node on the sleeper's stack, the
/// task) is still in the cache when the task runs: with 1024 events of 1000 busy connections each
/// of these was fetched twice, and the user's share of the time was half as much again.
const EVENTS: usize = 64;
/// The token of the unparker. No key of the registrations comes near it.
const UNPARK: Token = Token(usize::MAX);
/// Parks at least this long are left to mio, cut to whole milliseconds.
const COARSE: Duration = Duration::from_millis(2);

/// What every descriptor is registered for, once and for all: both directions, and where the system
/// can tell, urgent data, which makes a short read prove nothing.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Makes the reactor of each worker. What [`driver`](crate::driver) returns.
pub(crate) struct ReactorFactory {
    /// The network of a simulation.
    pub(crate) network: Option<Arc<dyn Network>>,
}

impl Factory for ReactorFactory {
    fn make(&self) -> io::Result<Parts> {
        let reactor = Reactor::new(self.network.clone())?;
        let handle = Arc::clone(&reactor.handle);
        Ok(Parts { id: handle.id, driver: Box::new(reactor), handle })
    }
}

/// A worker's own half: the poll and the events of one park.
pub(crate) struct Reactor {
    poll: Poll,
    events: Events,
    unparker: Arc<Unparker>,
    handle: Arc<Handle>,
}

impl Reactor {
    /// Makes the reactor of a worker whose sockets are those of `network`, if that is given.
    ///
    /// # Errors
    /// When there are no descriptors for it; the error names the limit.
    pub(crate) fn new(network: Option<Arc<dyn Network>>) -> Result<Reactor, Refusal> {
        Self::open(network).map_err(|error| Refusal::of_descriptor("a reactor", error))
    }

    fn open(network: Option<Arc<dyn Network>>) -> io::Result<Reactor> {
        let poll = Poll::new()?;
        let unparker = Arc::new(Unparker(mio::Waker::new(poll.registry(), UNPARK)?));
        let registry = poll.registry().try_clone()?;
        let registrations = Registrations::default();
        let handle = Handle { id: driver::Id::fresh(), registry, registrations, network };
        Ok(Reactor { poll, events: Events::with_capacity(EVENTS), unparker, handle: Arc::new(handle) })
    }

    /// What sockets register with.
    #[cfg(test)]
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Fetches the events of at most `timeout`.
    fn fetch(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let whole = match timeout {
            Some(brief) if !brief.is_zero() && brief < COARSE => {
                let waited = sys::wait_readable_briefly(&self.poll, brief)?;
                if waited { Some(Duration::ZERO) } else { timeout }
            }
            Some(long) if !long.is_zero() => {
                Some(Duration::from_millis(u64::try_from(long.as_millis()).unwrap_or(u64::MAX)))
            }
            other => other,
        };
        self.poll.poll(&mut self.events, whole)
    }

    /// Reports each event to its source, and collects the waiters to wake.
    fn dispatch(&self, ready: &mut Ready) {
        if self.events.is_empty() {
            return;
        }
        let entries = self.handle.registrations.entries();
        for event in &self.events {
            if let Some(source) = entries.get(event.token().0) {
                source.edge(self.handle.id, edge_of(event), |wake| ready.push(wake));
            }
        }
    }
}

impl Driver for Reactor {
    fn park(&mut self, timeout: Option<Duration>, ready: &mut Ready) -> io::Result<()> {
        if let Some(network) = &self.handle.network {
            network.step()?;
        }
        // A mere look among tasks that use no sockets is spared the system call; an unpark that
        // came stays for the next park.
        if timeout == Some(Duration::ZERO) && self.handle.registrations.is_empty() {
            return Ok(());
        }
        match self.fetch(timeout) {
            Ok(()) => self.dispatch(ready),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.unparker) as Arc<dyn Unpark>
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.handle.network.as_ref()?.next_arrival()
    }
}

impl Drop for Reactor {
    /// Ends the edges from this reactor: waiters retry, and find another reactor.
    fn drop(&mut self) {
        let mut wakes = Vec::new();
        for source in self.handle.registrations.close() {
            source.abandon(|wake| wakes.push(wake));
        }
        wait::wake_each(wakes);
    }
}

/// Fails as a registration would, if no reactor can hear of the descriptor.
pub(crate) fn check(fd: RawFd) -> io::Result<()> {
    Poll::new()?.registry().register(&mut SourceFd(&fd), UNPARK, INTEREST)
}

/// The part of an event that the readiness word knows.
fn edge_of(event: &mio::event::Event) -> Edge {
    let broken = event.is_error();
    Edge::new()
        .ready(Direction::Read, event.is_readable() || event.is_read_closed() || broken)
        .ready(Direction::Write, event.is_writable() || event.is_write_closed() || broken)
        .hung_up(event.is_read_closed() || event.is_write_closed() || broken)
        .urgent(event.is_priority())
}

/// Ends a park. The kernel keeps the event, so an early one ends the next park.
struct Unparker(mio::Waker);

impl Unpark for Unparker {
    fn unpark(&self) {
        // It fails only if the descriptor is invalid, which it is not while it is owned here. A
        // lost wake-up would be a hang without an explanation, so this panics.
        self.0.wake().expect("the unparker's descriptor is open");
    }
}

/// The shared half: where sockets register, from any thread.
pub(crate) struct Handle {
    /// What the runtime knows this reactor by.
    id: driver::Id,
    registry: Registry,
    registrations: Registrations,
    /// The network of a simulation.
    network: Option<Arc<dyn Network>>,
}

impl Handle {
    pub(crate) fn network(&self) -> Option<&Arc<dyn Network>> {
        self.network.as_ref()
    }

    pub(crate) fn id(&self) -> driver::Id {
        self.id
    }

    /// True once the reactor is gone: no edge will come from here.
    pub(crate) fn is_closed(&self) -> bool {
        self.registrations.is_closed()
    }

    /// Registers a descriptor. If it is ready already, the next park hears of it.
    pub(crate) fn register(self: &Arc<Self>, fd: RawFd, source: &Arc<Source>) -> io::Result<Registration> {
        let token = Token(self.registrations.insert(source));
        let registration = Registration { handle: Arc::clone(self), token };
        let registered = match self.registry.register(&mut SourceFd(&fd), token, INTEREST) {
            // Left behind by an owner that was forgotten, or whose number was another file as it left. It hears again now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.registry.reregister(&mut SourceFd(&fd), token, INTEREST)
            }
            outcome => outcome,
        };
        match registered {
            Ok(()) => Ok(registration),
            Err(error) => {
                registration.forget();
                Err(error)
            }
        }
    }
}

/// Where a descriptor is registered. To be given back with [`cancel`](Registration::cancel) before
/// it is closed.
#[must_use = "a registration keeps its source alive until it is cancelled"]
pub(crate) struct Registration {
    handle: Arc<Handle>,
    token: Token,
}

impl Registration {
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Deregisters `fd`, the very one that was registered.
    pub(crate) fn cancel(self, fd: RawFd) {
        // An error means that the number was closed, or made another file, by other code. The
        // registration has gone with the file then, unless that is open elsewhere: its events find
        // no source, or a later one: see `registrations.rs`.
        let _ = self.handle.registry.deregister(&mut SourceFd(&fd));
        self.forget();
    }

    fn forget(self) {
        self.handle.registrations.remove(self.token.0);
    }
}
