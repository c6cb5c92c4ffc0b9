//! One descriptor as the reactor sees it: its readiness, who waits for it, and where it is registered.
//!
//! **Registration** is lazy: a descriptor that never has to wait costs no `epoll_ctl`. The first wait registers it with
//! the reactor of the worker that waits, edge-triggered and for both directions at once, and it stays. A task is woken in good
//! time only by the reactor of its own worker: any other worker may be in a task that computes. So the reactor of each worker
//! hears of a descriptor while a task of that worker waits for it. A wait on another worker moves the descriptor there if nobody
//! waits for it, and else makes it [shared](crate::place). Registering reports what is ready already, so nothing that happens in
//! between is lost; the new registration is made before the old one is cancelled, so a move that fails leaves everything as it
//! was.
//!
//! Who is about to sleep has been told who hears of the descriptor, its [`Home`], and looks under the lock of the wait lists
//! whether that is still so. Reactors leave only while these lists are empty, and the home changes before their lock is released.
//!
//! **Waiting**: any number of tasks, in two lists of nodes on their own stacks. An edge wakes all of its direction, and if several
//! reactors hear of the descriptor, those of them that rely on the one that tells ([`Hearing`]). The two sides are ordered
//! by the lock of the lists: the reactor sets the word, then takes the lock and empties the list; the waiter takes the lock, looks at
//! the word, and only if it is clear links its node. Whoever comes second sees the first. A reactor that ends does the same with
//! all its sources, and leaves a mark that lets nobody sleep on one before it is known who else hears of it.
//!
//! ```text
//!  home:        NOWHERE ──attach──▶ one reactor ──attach elsewhere, while nobody waits──▶ another one
//!                                     │  ▲  └────attach elsewhere, while somebody waits──▶ several ──nobody else four times──▶ one
//!                  the end of one of them ▼  │ attach
//!                                   ABANDONED: nobody sleeps
//! ```
//!
//! Lock order: `place`, then the reactor's roster, then the wait lists. No system call but `epoll_ctl` is made under any
//! of them, and that only under `place`.

use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::time::Instant;

use fibra_runtime::driver;

use super::set::{Hearing, Home};
use super::{Edge, Readiness};
use crate::primitive::{AtomicU64, Ordering};
use crate::sys::Direction;
use crate::wait::list::{List, Node};
use crate::wait::{self, Asleep, Lock, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// See the [module](self). What a wait and its edge touch stands first and together: with the counts of the `Arc` before it one
/// cache line, if it begins with one.
#[repr(C)]
pub(crate) struct Source {
    readiness: Readiness,
    waiters: Lock<Waiters>,
    /// The [`Home`] that `place` is; changed under the lock of the lists, and read there by who is about to sleep. Read
    /// without, a stale value only costs the slow path.
    home: AtomicU64,
}

/// A place in the list, with the ear that its sleeper relies on.
pub(crate) type Link = Node<Cell<Home>>;

pub(crate) fn link() -> Link {
    Node::with(Cell::new(Home::NOWHERE))
}

struct Waiters {
    readers: List<Cell<Home>>,
    writers: List<Cell<Home>>,
}

impl Waiters {
    fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty()
    }

    fn of(&mut self, direction: Direction) -> &mut List<Cell<Home>> {
        match direction {
            Direction::Read => &mut self.readers,
            Direction::Write => &mut self.writers,
        }
    }

    #[inline(always)]
    fn hand_out(&mut self, edge: Edge, mut wakes: impl FnMut(RawWake)) {
        self.hand_out_each(edge, |list| {
            while let Some(wake) = list.pop_front() {
                wakes(wake);
            }
        });
    }

    /// Only those who rely on that reactor, or on any.
    #[cold]
    fn hand_out_to(&mut self, ear: Home, edge: Edge, mut wakes: impl FnMut(RawWake)) {
        let hears = |link: &Cell<Home>| link.get() == ear || link.get() == Home::NOWHERE;
        self.hand_out_each(edge, |list| list.pop_each(hears, &mut wakes));
    }

    /// Not a loop over the directions: it would not be unrolled, and this is done for each event.
    #[inline(always)]
    fn hand_out_each(&mut self, edge: Edge, mut hand_out: impl FnMut(&mut List<Cell<Home>>)) {
        if edge.wakes(Direction::Read) {
            hand_out(&mut self.readers);
        }
        if edge.wakes(Direction::Write) {
            hand_out(&mut self.writers);
        }
    }
}

impl Source {
    pub(crate) fn new() -> Source {
        Source {
            readiness: Readiness::new(),
            waiters: Lock::new(Waiters { readers: List::new(), writers: List::new() }),
            home: AtomicU64::new(Home::NOWHERE.number()),
        }
    }

