//! The set of a scope's live children, and the wait for the last.
//!
//! ```text
//!   Family, in the frame of the scope            a child's link, in its own allocation
//!
//!   enter: one more is alive ◀────────────────── made
//!      …
//!   leave: one less is alive ◀────────────────── ended, as the very last act
//!      └── the last child takes the wake of the parent and unlocks. The family may be gone.
//!
//!   enter: no child is alive, or the parent's wake stays here
//!   cancel: marks the set, and returns the live children; a later child finds the mark
//! ```
//!
//! It is one state under one lock, and the unlocking store is the last touch of a child. The parent
//! leaves the frame only after it has taken the lock and found no child alive, hence after that
//! store.

use std::cell::Cell;
use std::ptr::NonNull;
use std::task::Poll;

use crate::base::intrusive_list::{Link, Ring};
use crate::base::primitive::{AtomicUsize, Ordering};
use crate::base::spin_lock::Lock;
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;
use crate::waiter::kind::{RawWake, WakeHandle};
use crate::waiter::strategy::{Asleep, Flag, Waking};

/// Shared state of a scope and its children.
pub(crate) struct Family {
    state: Lock<State>,
    /// Children that are not counted out. Changes under the lock.
    alive: AtomicUsize,
    /// True if the parent cannot be unwound, whatever ends the children.
    shelters: bool,
}

struct State {
    /// Links of the children that are not counted out.
    children: Ring<Member>,
    /// True once the children were cancelled; later children are cancelled, too.
    cancelled: bool,
    parent: Option<RawWake>,
    /// An unjoined child without a result.
    lost: Option<Lost>,
}

/// Tells why a child has no result.
pub(crate) enum Lost {
    Panicked,
    /// The error in words.
    NotStarted(String),
    /// The end of the runtime has cancelled it.
    Ended,
}

/// Entry of a child in its scope.
pub(crate) struct Member {
    /// Valid until the child is counted out.
    family: NonNull<Family>,
    /// The child, once it is made.
    task: Cell<Option<TaskRef>>,
}

impl Member {
    /// Makes the entry of a child that is not made yet.
    pub(crate) fn of(family: &Family) -> Self {
        Member { family: NonNull::from(family), task: Cell::new(None) }
    }

    pub(crate) fn family(&self) -> NonNull<Family> {
        self.family
    }

    /// Returns the child, once it is made. Called by its runner.
    pub(crate) fn task(&self) -> Option<TaskRef> {
        self.task.get()
    }
}

impl Family {
    pub(crate) const fn new(shelters: bool) -> Self {
        let state = State { children: Ring::new(), cancelled: false, parent: None, lost: None };
        Family { state: Lock::new(state), alive: AtomicUsize::new(0), shelters }
    }

    /// Returns true if the end of the runtime is to leave the children alone.
    pub(crate) fn shelters(&self) -> bool {
        self.shelters
    }

    /// Counts a child in. Returns true if it is to be cancelled.
    ///
    /// # Safety
    /// The link is in no ring, and stays in place until [`leave`](Family::leave) takes it out. The task lives as long.
    pub(crate) unsafe fn enter(&self, child: &Link<Member>, task: TaskRef) -> bool {
        child.data().task.set(Some(task));
        let mut state = self.state.lock();
        // Relaxed, here and below: the lock orders it.
        self.alive.store(self.alive() + 1, Ordering::Relaxed);
        // SAFETY: the caller's contract; the ring is reached under this lock only.
        unsafe { state.children.push_back(child) };
        state.cancelled
    }

    /// Counts a child out. For the last child it returns the wake of the parent. After the call the
    /// set may be gone.
    ///
    /// # Safety
    /// The child has entered here.
    pub(crate) unsafe fn leave(&self, child: &Link<Member>) -> Option<RawWake> {
        let mut state = self.state.lock();
        // SAFETY: the caller's contract; the lock is held.
        unsafe { state.children.remove(child) };
        let alive = self.alive() - 1;
        self.alive.store(alive, Ordering::Relaxed);
        match alive {
            0 => state.parent.take(),
            _ => None,
        }
    }

    /// Notes that a child has no result, before it leaves.
    pub(crate) fn lose(&self, child: Lost) {
        let mut state = self.state.lock();
        // An error outranks the end of the runtime.
        let other = match child {
            Lost::Ended if state.lost.is_some() => Some(child),
            child => state.lost.replace(child),
        };
        drop(state);
        // The report that is not kept is dropped without the lock.
        drop(other);
    }

    /// Returns, once no child is alive, the child without a result, if any. The caller may then
    /// leave the frame.
    pub(crate) fn try_end(&self) -> Poll<Option<Lost>> {
        let mut state = self.state.lock();
        match self.alive() {
            0 => Poll::Ready(state.lost.take()),
            _ => Poll::Pending,
        }
    }

    /// Returns how many children are alive. Without the lock this orders nothing else.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }

    /// Marks the family as cancelled, and returns the live children.
    pub(crate) fn cancel(&self) -> Vec<Task> {
        let mut children: Vec<Task> = Vec::new();
        loop {
            // Room is made without the lock.
            let alive = self.alive();
            children.reserve(alive);
            let mut state = self.state.lock();
            if self.alive() <= children.capacity() {
                state.cancelled = true;
                // A child that is in the ring has not ended, so the runtime's count keeps it.
                state.children.for_each(|member| children.extend(member.task.get().map(Task::counted)));
                return children;
            }
        }
    }
}

/// Raised by the last child that leaves.
impl Flag for Family {
    const SPINS: bool = false;

    fn enter(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.state.lock();
        if self.alive() == 0 {
            return Asleep::Rouse;
        }
        // SAFETY: the wake is taken under this lock, and the strategy answers `Served` once it is.
        state.parent = Some(unsafe { me.raw() });
        Asleep::Stay
    }

    fn leave(&self, why: Waking) -> bool {
        // Notified, it has left no wake here: the last child has taken it, or none was left when it found none alive.
        why == Waking::Notified || self.state.lock().parent.take().is_none()
    }
}
