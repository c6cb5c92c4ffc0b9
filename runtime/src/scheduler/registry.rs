//! The registry of one worker: tasks enter at their first run and leave at their end.
//!
//! Shutdown and reports read it, also from other threads while the worker is stuck in a task. Hence a lock, of the kind
//! that is almost free for the worker itself. Rejected: a plain spin lock, which makes spawn and
//! join slower.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use slab::Slab;

use crate::base::fences;
use crate::scheduler::biased::Biased;
use crate::tasks::header::{Header, TaskRef};
use crate::tasks::task::Task;

pub(crate) struct Registry {
    tasks: Biased<Slab<TaskRef>>,
    /// The number of tasks, for placement. Written by the holder of `tasks`, read by any thread.
    load: AtomicUsize,
}

impl Registry {
    pub(crate) fn new() -> Self {
        fences::prepare();
        Registry { tasks: Biased::new(Slab::new()), load: AtomicUsize::new(0) }
    }

    /// Enters a task; the runtime's count of it is the registry's from here on.
    ///
    /// # Safety
    /// The caller is the worker whose registry this is.
    pub(crate) unsafe fn enter(&self, task: TaskRef) -> u32 {
        let enter = |tasks: &mut Slab<TaskRef>| {
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
    pub(crate) fn leave_from_afar(&self, slot: u32) {
        self.tasks.borrow(|tasks| self.remove(tasks, slot));
    }

    fn remove(&self, tasks: &mut Slab<TaskRef>, slot: u32) {
        tasks.remove(slot as usize);
        self.note(tasks);
        if tasks.is_empty() && tasks.capacity() > 1024 {
            tasks.shrink_to_fit();
        }
    }

    fn note(&self, tasks: &Slab<TaskRef>) {
        // Relaxed: a hint.
        self.load.store(tasks.len(), Ordering::Relaxed);
    }

    /// Returns how many tasks are in this registry.
    pub(crate) fn load(&self) -> usize {
        // Relaxed: a hint.
        self.load.load(Ordering::Relaxed)
    }

    /// Returns a counted handle to the task at that address, if it is in this registry.
    pub(crate) fn find(&self, address: *const Header) -> Option<Task> {
        self.tasks.borrow(|tasks| {
            let found = tasks.iter().find(|(_, task)| ptr::eq(task.as_ptr(), address));
            found.map(|(_, task)| Task::counted(*task))
        })
    }

    /// Returns counted handles to all tasks.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        self.tasks.borrow(|tasks| tasks.iter().map(|(_, task)| Task::counted(*task)).collect())
    }
}