    #[inline]
    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Notes an edge that reactor `by` has heard of, and hands out everyone that it wakes. They are to be woken when no lock is held.
    pub(crate) fn edge(&self, by: driver::Id, edge: Edge, wakes: impl FnMut(RawWake)) {
        self.readiness.edge(edge);
        let (by, mut waiters) = (Home::at(by), self.waiters.lock());
        if self.home() == by {
            return waiters.hand_out(edge, wakes);
        }
        waiters.hand_out_to(by, edge, wakes);
    }

    /// The same of an edge that concerns everyone.
    fn edge_for_all(&self, edge: Edge, wakes: impl FnMut(RawWake)) {
        self.readiness.edge(edge);
        self.waiters.lock().hand_out(edge, wakes);
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

    /// Notes that a reactor is gone that heard of the descriptor, and hands out everyone who waits, to find out who else does.
    pub(crate) fn abandon(&self, wakes: impl FnMut(RawWake)) {
        let waiters = self.waiters.lock();
        self.set_home(Home::ABANDONED);
        drop(waiters);
        self.edge_for_all(Edge::ALL, wakes);
    }

    /// True if a waiter must not sleep: there is something to try, or others may hear of the descriptor by now than those that it
    /// relies on. Under the lists' lock.
    fn rouses(&self, direction: Direction, relied_on: Home) -> bool {
        self.readiness.load().is_ready(direction) || self.home() != relied_on
    }

    /// Puts the task to sleep until an edge of that direction, unless there has been one already; if its worker's reactor alone
    /// hears of this descriptor, and nothing else is to be heeded.
    #[inline(always)]
    pub(crate) fn sleep_at_home(&self, direction: Direction) -> Option<Waking> {
        let (home, link) = (self.home(), link());
        let waiter = Waiter::new(self, direction, Hearing::one(home), &link);
        wait::sleep_by_driver(|here| home == Home::at(here), &waiter)
    }

    /// The same wherever the task is, and at most until the deadline.
    pub(crate) fn sleep(&self, direction: Direction, hearing: Hearing, deadline: Option<Instant>) -> Waking {
        let link = link();
        wait::sleep_or_fail(&Waiter::new(self, direction, hearing, &link), deadline)
    }

    #[inline(always)]
    pub(crate) fn home(&self) -> Home {
        // Relaxed: that the descriptor is registered is known from whoever stored it having called `epoll_ctl` before, and the
        // kernel's own order is enough for that. Whether a sleep may rely on it is looked at under the lock of the lists.
        Home::from_number(self.home.load(Ordering::Relaxed))
    }

    /// Changes who hears of the descriptor; `choose` is told whether nobody waits.
    pub(crate) fn settle(&self, choose: impl FnOnce(bool) -> Home) -> Home {
        let waiters = self.waiters.lock();
        let home = choose(waiters.is_empty());
        self.set_home(home);
        home
    }

    /// Under the lock of the lists.
    fn set_home(&self, home: Home) {
        // Relaxed: ordered by that lock, where it matters.
        self.home.store(home.number(), Ordering::Relaxed);
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
    hearing: Cell<Hearing>,
    /// In the source's list from an `after_asleep` that says `Stay` until an edge or `before_awake` takes it out; reached under
    /// the lock of the lists only. A `Link` or a `&Link`.
    link: N,
}

// SAFETY: the node is reached by other threads under the lock of the lists only, and in no list it goes where its owner
// goes.
unsafe impl<S: Send> Send for Waiter<S, Link> {}

impl<S: Deref<Target = Source>, N: Borrow<Link>> Waiter<S, N> {
    #[inline(always)]
    pub(crate) fn new(source: S, direction: Direction, hearing: Hearing, link: N) -> Waiter<S, N> {
        Waiter { source, direction, hearing: Cell::new(hearing), link }
    }

    /// Whose hearing its next sleep relies on. Any of them wakes it: who is to be woken may be on another worker by then.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn rely_on(&self, home: Home) {
        self.hearing.set(Hearing::all(home));
    }
}

impl<S: Deref<Target = Source>, N: Borrow<Link>> WaitStrategy for Waiter<S, N> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let (hearing, link) = (self.hearing.get(), self.link.borrow());
        let mut waiters = self.source.waiters.lock();
        if self.source.rouses(self.direction, hearing.home) {
            return Asleep::Rouse;
        }
        // SAFETY: the wake is used at most once, since only who takes the node out of the list hands it out; and either that has happened and
        // `before_awake` answers Served, or `before_awake` unlinks the node and the wake is dropped unused.
        let wake = unsafe { me.raw() };
        link.data().set(hearing.ear);
        // SAFETY: the node is a field of `self` or borrowed by it, so it stays in place until the sleep is over, and that is
        // after `before_awake` has unlinked it; the list's lock is held; the node is fresh or was unlinked, so it is in no list.
        unsafe { waiters.of(self.direction).push_back(link, wake) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // The edge has taken the node out, or it was not linked.
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        let mut waiters = self.source.waiters.lock();
        // SAFETY: the node was linked into this very list, or has been taken out of it by an edge; the lock is held.
        match unsafe { waiters.of(self.direction).remove(self.link.borrow()) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
