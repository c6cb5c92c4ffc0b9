//! The registry of one worker: tasks enter at their first run and leave at their end.
//!
//! Shutdown and reports read it, also from other threads while the worker is stuck in a task. Hence
//! a lock, of the kind that is almost free for the worker itself. Rejected: a plain spin lock,
//! which makes spawn and join slower.
//!
//! A task leaves under that lock before the runtime's count of it is given up. So the header of a
//! task that is read under the lock is alive.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::fences;
use crate::scheduler::biased::Biased;
use crate::scheduler::task_table::TaskTable;
use crate::tasks::header::{Header, TaskRef};
use crate::tasks::task::Task;

pub(crate) struct Registry {
    tasks: Biased<TaskTable>,
    /// The number of tasks, for placement. Written by the holder of `tasks`, read by any thread.
    load: AtomicUsize,
}

impl Registry {
    pub(crate) fn new() -> Self {
        fences::prepare();
        Registry { tasks: Biased::new(TaskTable::new()), load: AtomicUsize::new(0) }
    }

    /// Enters a task; the runtime's count of it is the registry's from here on.
    ///
    /// # Safety
    /// The caller is the worker whose registry this is.
    pub(crate) unsafe fn enter(&self, task: TaskRef) -> u32 {
        let enter = |tasks: &mut TaskTable| {
            let slot = tasks.insert(task);
            self.note(tasks);
            slot
        };
        // SAFETY: by the contract all calls come from the worker's thread. An insert does not
        // panic: without memory the process ends.
        let slot = unsafe { self.tasks.own(enter) };
        u32::try_from(slot).expect("fewer than 2^32 tasks: their stacks alone would be 16 TiB")
    }

    /// Takes out a task that ended on the worker whose registry this is.
    ///
    /// # Safety
    /// The caller is that worker, and `slot` is the task's.
    pub(crate) unsafe fn leave(&self, slot: u32) {
        // SAFETY: by the contract all calls come from the worker's thread, and the slot is taken, so that nothing panics.
        unsafe { self.tasks.own(|tasks| self.remove(tasks, slot)) }
    }

    /// Takes out a task that ended on another worker.
    pub(crate) fn leave_remotely(&self, slot: u32) {
        self.tasks.borrow(|tasks| self.remove(tasks, slot));
    }

    fn remove(&self, tasks: &mut TaskTable, slot: u32) {
        tasks.remove(slot as usize);
        self.note(tasks);
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
    /// gives up no count of a task.
    pub(crate) fn walk(&self, mut see: impl FnMut(TaskRef)) {
        let mut number = 0;
        while self.tasks.borrow(|tasks| tasks.walk(number, &mut see)) {
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
