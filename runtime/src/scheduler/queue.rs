//! The queues of ready tasks; the only file that names `crossbeam_deque`.
//!
//! | queue | pushed by | taken by |
//! | --- | --- | --- |
//! | [`Local`] | its worker | its worker |
//! | `Inbox`, see `inbox.rs` | any thread | its worker, all at once |
//! | [`Stealable`] | its worker | its worker, thieves |
//! | [`Shared`] | any thread | any worker |
//!
//! The first two are threaded through `Header::next`: a task is in one queue at a time, so they never allocate.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::iter;

use crossbeam_deque::{Injector, Steal, Stealer, Worker};

use crate::tasks::header::TaskRef;

/// Queues the ready tasks bound to this worker, first in, first out; without atomics.
pub(crate) struct Local {
    head: Cell<Option<TaskRef>>,
    /// The last one, while there is a first.
    tail: Cell<Option<TaskRef>>,
    len: Cell<usize>,
}

impl Local {
    pub(crate) fn new() -> Self {
        Local { head: Cell::new(None), tail: Cell::new(None), len: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Returns the task that the next `pop` takes.
    #[inline]
    pub(crate) fn peek(&self) -> Option<TaskRef> {
        self.head.get()
    }

    #[inline]
    pub(crate) fn push(&self, task: TaskRef) {
        task.set_next(None);
        self.len.set(self.len.get() + 1);
        match (self.head.get(), self.tail.replace(Some(task))) {
            (Some(_), Some(last)) => last.set_next(Some(task)),
            _ => self.head.set(Some(task)),
        }
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<TaskRef> {
        let task = self.head.get()?;
        self.head.set(task.next());
        self.len.set(self.len.get() - 1);
        Some(task)
    }

    /// Returns the tasks, in the order of the queue.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskRef> {
        iter::successors(self.head.get(), |task| task.next())
    }

    /// Takes the task at that index; in linear time, for simulations.
    pub(crate) fn take(&self, index: usize) -> Option<TaskRef> {
        let Some(before) = index.checked_sub(1) else { return self.pop() };
        let before = self.iter().nth(before)?;
        let task = before.next()?;
        before.set_next(task.next());
        if task.next().is_none() {
            self.tail.set(Some(before));
        }
        self.len.set(self.len.get() - 1);
        Some(task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.get().is_none()
    }

    /// Marks the present end of the queue.
    pub(crate) fn mark(&self) -> Mark {
        Mark { last: self.head.get().and(self.tail.get()), len: self.len.get() }
    }

    /// Moves the tasks pushed since that mark to the front. Nothing was popped since.
    ///
    /// Returns how many they are.
    pub(crate) fn bring_forward(&self, mark: Mark) -> usize {
        // The queue becomes a ring for a moment, and opens again behind the mark.
        if let (Some(last), Some(tail)) = (mark.last, self.tail.get()) {
            tail.set_next(self.head.get());
            self.head.set(last.next());
            last.set_next(None);
            self.tail.set(mark.last);
        }
        self.len.get() - mark.len
    }
}

/// Marks the end of a [`Local`] at some moment.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    last: Option<TaskRef>,
    len: usize,
}

/// Queues the unstarted and migratable tasks of one worker.
pub(crate) enum Stealable {
    /// Of the only worker: there are no thieves, and no atomics are needed.
    Alone(Local),
    Open(Worker<TaskRef>),
}

impl Stealable {
    /// Makes the queue of one worker of that many.
    pub(crate) fn of(workers: usize) -> Self {
        if workers == 1 { Stealable::Alone(Local::new()) } else { Stealable::Open(Worker::new_fifo()) }
    }

    pub(crate) fn thief(&self) -> Thief {
        match self {
            Stealable::Alone(_) => Thief(Worker::new_fifo().stealer()),
            Stealable::Open(queue) => Thief(queue.stealer()),
        }
    }

    #[inline]
    pub(crate) fn push(&self, task: TaskRef) {
        match self {
            Stealable::Alone(queue) => queue.push(task),
            Stealable::Open(queue) => queue.push(task),
        }
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<TaskRef> {
        match self {
            Stealable::Alone(queue) => queue.pop(),
            Stealable::Open(queue) if queue.is_empty() => None,
            Stealable::Open(queue) => queue.pop(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Stealable::Alone(queue) => queue.len(),
            Stealable::Open(queue) => queue.len(),
        }
    }
}

/// Steals from a [`Stealable`]: its thieves' end.
pub(crate) struct Thief(Stealer<TaskRef>);

impl Thief {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Moves about half of the tasks into `into`, 32 at most. True if any came.
    pub(crate) fn steal_half(&self, into: &Stealable) -> bool {
        match into {
            Stealable::Alone(_) => false,
            Stealable::Open(queue) => retry(|| self.0.steal_batch(queue)).is_some(),
        }
    }
}

/// The most tasks that a worker takes from outside at once.
const LOT: usize = 32;

/// Queues tasks that any worker may take.
pub(crate) struct Shared(Injector<TaskRef>);

impl Shared {
    pub(crate) fn new() -> Self {
        Shared(Injector::new())
    }

    pub(crate) fn push(&self, task: TaskRef) {
        self.0.push(task);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn pop(&self) -> Option<TaskRef> {
        retry(|| self.0.steal())
    }

    /// Moves about half of the tasks into `into`, 32 at most. True if any came.
    pub(crate) fn steal_batch(&self, into: &Stealable) -> bool {
        self.steal_up_to(LOT, into)
    }

    /// Moves one worker's share, of so many workers, into `into`. Returns true if any task came.
    pub(crate) fn steal_share(&self, workers: usize, into: &Stealable) -> bool {
        self.steal_up_to((self.len() / workers).clamp(1, LOT), into)
    }

    fn steal_up_to(&self, most: usize, into: &Stealable) -> bool {
        match into {
            Stealable::Alone(queue) => {
                let taken = std::iter::from_fn(|| self.pop()).take(most);
                taken.map(|task| queue.push(task)).count() > 0
            }
            Stealable::Open(queue) => retry(|| self.0.steal_batch_with_limit(queue, most)).is_some(),
        }
    }
}

/// `Retry` means that another thief took a task at the same moment, so the retries end.
fn retry<T>(mut attempt: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match attempt() {
            Steal::Success(value) => return Some(value),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
