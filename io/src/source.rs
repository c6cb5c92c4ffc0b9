//! One descriptor as the reactor sees it: its readiness, who waits for it, and where it is registered.
//!
//! **Registration** is lazy: a descriptor that never has to wait costs no `epoll_ctl`. The first wait registers it with
//! the reactor of the worker that waits, edge-triggered and for both directions at once, and it stays. When
//! [`MOVE_AFTER`] waits in a row come from other workers, it moves to the one that asked last; a wait at home starts
//! the count again, so a socket that two workers share does not wander. Registering reports what is ready already, so
//! nothing that happens in between is lost; the new registration is made before the old one is cancelled, so a move
//! that fails leaves everything as it was.
//!
//! **Waiting**: any number of tasks, in two lists of nodes on their own stacks. An edge wakes all of its direction. The
//! two sides are ordered by the lock of the lists: the reactor sets the word, then takes the lock and empties the
//! list; the waiter takes the lock, looks at the word, and only if it is clear links its node. Whoever comes second
//! sees the first. A reactor that ends does the same with all its sources, and leaves a mark that lets nobody sleep
//! on one before it is registered elsewhere.
//!
//! ```text
//!  home:      NOWHERE ──attach──▶ a reactor ──attach: it moves──▶ another one
//!                                    │  ▲
//!          its end, if it is still it ▼  │ attach
//!                                 ABANDONED: nobody sleeps
//!
//!  watched:   no ──watch: enters the vigil──▶ yes ──recheck: the vigil has let it go, the writers are woken──▶ no
//! ```
//!
//! **Looking again**: a wait for what the system does not tell enters the source with its reactor's
//! [`Vigil`](crate::vigil::Vigil), which has the writers look again at its next round.
//!
//! Lock order: `place`, then the reactor's roster or its vigil, then the wait lists. No system call but `epoll_ctl` is made under any
//! of them, and that only under `place`.

use std::borrow::Borrow;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use fibra_runtime::driver;

