//! The set of a scope's live children, and the wait for the last.
//!
//! ```text
//!   Children, in the frame of the scope          a child's key, in its own allocation
//!
//!   enter: one more is alive ◀────────────────── made
//!      …
//!   leave: one less is alive ◀────────────────── ended, as the very last act
//!      └── the last child serves the parent and unlocks. The set may be gone.
//!
//!   wait: no child is alive, or the parent waits in the queue
//!   cancel: marks the set, and returns the live children; a later child finds the mark
//! ```
//!
//! It is one state under one lock, and the unlocking store is the last touch of a child. The parent
//! leaves the frame only after it has taken the lock and found no child alive, hence after that
//! store; or after it was served by the last child, whose wake it waits for.

#![forbid(unsafe_code)]

use std::mem::offset_of;

use slab::Slab;

use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::Until;
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;
use crate::waiter::description::WaitDescription;

/// The children of one scope. Lies in the frame of the scope.
pub(crate) struct Children {
    queue: WaitQueue<State, ()>,
    /// The end of the runtime leaves the children alone: the parent waits for their results.
    shelters: bool,
    /// The id of the parent, for reports; 0 without a parent.
    owner: u64,
}

struct State {
    alive: Alive,
    /// Later children are cancelled as well.
    cancelled: bool,
    lost: Option<Lost>,
}

/// Why a child has no result, where its scope must not end as if it had one.
pub(crate) enum Lost {
    Panicked,
    /// No stack or no thread was left for it; with the report.
    NotStarted(String),
    /// The end of the runtime has cancelled it.
    Ended,
}

/// Children that have not ended, by key; the runtime's count keeps them.
struct Alive {
    /// Spare small scopes an allocation.
    first: [Option<TaskRef>; FEW],
    more: Slab<TaskRef>,
    count: usize,
}

const FEW: usize = 4;

impl Alive {
    fn insert(&mut self, task: TaskRef) -> usize {
        self.count += 1;
        match self.first.iter().position(Option::is_none) {
            Some(key) => {
                self.first[key] = Some(task);
                key
            }
            None => FEW + self.more.insert(task),
        }
    }

    fn remove(&mut self, key: usize) {
        self.count -= 1;
        match self.first.get_mut(key) {
            Some(place) => *place = None,
            None => _ = self.more.remove(key - FEW),
        }
    }

    fn iter(&self) -> impl Iterator<Item = TaskRef> {
        self.first.iter().copied().flatten().chain(self.more.iter().map(|(_, task)| *task))
    }
}

impl Children {
    /// The offset of the parent's id, for readers of memory.
    pub(crate) const OWNER: usize = offset_of!(Children, owner);

    pub(crate) const fn new(shelters: bool, owner: u64) -> Self {
        let state = State {
            alive: Alive { first: [None; FEW], more: Slab::new(), count: 0 },
            cancelled: false,
            lost: None,
        };
        Children { queue: WaitQueue::new(state), shelters, owner }
    }

    /// Returns true if the end of the runtime is to leave the children alone.
    pub(crate) fn shelters(&self) -> bool {
        self.shelters
    }

    /// Counts a child in. Returns its key, and true if it is to be cancelled.
    pub(crate) fn enter(&self, task: TaskRef) -> (usize, bool) {
        self.queue.with(|state, _| (state.alive.insert(task), state.cancelled))
    }

    /// Counts a child out, and wakes the parent for the last. The set may be gone after the call.
    pub(crate) fn leave(&self, key: usize) {
        self.queue.with(|state, waiters| {
            state.alive.remove(key);
            if state.alive.count == 0 {
                waiters.serve_front(0, |()| ());
            }
        });
    }

    /// Notes a child without a result, for the end of the scope.
    pub(crate) fn lose(&self, child: Lost) {
        // The report that is not kept is dropped without the lock.
        let _other = self.queue.with(|state, _| match child {
            // An error outranks the end of the runtime.
            Lost::Ended if state.lost.is_some() => Some(child),
            child => state.lost.replace(child),
        });
    }

    /// Waits until no child is alive. Returns false if a cancel came first.
    pub(crate) fn wait(&self, until: Until) -> bool {
        let until = until.described(const { &WaitDescription::new("scope") });
        self.queue.wait_until(0, until, |state| state.alive.count == 0)
    }

    /// Takes the note of a child without a result.
    pub(crate) fn take_lost(&self) -> Option<Lost> {
        self.queue.with(|state, _| state.lost.take())
    }

    /// Returns how many children are alive.
    pub(crate) fn alive(&self) -> usize {
        self.queue.with(|state, _| state.alive.count)
    }

    /// Marks the set, so that later children are cancelled, and returns the live ones.
    pub(crate) fn cancel(&self) -> Vec<Task> {
        self.queue.with(|state, _| {
            state.cancelled = true;
            state.alive.iter().map(Task::counted).collect()
        })
    }
}
