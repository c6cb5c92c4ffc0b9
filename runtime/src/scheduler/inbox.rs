//! The inbox of a worker: tasks bound to it that other threads woke or spawned.
//!
//! ```text
//!              push: by any thread
//!   head ─────▶ the last that was pushed ──▶ … ──▶ the first ──▶ null
//!              take: by the worker, all at once, and then the other way about
//! ```
//!
//! A Treiber stack, threaded through the tasks, so that a push is one compare-exchange and
//! allocates nothing. The only taker takes all, so there is no ABA problem: a push links its task
//! before whatever the head shows at that moment, even a head that returned. Only the thread that
//! was told to queue a task pushes it, and no other thread does before the worker has taken it.
//!
//! The push and the look at the [`ParkState`](crate::scheduler::park_state::ParkState) that follows it are a store-load pair with
//! the worker's `begin_park` and its look in here; the proof is there.

#![forbid(unsafe_code)]

use std::ptr;

use crate::base::primitive::{AtomicPtr, Ordering};
use crate::tasks::header::{Header, TaskRef};

pub(crate) struct Inbox(AtomicPtr<Header>);

impl Inbox {
    pub(crate) const fn new() -> Self {
        Inbox(AtomicPtr::new(ptr::null_mut()))
    }

    /// Pushes a task that the caller was told to queue.
    pub(crate) fn push(&self, task: TaskRef) {
        // Relaxed: nothing behind it is looked at; the exchange decides whether it still is the head.
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            task.set_next(TaskRef::from_ptr(head));
            // SeqCst: the store of the pair. As a Release it publishes the link, and what was done to the task, to the
            // Acquire in `take`.
            match self.0.compare_exchange_weak(head, task.as_ptr(), Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // SeqCst: the load of the pair. On most machines it costs what a Relaxed one does.
        self.0.load(Ordering::SeqCst).is_null()
    }

    /// Takes everything, in the order of the pushes, and hands each task to `each`. By the worker.
    pub(crate) fn take(&self, mut each: impl FnMut(TaskRef)) {
        // Acquire: pairs with the Release in `push`. The pushes below the top are read-modify-writes that carry the
        // Releases of those before them on.
        let mut rest = TaskRef::from_ptr(self.0.swap(ptr::null_mut(), Ordering::Acquire));
        let mut ordered = None;
        while let Some(task) = rest {
            rest = task.next();
            task.set_next(ordered);
            ordered = Some(task);
        }
        while let Some(task) = ordered {
            // Read first: once it is handed over the task may be pushed again.
            ordered = task.next();
            each(task);
        }
    }
}