use crate::primitive::{AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::reactor::{Handle, Registration};
use crate::readiness::{Direction, Edge, Readiness};
use crate::vigil::Entered;
use crate::wait::list::{List, Node};
use crate::wait::{self, Asleep, Lock, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// So many waits in a row from other workers move a descriptor. A wait from afar costs a wake across threads, some
/// twenty times what a move costs; fewer would let a socket that changes hands once be moved twice.
const MOVE_AFTER: u32 = 4;
/// The `home` of a descriptor that is registered nowhere.
const NOWHERE: u64 = 0;
/// The `home` of a descriptor whose reactor is gone. Nobody may sleep before it is registered elsewhere.
const ABANDONED: u64 = u64::MAX;

/// See the [module](self). What a wait and its edge touch stands first and together: with the counts of the `Arc` before it one
/// cache line, if it begins with one.
#[repr(C)]
pub(crate) struct Source {
    readiness: Readiness,
    waiters: Lock<Waiters>,
    /// Number of the reactor in `place`, to be read without the lock. A stale value only costs the slow path, or
    /// counts one wait less: the descriptor is registered somewhere all the same.
    home: AtomicU64,
    /// Waits from other workers since the last one from home.
    visits: AtomicU32,
    /// It is in the list of a vigil.
    is_watched: AtomicBool,
    place: Mutex<Option<Registration>>,
}

struct Waiters {
    readers: List,
    writers: List,
}

impl Waiters {
    fn of(&mut self, direction: Direction) -> &mut List {
        match direction {
            Direction::Read => &mut self.readers,
            Direction::Write => &mut self.writers,
        }
    }
}

impl Source {
    pub(crate) fn new() -> Source {
        Source {
            readiness: Readiness::new(),
            waiters: Lock::new(Waiters { readers: List::new(), writers: List::new() }),
            home: AtomicU64::new(NOWHERE),
            visits: AtomicU32::new(0),
            is_watched: AtomicBool::new(false),
            place: Mutex::new(None),
        }
    }

    #[inline]
    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Notes an edge and hands out everyone that it wakes. They are to be woken when no lock is held.
    pub(crate) fn edge(&self, edge: Edge, mut wakes: impl FnMut(RawWake)) {
        self.readiness.edge(edge);
        let mut waiters = self.waiters.lock();
        for direction in [Direction::Read, Direction::Write] {
            if edge.wakes(direction) {
                while let Some(wake) = waiters.of(direction).pop_front() {
                    wakes(wake);
                }
            }
        }
    }

    /// Wakes everybody of one direction, by one who holds no lock: the edge of a source that no reactor knows.
    pub(crate) fn ring(&self, direction: Direction) {
        self.readiness.edge(Edge::new().ready(direction, true));
        // Mostly there is nobody, or one.
        let first = self.waiters.lock().of(direction).pop_front();
        if let Some(first) = first {
            first.wake();
            wait::wake_present(&self.waiters, |waiters| waiters.of(direction));
        }
    }

    /// Has the writers look again, of which the hand-out is as for an edge. For the vigil that has let the source go.
    pub(crate) fn recheck(&self, wakes: impl FnMut(RawWake)) {
        // Relaxed: one who enters after this is in the next round. One who found it set is woken by this, by way of the lock
        // of the lists, which `edge` takes next. A task looks once more under that lock before it links its node, and finds
        // it clear if it comes later. A future has linked its node before it enters; had `edge` taken the lock earlier than
        // that, it would have found it clear.
        self.is_watched.store(false, Ordering::Relaxed);
        self.edge(Edge::new().ready(Direction::Write, true), wakes);
    }

    /// Sees to it that who waits to write now looks again within [`RECHECK`](crate::op::RECHECK), also if nobody tells.
    pub(crate) fn watch(self: &Arc<Self>) {
        // Relaxed: see `recheck`.
        if self.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let place = self.place();
        let home = place.as_ref().map(Registration::handle);
        let first = match home.map(|home| (home, home.vigil().enter(self))) {
            Some((home, Entered::First)) => Some(Arc::clone(home)),
            Some((_, Entered::Later)) => None,
            // Who waits is told that the reactor is gone, and comes again when there is another one.
            Some((_, Entered::Closed)) | None => {
                // Relaxed: see `recheck`.
                self.is_watched.store(false, Ordering::Relaxed);
                None
            }
        };
        drop(place);
        if let Some(home) = first {
            home.unpark();
        }
    }

    /// Notes that the reactor `home` is gone, and hands out everyone who waits, to find another.
    pub(crate) fn abandon(&self, home: driver::Id, wakes: impl FnMut(RawWake)) {
        // Relaxed, both: ordered by the lock of the lists, which `edge` takes next and a waiter holds when it looks. If
        // the exchange fails, the descriptor has moved, and its new home will speak for it.
        let _ = self.home.compare_exchange(home.number(), ABANDONED, Ordering::Relaxed, Ordering::Relaxed);
        self.edge(Edge::ALL, wakes);
    }

    /// True if a waiter must not sleep: there is something to try, or nobody who would wake it. Under the lists' lock.
    fn rouses(&self, direction: Direction) -> bool {
        // Relaxed: see `abandon`.
        self.readiness.load().is_ready(direction) || self.home.load(Ordering::Relaxed) == ABANDONED
    }

    /// Puts the task to sleep until an edge of that direction, unless there has been one already; if its worker's reactor hears
    /// of this descriptor, and nothing else is to be heeded.
    #[inline(always)]
    pub(crate) fn sleep_at_home(&self, direction: Direction) -> Option<Waking> {
        let node = Node::new();
        wait::sleep_by_driver(|here| self.is_at_home(here), &Waiter::new(self, direction, &node))
    }

    /// The same wherever the task is, and at most until the deadline.
    pub(crate) fn sleep(&self, direction: Direction, deadline: Option<Instant>) -> Waking {
        let node = Node::new();
        wait::sleep_or_cancel(&Waiter::new(self, direction, &node), deadline)
    }

    /// The same for one that is to look again: within [`RECHECK`](crate::op::RECHECK) it is woken for that.
    pub(crate) fn sleep_watched(self: &Arc<Self>, direction: Direction, deadline: Option<Instant>) -> Waking {
        let node = Node::new();
        wait::sleep_or_cancel(&self.watched(direction, &node), deadline)
    }

    /// The first half of that.
    pub(crate) fn watched<'a>(
        self: &'a Arc<Self>,
        direction: Direction,
        node: &'a Node,
    ) -> Waiter<&'a Source, &'a Node> {
        self.watch();
        Waiter { needs_watch: true, ..Waiter::new(&**self, direction, node) }
    }

    /// True if the reactor `here` hears of this descriptor. Counts as a wait from home.
    #[inline]
    pub(crate) fn is_at_home(&self, here: driver::Id) -> bool {
        // Relaxed: the number is a hint. That the descriptor is registered is known from whoever stored it having
        // called `epoll_ctl` before, and the kernel's own order is enough for that.
        if self.home.load(Ordering::Relaxed) != here.number() {
            return false;
        }
        // Relaxed: a count that decides when to move, nothing else.
        if self.visits.load(Ordering::Relaxed) != 0 {
            self.visits.store(0, Ordering::Relaxed);
        }
        true
    }

    /// Sees to it that some live reactor hears of this descriptor, that of the caller's worker by preference. False, and nothing
    /// is done, where there is none.
    pub(crate) fn attach_here(self: &Arc<Self>, fd: RawFd) -> io::Result<bool> {
        if driver::current_id().is_some_and(|here| self.is_at_home(here)) {
            return Ok(true);
        }
        match driver::current::<Handle>() {
            Some(here) => self.attach(fd, &here).map(|()| true),
            None => Ok(false),
        }
    }

    /// The same, with `here` by preference.
    #[cold]
    pub(crate) fn attach(self: &Arc<Self>, fd: RawFd, here: &Arc<Handle>) -> io::Result<()> {
        let mut place = self.place();
        let Some(former) = place.take() else {
            *place = Some(self.settle(fd, here)?);
            return Ok(());
        };
        if !self.moves_from(former.handle(), here) {
            *place = Some(former);
            return Ok(());
        }
        match self.settle(fd, here) {
            Ok(registration) => {
                *place = Some(registration);
                former.cancel(fd);
                Ok(())
            }
            // The old home still hears of the descriptor: the move can wait.
            Err(_) if !former.handle().is_closed() => {
                *place = Some(former);
                Ok(())
            }
            Err(error) => {
                *place = Some(former);
                Err(error)
            }
        }
    }

    /// The same from where no reactor of ours is: any live one will do, `other` if there is none yet.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn attach_from_afar(
        self: &Arc<Self>,
        fd: RawFd,
        other: Option<&Arc<Handle>>,
    ) -> io::Result<()> {
        let mut place = self.place();
        if place.as_ref().is_some_and(|registration| !registration.handle().is_closed()) {
            return Ok(());
        }
        if let Some(other) = other.filter(|other| !other.is_closed()) {
            let registration = self.settle(fd, other)?;
            if let Some(former) = place.replace(registration) {
                former.cancel(fd);
            }
            // If it has closed meanwhile and did not see the source, then this sees that it has closed.
            if !other.is_closed() {
                return Ok(());
            }
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no reactor hears of this socket: make it in a task of a runtime with I/O, or poll it there, while that runs",
        ))
    }

    /// The live reactor that hears of this descriptor, if there is one.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn reactor(&self) -> Option<Arc<Handle>> {
        let place = self.place();
        place.as_ref().map(Registration::handle).filter(|handle| !handle.is_closed()).cloned()
    }

    /// Registers with `here` and makes it the home.
    fn settle(self: &Arc<Self>, fd: RawFd, here: &Arc<Handle>) -> io::Result<Registration> {
        let registration = here.register(fd, self)?;
        // Relaxed, both: see `is_at_home`.
        self.home.store(here.id().number(), Ordering::Relaxed);
        self.visits.store(0, Ordering::Relaxed);
        Ok(registration)
    }

    /// Counts a wait, from afar or from home; true if it is the one that moves the descriptor.
    fn moves_from(&self, home: &Handle, here: &Handle) -> bool {
        if home.is_closed() {
            return true;
        }
        // Relaxed: see `is_at_home`.
        !self.is_at_home(here.id()) && self.visits.fetch_add(1, Ordering::Relaxed) + 1 >= MOVE_AFTER
    }

    /// Deregisters. Called by the owner of `fd` before it closes it or gives it away, so nobody waits any more.
    pub(crate) fn detach(&self, fd: RawFd) {
        // Relaxed: the owner is alone by now, and what it was handed came with its own synchronisation.
        if self.home.load(Ordering::Relaxed) == NOWHERE {
            return;
        }
        if let Some(registration) = self.place().take() {
            registration.cancel(fd);
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Registration>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the reactor that this descriptor is registered with, zero if with none.
    #[cfg(test)]
    pub(crate) fn home(&self) -> u64 {
        self.home.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("readiness", &self.readiness)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// One sleep. The node of a future is a part of it, and pinned with it; that of a task lies on its stack beside it, so that
/// nothing but the node is known to anybody else, and the compiler keeps the rest in registers.
pub(crate) struct Waiter<S, N> {
    source: S,
    direction: Direction,
    /// It does not sleep while its source is in no vigil.
    needs_watch: bool,
    /// In the source's list from an `after_asleep` that says `Stay` until an edge or `before_awake` takes it out; reached under
    /// the lock of the lists only. A `Node` or a `&Node`.
    node: N,
}

// SAFETY: the node is reached by other threads under the lock of the lists only, and in no list it goes where its owner
// goes.
unsafe impl<S: Send> Send for Waiter<S, Node> {}

impl<S: Deref<Target = Source>, N: Borrow<Node>> Waiter<S, N> {
    pub(crate) fn new(source: S, direction: Direction, node: N) -> Waiter<S, N> {
        Waiter { source, direction, needs_watch: false, node }
    }
}

impl<S: Deref<Target = Source>, N: Borrow<Node>> WaitStrategy for Waiter<S, N> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut waiters = self.source.waiters.lock();
        // Relaxed: see `recheck`.
        let is_missed = self.needs_watch && !self.source.is_watched.load(Ordering::Relaxed);
        if is_missed || self.source.rouses(self.direction) {
            return Asleep::Rouse;
        }
        // SAFETY: the wake is used at most once, since only `pop_front` hands it out; and either that has happened and
        // `before_awake` answers Served, or `before_awake` unlinks the node and the wake is dropped unused.
        let wake = unsafe { me.raw() };
        // SAFETY: the node is a field of `self` or borrowed by it, so it stays in place until the sleep is over, and that is
        // after `before_awake` has unlinked it; the list's lock is held; the node is fresh or was unlinked, so it is in no list.
        unsafe { waiters.of(self.direction).push_back(self.node.borrow(), wake) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // The edge has taken the node out, or it was not linked.
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        let mut waiters = self.source.waiters.lock();
        // SAFETY: the node was linked into this very list, or has been taken out of it by an edge; the lock is held.
        match unsafe { waiters.of(self.direction).remove(self.node.borrow()) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
