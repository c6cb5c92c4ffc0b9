//! A descriptor as its waiters and its reactors see it: readiness, wait lists, and its reactors.
//!
//! **Waiting.** Any number of tasks wait in two lists, one for each direction, whose nodes lie on
//! their stacks. An edge wakes all waiters of its direction. Where several reactors know the
//! descriptor, an edge wakes the waiters that rely on the reactor that reports it ([`Reliance`]),
//! so that each reactor wakes the tasks of its own worker.
//!
//! The lock of the lists orders both sides. The reactor sets the readiness word, then takes the
//! lock and empties the list. The waiter takes the lock, reads the word, and links its node only if
//! the word is clear. The second of the two sees the first.
//!
//! **Reactors.** A waiter learns before its sleep which set of reactors knows the descriptor, as a [`SetId`],
//! and compares it again under the lock. A reactor leaves the set only while the lists are empty, and the id
//! changes before the lock is released. A reactor that ends sets `ABANDONED` and wakes all waiters: no task
//! sleeps until the set is known again. The set itself is kept above the reactors, in
//! `waiting/registration.rs`.
//!
//! ```text
//!  set_id:  NOWHERE ──attach──▶ one reactor ──attach elsewhere, without waiters──▶ another one
//!                                 │  ▲  └────attach elsewhere, while a task waits──▶ several ──four waits without others──▶ one
//!              the end of one of them ▼  │ attach
//!                               ABANDONED: no task sleeps
//! ```
//!
//! Lock order: the set of registrations, then the registrations of a reactor, then the wait lists.
//! The only system call under any of them is `epoll_ctl`, under the first.

use std::borrow::Borrow;
use std::cell::Cell;
use std::mem::offset_of;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::time::Instant;

use fibra_runtime::driver;

use super::set::{Reliance, SetId};
use super::{Edge, Readiness};
use crate::primitive::{AtomicU64, Ordering};
use crate::sys::Direction;
use crate::wait::list::{List, Node};
use crate::wait::{
    self, Asleep, EndedBy, Lock, RawWake, WaitDescription, WaitRecord, WaitStrategy, WakeHandle, Waking,
    Withdrawal,
};

/// Holds the state of one descriptor that a wait and an edge touch; with the counts of its `Arc` it
/// is one cache line.
#[repr(C)]
pub(crate) struct Source {
    readiness: Readiness,
    /// The descriptor lies beside the lock, for reports; -1 if there is none.
    waiters: Lock<Waiters, RawFd>,
    /// The [`SetId`] of the registrations. Changed under the lock of the lists, and compared there
    /// by a waiter before it sleeps. A stale value read without the lock only costs the slow path.
    set_id: AtomicU64,
}

static READABLE: WaitDescription = description(Direction::Read);
static WRITABLE: WaitDescription = description(Direction::Write);

const fn description(direction: Direction) -> WaitDescription {
    let offset = offset_of!(Source, waiters) + Lock::<Waiters, RawFd>::BESIDE;
    WaitDescription::new("descriptor").ended_by(EndedBy::Outside).descriptor(offset as isize, direction)
}

/// A node of a wait list, with the reactor that its waiter relies on.
pub(crate) type Link = Node<Cell<SetId>>;

pub(crate) fn link() -> Link {
    Node::with(Cell::new(SetId::NOWHERE))
}

struct Waiters {
    readers: List<Cell<SetId>>,
    writers: List<Cell<SetId>>,
}

impl Waiters {
    fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty()
    }

    fn of(&mut self, direction: Direction) -> &mut List<Cell<SetId>> {
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

    /// Only waiters that rely on that reactor, or on any.
    #[cold]
    fn hand_out_to(&mut self, woken_by: SetId, edge: Edge, mut wakes: impl FnMut(RawWake)) {
        let hears = |link: &Cell<SetId>| link.get() == woken_by || link.get() == SetId::NOWHERE;
        self.hand_out_each(edge, |list| list.pop_each(hears, &mut wakes));
    }

    /// Not a loop over the directions: it would not be unrolled, and this is done for each event.
    #[inline(always)]
    fn hand_out_each(&mut self, edge: Edge, mut hand_out: impl FnMut(&mut List<Cell<SetId>>)) {
        if edge.wakes(Direction::Read) {
            hand_out(&mut self.readers);
        }
        if edge.wakes(Direction::Write) {
            hand_out(&mut self.writers);
        }
    }
}

impl Source {
    pub(crate) fn new(fd: RawFd) -> Source {
        Source {
            readiness: Readiness::new(),
            waiters: Lock::beside(fd, Waiters { readers: List::new(), writers: List::new() }),
            set_id: AtomicU64::new(SetId::NOWHERE.number()),
        }
    }

    #[inline]
    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Notes an edge that reactor `by` has heard of, and hands out everyone that it wakes. They are
    /// to be woken when no lock is held.
    pub(crate) fn edge(&self, by: driver::Id, edge: Edge, wakes: impl FnMut(RawWake)) {
        self.readiness.edge(edge);
        let (by, mut waiters) = (SetId::at(by), self.waiters.lock());
        if self.set_id() == by {
            return waiters.hand_out(edge, wakes);
        }
        waiters.hand_out_to(by, edge, wakes);
    }

    /// Wakes all waiters of one direction, for a source that no reactor knows. The caller holds no lock.
    pub(crate) fn notify(&self, direction: Direction) {
        self.readiness.edge(Edge::new().ready(direction, true));
        let present = self.waiters.lock().of(direction).len();
        for _ in 0..present {
            // Another statement than the wake, which takes no lock with it.
            let next = self.waiters.lock().of(direction).pop_front();
            next.into_iter().for_each(RawWake::wake);
        }
    }

