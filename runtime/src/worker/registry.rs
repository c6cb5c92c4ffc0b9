//! The tasks that are at home on one worker: entered at the first run, left at the end.
//!
//! For shutdown, and for reports of who is still there, which may come from other threads while the worker is stuck in
//! a task. Hence the lock; it is free but for such a report, and costs one locked instruction each way.

use std::sync::atomic::{AtomicUsize, Ordering};

use slab::Slab;

use crate::task::{Task, TaskRef};
use crate::wait::Lock;

pub(crate) struct Registry {
    tasks: Lock<Slab<TaskRef>>,
    /// How many there are, for placement; written under the lock, read without.
    load: AtomicUsize,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Registry { tasks: Lock::new(Slab::new()), load: AtomicUsize::new(0) }
    }

    /// Enters a task; the runtime's count of it is the registry's from here on.
    pub(crate) fn enter(&self, task: TaskRef) -> usize {
        let mut tasks = self.tasks.lock();
        let slot = tasks.insert(task);
        // Relaxed: a hint.
        self.load.store(tasks.len(), Ordering::Relaxed);
        slot
    }

    pub(crate) fn leave(&self, slot: usize) {
        let mut tasks = self.tasks.lock();
        tasks.remove(slot);
        // Relaxed: a hint.
        self.load.store(tasks.len(), Ordering::Relaxed);
        if tasks.is_empty() && tasks.capacity() > 1024 {
            tasks.shrink_to_fit();
        }
    }

    /// How many tasks are at home here.
    pub(crate) fn load(&self) -> usize {
        // Relaxed: a hint.
        self.load.load(Ordering::Relaxed)
    }

    /// Counted handles to all tasks.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        self.tasks.lock().iter().map(|(_, task)| Task::counted(*task)).collect()
    }
}
