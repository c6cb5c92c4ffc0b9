//! The registry of one worker: tasks enter at their first run and leave at their end.
//!
//! Shutdown and reports read it, also from other threads while the worker is stuck in a task. Hence
//! a lock.
//!
//! A task leaves under that lock before the runtime's count of it is given up. So the header of a
//! task that is read under the lock is alive.

#![forbid(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::spin_lock::Lock;
use crate::scheduler::task_table::TaskTable;
use crate::tasks::header::{Header, TaskRef};
use crate::tasks::task::Task;

pub(crate) struct Registry {
    tasks: Lock<TaskTable>,
    /// The number of tasks, for placement. Written by the holder of `tasks`, read by any thread.
    load: AtomicUsize,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Registry { tasks: Lock::new(TaskTable::new()), load: AtomicUsize::new(0) }
    }

    /// Enters a task; the runtime's count of it is the registry's from here on.
    #[inline]
    pub(crate) fn enter(&self, task: TaskRef) -> u32 {
        let mut tasks = self.tasks.lock();
        let slot = tasks.insert(task);
        self.note(&tasks);
        drop(tasks);
        u32::try_from(slot).expect("fewer than 2^32 tasks: their stacks alone would be 16 TiB")
    }

    /// Takes out a task that has ended. A migratable one may have ended on another worker.
    #[inline]
    pub(crate) fn leave(&self, slot: u32) {
        let mut tasks = self.tasks.lock();
        tasks.remove(slot as usize);
        self.note(&tasks);
    }

    fn note(&self, tasks: &TaskTable) {
        // Relaxed: a hint.
        self.load.store(tasks.len(), Ordering::Relaxed);
    }

    /// Returns how many tasks are in this registry.
    pub(crate) fn load(&self) -> usize {
        // Relaxed: a hint.
        self.load.load(Ordering::Relaxed)
    }

    /// Calls `see` with the tasks, under the lock, which is released after each chunk of them.
    ///
    /// A task that is here all the while is seen once. `see` does not suspend, uses no registry, and
    /// gives up no count of a task. It may wake the task: no wake takes a registry's lock.
    pub(crate) fn walk(&self, mut see: impl FnMut(TaskRef)) {
        let mut number = 0;
        while self.tasks.lock().walk(number, &mut see) {
            number += 1;
        }
    }

    /// Returns a counted handle to the task at that address, if it is in this registry.
    pub(crate) fn find(&self, address: *const Header) -> Option<Task> {
        let mut found = None;
        self.walk(|task| {
            if ptr::eq(task.as_ptr(), address) {
                found = Some(Task::counted(task));
            }
        });
        found
    }

    /// Returns counted handles to all tasks.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::with_capacity(self.load());
        self.walk(|task| tasks.push(Task::counted(task)));
        tasks
    }
}
