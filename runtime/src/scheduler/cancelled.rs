//! The tasks at whose marks a worker is to look, sent by those who have marked them on other threads.
//!
//! Who sends a task, and how long it and the worker stay for that, is said at the head of `task/marks.rs`. The push and the look at the
//! [`ParkState`](crate::scheduler::park_state::ParkState) that follows it are a store-load pair with the worker's `begin_park` and its look in
//! here, as with the inbox.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicBool, Mutex, Ordering};
use crate::tasks::header::TaskRef;

pub(crate) struct Marked {
    /// Some are in there. Changed under the lock.
    any: AtomicBool,
    tasks: Mutex<Vec<TaskRef>>,
}

impl Marked {
    pub(crate) fn new() -> Self {
        Marked { any: AtomicBool::new(false), tasks: Mutex::new(Vec::new()) }
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

    /// Takes all, in the order of the pushes. By the worker.
    pub(crate) fn take(&self) -> Vec<TaskRef> {
        let mut tasks = self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Relaxed: the lock orders it with the pushes.
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *tasks)
    }
}
