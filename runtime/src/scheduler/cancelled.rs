//! Tasks whose cancel flags a worker is to check, sent by cancellers on other threads.
//!
//! `home_worker.rs` has the rules: which canceller sends a task, and how long the task and the worker
//! stay alive for that. The push and the look at the
//! [`ParkState`](crate::scheduler::park_state::ParkState) that follows it are a store-load pair
//! with the worker's `begin_park` and its look in here, as for the inbox.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicBool, Mutex, Ordering};
use crate::tasks::header::TaskRef;

/// Queues tasks for a check of their cancel flags.
pub(crate) struct Cancelled {
    /// Some tasks are in there. Changed under the lock.
    any: AtomicBool,
    tasks: Mutex<Vec<TaskRef>>,
}

impl Cancelled {
    pub(crate) fn new() -> Self {
        Cancelled { any: AtomicBool::new(false), tasks: Mutex::new(Vec::new()) }
    }

    /// Sends a task.
    pub(crate) fn push(&self, task: TaskRef) {
        let mut tasks = self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        tasks.push(task);
        // SeqCst: the store of the pair.
        self.any.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // SeqCst: the load of the pair. On most machines it costs what a Relaxed one does.
        !self.any.load(Ordering::SeqCst)
    }

    /// Takes all tasks, in the order of the pushes. Called by the worker.
    pub(crate) fn take(&self) -> Vec<TaskRef> {
        let mut tasks = self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Relaxed: the lock orders it with the pushes.
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *tasks)
    }
}