    /// Notes that a reactor of the descriptor has ended, and hands out all waiters, to find another.
    pub(crate) fn abandon(&self, wakes: impl FnMut(RawWake)) {
        let waiters = self.waiters.lock();
        self.store_set_id(SetId::ABANDONED);
        drop(waiters);
        self.readiness.edge(Edge::ALL);
        self.waiters.lock().hand_out(Edge::ALL, wakes);
    }

    /// True if a waiter must not sleep: there is something to try, or others may hear of the
    /// descriptor by now than those that it relies on. Under the lists' lock.
    fn rouses(&self, direction: Direction, relied_on: SetId) -> bool {
        self.readiness.load().is_ready(direction) || self.set_id() != relied_on
    }

    /// Puts the task to sleep until an edge of that direction, unless there has been one already;
    /// if its worker's reactor alone hears of this descriptor, and nothing else is to be heeded.
    #[inline(always)]
    pub(crate) fn sleep_on_own_worker(&self, direction: Direction) -> Option<Waking> {
        let (set_id, link) = (self.set_id(), link());
        let record = self.record(direction);
        let waiter = Waiter::new(self, direction, Reliance::one(set_id), &link).recorded(&record);
        wait::sleep_by_driver(|here| set_id == SetId::at(here), &waiter)
    }

    /// Puts the caller to sleep on any worker, at most until the deadline.
    pub(crate) fn sleep(
        &self,
        direction: Direction,
        reliance: Reliance,
        deadline: Option<Instant>,
    ) -> Waking {
        let link = link();
        let record = self.record(direction);
        wait::sleep_or_fail(&Waiter::new(self, direction, reliance, &link).recorded(&record), deadline)
    }

    #[inline(always)]
    fn record(&self, direction: Direction) -> WaitRecord<&Source> {
        let description = match direction {
            Direction::Read => &READABLE,
            Direction::Write => &WRITABLE,
        };
        WaitRecord::new(description, self)
    }

    #[inline(always)]
    pub(crate) fn set_id(&self) -> SetId {
        // Relaxed: the storing thread has called `epoll_ctl` before, and the kernel's own order is
        // enough for that. Whether a sleep may rely on it is decided under the lock of the lists.
        SetId::from_number(self.set_id.load(Ordering::Relaxed))
    }

    /// Changes the reactors of the descriptor; tells `choose` if there are no waiters.
    pub(crate) fn settle(&self, choose: impl FnOnce(bool) -> SetId) -> SetId {
        let waiters = self.waiters.lock();
        let set_id = choose(waiters.is_empty());
        self.store_set_id(set_id);
        set_id
    }

    /// Under the lock of the lists.
    fn store_set_id(&self, set_id: SetId) {
        // Relaxed: ordered by that lock, where it matters.
        self.set_id.store(set_id.number(), Ordering::Relaxed);
    }
}

/// One sleep. The node of a future is a part of it, and pinned with it. The node of a task lies on
/// its stack beside it, so that other threads know the node alone, and the compiler keeps the rest
/// in registers.
pub(crate) struct Waiter<S, N> {
    source: S,
    direction: Direction,
    reliance: Cell<Reliance>,
    record: *const WaitRecord,
    /// In the source's list from an `after_asleep` that says `Stay` until an edge or `before_awake`
    /// takes it out; reached under the lock of the lists only. A `Link` or a `&Link`.
    link: N,
}

// SAFETY: the node is reached by other threads under the lock of the lists only, and in no list it
// goes where its owner goes.
unsafe impl<S: Send> Send for Waiter<S, Link> {}

impl<S: Deref<Target = Source>, N: Borrow<Link>> Waiter<S, N> {
    #[inline(always)]
    pub(crate) fn new(source: S, direction: Direction, reliance: Reliance, link: N) -> Waiter<S, N> {
        Waiter { source, direction, reliance: Cell::new(reliance), record: WaitRecord::UNKNOWN, link }
    }

    /// Names the record of the sleep, which lies beside the waiter.
    #[inline(always)]
    pub(crate) fn recorded(self, record: &WaitRecord<&Source>) -> Waiter<S, N> {
        Waiter { record: record.address(), ..self }
    }

    /// Sets what the next sleep relies on. An edge of any reactor wakes it, since a future may be
    /// polled on another worker.
    pub(crate) fn rely_on(&self, set_id: SetId) {
        self.reliance.set(Reliance::all(set_id));
    }
}

impl<S: Deref<Target = Source>, N: Borrow<Link>> WaitStrategy for Waiter<S, N> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let (reliance, link) = (self.reliance.get(), self.link.borrow());
        let mut waiters = self.source.waiters.lock();
        if self.source.rouses(self.direction, reliance.set_id) {
            return Asleep::Rouse;
        }
        // SAFETY: the wake is used at most once, since only the thread that unlinks the node hands it out;
        // and either that has happened and `before_awake` answers Served, or `before_awake` unlinks the node
        // and the wake is dropped unused.
        let wake = unsafe { me.raw() };
        link.data().set(reliance.woken_by);
        // SAFETY: the node is a field of `self` or borrowed by it, so it stays in place until the
        // sleep is over, and that is after `before_awake` has unlinked it; the list's lock is held;
        // the node is fresh or was unlinked, so it is in no list.
        unsafe { waiters.of(self.direction).push_back(link, wake) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // The edge has taken the node out, or it was not linked.
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        let mut waiters = self.source.waiters.lock();
        // SAFETY: the node was linked into this very list, or has been taken out of it by an edge;
        // the lock is held.
        match unsafe { waiters.of(self.direction).remove(self.link.borrow()) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    #[inline(always)]
    fn record(&self) -> *const WaitRecord {
        self.record
    }
}
